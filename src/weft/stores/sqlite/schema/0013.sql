-- Lists of runs in order of age: of a workflow and a status, of a parent, and of those with a fault.
DROP INDEX runs_workflow;
CREATE INDEX runs_workflow ON runs (workflow, status, created_at, uid);
DROP INDEX runs_children;
CREATE INDEX runs_children ON runs (parent, created_at, uid) WHERE parent IS NOT NULL;
CREATE INDEX runs_fault ON runs (created_at, uid) WHERE fault IS NOT NULL;
