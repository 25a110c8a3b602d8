-- Results of steps that are reused for equal work. This is a cache: losing a row only costs time.

CREATE TABLE memos (
    key     TEXT    NOT NULL PRIMARY KEY,
    output  TEXT    NOT NULL,               -- JSON, or a reference to a blob
    run     TEXT    NOT NULL,               -- the id of the run that did it
    at      INTEGER NOT NULL,
    until   INTEGER                         -- null: for ever
) STRICT, WITHOUT ROWID;
