-- Committed successes that answer for equal work. A cache: losing a row costs time and nothing else.

CREATE TABLE memos (
    key    text COLLATE "C" NOT NULL PRIMARY KEY,
    output text NOT NULL,                  -- JSON, or a reference to a blob
    run    text NOT NULL,                  -- the id of the run that did it
    at     bigint NOT NULL,
    until  bigint                          -- null: for ever
);
