-- Results of steps that are reused for equal work. This is a cache: losing a row only costs time.

CREATE TABLE memos (
    key    text COLLATE "C" NOT NULL PRIMARY KEY,
    output text NOT NULL,                  -- JSON, or a reference to a blob
    run    text NOT NULL,                  -- the id of the run that did it
    at     bigint NOT NULL,
    until  bigint                          -- null: for ever
);
