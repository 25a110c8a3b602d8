-- Everything that Weft keeps, in the schema "weft". Times are milliseconds since 1970, bodies are JSON; weft_runs and the
-- other views show them as people like to read them. Inside, runs are numbers; the uid is what keys, children and blobs
-- derive from. Texts that are compared or ordered are so by their bytes ("C"), as in every other store.
-- Nothing refers to runs by a foreign key: rows of a run are only written by statements that hold the run's own row.

CREATE TABLE runs (
    num        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uid        text COLLATE "C" NOT NULL UNIQUE,
    id         text COLLATE "C" NOT NULL UNIQUE,
    workflow   text NOT NULL,
    version    text NOT NULL,
    style      text NOT NULL,
    status     text NOT NULL,
    seq        bigint NOT NULL,            -- the last event's number; with updated_at, all that a plain append changes
    updated_at bigint NOT NULL,            -- never indexed: an index would cost every append
    epoch      bigint NOT NULL,
    owner      text COLLATE "C",
    mail       bigint NOT NULL DEFAULT 0,  -- how many pieces of mail were ever accepted
    mail_at    bigint,                     -- when the oldest that still waits was sent
    wake_at    bigint,
    idle_until bigint,                     -- of an owned run: when it next does something by itself; null: work in flight
    format     integer NOT NULL,
    parent     text COLLATE "C",
    created_at bigint NOT NULL,
    ended_at   bigint,
    attributes jsonb NOT NULL DEFAULT '{}',
    fault      text,
    wal        bigint                      -- of an owned run: the WAL that may hold events which are not here yet
) WITH (fillfactor = 70);                  -- room for a row's next version beside it, so that a plain append writes no index

CREATE INDEX runs_newest ON runs (created_at, uid);
CREATE INDEX runs_workflow ON runs (workflow, created_at, uid);
CREATE INDEX runs_status ON runs (status, created_at, uid);
CREATE INDEX runs_owned ON runs (owner, idle_until) WHERE owner IS NOT NULL;
CREATE INDEX runs_due ON runs (wake_at) WHERE wake_at IS NOT NULL AND owner IS NULL;
CREATE INDEX runs_mail ON runs (owner, mail_at) WHERE mail_at IS NOT NULL;
CREATE INDEX runs_children ON runs (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_attributes ON runs USING gin (attributes jsonb_path_ops);

CREATE TABLE events (
    run  bigint NOT NULL,
    seq  bigint NOT NULL,
    at   bigint NOT NULL,
    crc  bigint NOT NULL,                  -- CRC-32 of uid, seq, at and body
    body text NOT NULL,                    -- not jsonb: it comes back byte by byte
    PRIMARY KEY (run, seq)
) PARTITION BY HASH (run);

CREATE TABLE events_0 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE events_1 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE events_2 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE events_3 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE events_4 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE events_5 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE events_6 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE events_7 PARTITION OF events FOR VALUES WITH (MODULUS 8, REMAINDER 7);

CREATE TABLE snapshots (
    run  bigint NOT NULL,
    fold integer NOT NULL,
    seq  bigint NOT NULL,
    crc  bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, fold)
);

CREATE TABLE inbox (
    run    bigint NOT NULL,
    n      bigint NOT NULL,                -- the run's mail count when it came: the order of arrival
    id     text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    key    text COLLATE "C",
    digest text NOT NULL,
    body   text NOT NULL,
    crc    bigint NOT NULL,                -- CRC-32 of uid and all of these but n
    PRIMARY KEY (run, n)
);

-- Every id of mail that was ever accepted, also after it was taken: the same id is one piece of mail.
CREATE TABLE posted (
    run bigint NOT NULL,
    id  text COLLATE "C" NOT NULL,
    n   bigint NOT NULL,
    PRIMARY KEY (run, id)
);

CREATE TABLE keys (
    run    bigint NOT NULL,
    key    text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    seq    bigint NOT NULL,                -- 0: it came by mail, which still waits in the inbox
    PRIMARY KEY (run, key)
);

CREATE TABLE tasks (
    num        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run        bigint NOT NULL,
    task       bigint NOT NULL,
    attempt    integer NOT NULL,
    delivery   integer NOT NULL,
    step       text NOT NULL,
    queue      text NOT NULL,
    body       text NOT NULL,
    epoch      bigint NOT NULL,
    not_before bigint NOT NULL,
    host       text COLLATE "C",           -- who has it
    limit_name text COLLATE "C",           -- the limit against which it counts, and the key under which it counts
    limit_key  text COLLATE "C",
    unwanted   bigint NOT NULL DEFAULT 0,  -- num: withdrawn, and it counts until its host has stopped it
    UNIQUE (run, task, attempt, delivery, unwanted)
);

CREATE INDEX tasks_offered ON tasks (queue, num) WHERE host IS NULL AND limit_name IS NULL;
CREATE INDEX tasks_waiting ON tasks (limit_name, limit_key, num) WHERE host IS NULL AND limit_name IS NOT NULL;
CREATE INDEX tasks_counted ON tasks (limit_name, limit_key) WHERE host IS NOT NULL AND limit_name IS NOT NULL;
CREATE INDEX tasks_claimed ON tasks (host) WHERE host IS NOT NULL;

CREATE TABLE blobs (
    hash    text COLLATE "C" NOT NULL PRIMARY KEY,  -- SHA-256 of the content
    touched bigint,                        -- null: after the last sweep
    doomed  timestamptz,                   -- since when somebody is deleting content that is kept elsewhere
    data    bytea                          -- null: kept elsewhere
);

CREATE TABLE refs (
    hash text COLLATE "C" NOT NULL,
    run  bigint NOT NULL,
    PRIMARY KEY (hash, run)
);

CREATE TABLE hosts (
    host     text COLLATE "C" NOT NULL PRIMARY KEY,
    beats    bigint NOT NULL,
    lease_ms bigint NOT NULL,
    redis    text                          -- the id of the Redis server that it sees
);

-- The write-ahead logs of hosts, whose entries are in Redis. Numbers are never used again. Rows stay as long as a run
-- names the WAL: others may claim it only if the row says that the WAL is drained.
CREATE TABLE wals (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host       text COLLATE "C" NOT NULL,
    redis      text NOT NULL,              -- the id of the Redis server that holds it
    opened_at  bigint NOT NULL,
    last       bigint NOT NULL DEFAULT 0,  -- the last entry that its host has reported
    drained_at bigint,
    forced     boolean NOT NULL DEFAULT false  -- drained without being read
);

CREATE INDEX wals_undrained ON wals (host) WHERE drained_at IS NULL;

-- What hosts had acknowledged and nobody found when they were dead.
CREATE TABLE losses (
    wal             bigint NOT NULL PRIMARY KEY,
    body            text NOT NULL,         -- JSON
    acknowledged_at bigint
);

-- What all hosts agree on.
CREATE TABLE deployment (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE definitions (
    num        bigint GENERATED ALWAYS AS IDENTITY,
    name       text COLLATE "C" NOT NULL,
    version    text COLLATE "C" NOT NULL,
    style      text NOT NULL,
    body       text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE TABLE tags (
    name    text COLLATE "C" NOT NULL,
    tag     text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, tag),
    FOREIGN KEY (name, version) REFERENCES definitions
);
