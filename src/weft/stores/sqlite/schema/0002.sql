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

-- What steps print and log. The numbers of lines that were left out are missing.
CREATE TABLE step_lines (
    run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    place   TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    level   INTEGER NOT NULL,               -- as in Python's logging
    source  TEXT    NOT NULL,
    text    TEXT    NOT NULL,
    bytes   INTEGER NOT NULL,               -- of text
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_line_totals (
    run   INTEGER NOT NULL PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    last  INTEGER NOT NULL,                 -- the number of the last line
    lines INTEGER NOT NULL,                 -- how many are stored
    bytes INTEGER NOT NULL,
    host  TEXT    NOT NULL,                 -- who wrote last, and its batch
    batch INTEGER NOT NULL
) STRICT;
