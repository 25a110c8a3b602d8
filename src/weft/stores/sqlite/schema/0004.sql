-- Descriptions of hosts, and queues that have limits or a priority.

ALTER TABLE hosts ADD COLUMN about TEXT NOT NULL DEFAULT '{}';
ALTER TABLE hosts ADD COLUMN beat_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE queues (
    queue       TEXT    NOT NULL PRIMARY KEY,
    priority    INTEGER NOT NULL,
    concurrency INTEGER,                    -- tasks in hands at once
    rate        INTEGER,                    -- tasks handed out in any stretch of per_ms
    per_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When tasks of queues with a rate were handed out, for the period of the rate.
CREATE TABLE handed_out (
    queue TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    tasks INTEGER NOT NULL
) STRICT;

CREATE INDEX handed_out_at ON handed_out (queue, at);
CREATE INDEX tasks_in_hands ON tasks (queue) WHERE host IS NOT NULL;
