-- Deleting runs. A row with the status 'doomed' is being deleted: its uid has a prefix, so that nothing that names the run
-- finds it, and its id stays taken until the row is gone.

-- Who deleted or kept what, and why. Outlives the runs.
CREATE TABLE audit (
    num      INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    verb     TEXT    NOT NULL,              -- delete, gc, keep, keep_end
    run      TEXT    NOT NULL,              -- the id of the root
    uid      TEXT    NOT NULL,
    workflow TEXT    NOT NULL,
    by       TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    details  TEXT    NOT NULL               -- JSON
) STRICT;

CREATE INDEX audit_run ON audit (run, num);

-- Roots whose trees must not be deleted.
CREATE TABLE holds (
    uid   TEXT    NOT NULL PRIMARY KEY,
    entry INTEGER NOT NULL REFERENCES audit
) STRICT, WITHOUT ROWID;

-- The host that deletes runs, and until when.
CREATE TABLE turns (
    name  TEXT    NOT NULL PRIMARY KEY,
    host  TEXT    NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Without references to runs: these tables are not sorted by run, so deleting a row of runs would search all of them.
CREATE TABLE new_attributes (
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,                 -- canonical JSON, so that equal values are equal texts
    run   INTEGER NOT NULL,
    PRIMARY KEY (name, value, run)
) STRICT, WITHOUT ROWID;

INSERT INTO new_attributes SELECT name, value, run FROM attributes;
DROP TABLE attributes;
ALTER TABLE new_attributes RENAME TO attributes;

CREATE TABLE new_refs (
    hash TEXT    NOT NULL,
    run  INTEGER NOT NULL,
    PRIMARY KEY (hash, run)
) STRICT, WITHOUT ROWID;

INSERT INTO new_refs SELECT hash, run FROM refs;
DROP TABLE refs;
ALTER TABLE new_refs RENAME TO refs;
CREATE INDEX refs_run ON refs (run);
