-- The output streams of steps and workflows. They are not part of the logs.

CREATE TABLE chunks (
    run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    stream  TEXT    NOT NULL,
    "offset" INTEGER NOT NULL,              -- from 1, without gaps
    at      INTEGER NOT NULL,
    place   TEXT    NOT NULL,               -- who wrote it
    attempt INTEGER NOT NULL,
    key     TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (run, stream, "offset"),
    UNIQUE (run, stream, key)
) STRICT, WITHOUT ROWID;
