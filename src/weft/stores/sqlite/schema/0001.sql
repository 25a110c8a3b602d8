-- The tables of Weft. Times are milliseconds since 1970, bodies are JSON. Inside, runs are numbers; keys, children and
-- blobs derive from the uid.

CREATE TABLE runs (
    num        INTEGER PRIMARY KEY,
    uid        TEXT    NOT NULL UNIQUE,
    id         TEXT    NOT NULL UNIQUE,
    workflow   TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    style      TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    seq        INTEGER NOT NULL,            -- the last event's number; with updated_at, all that a plain append changes
    updated_at INTEGER NOT NULL,            -- never indexed: an index would cost every append
    epoch      INTEGER NOT NULL,
    owner      TEXT,
    mail       INTEGER NOT NULL DEFAULT 0,  -- how many pieces of mail were ever accepted
    mail_at    INTEGER,                     -- when the oldest that still waits was sent
    wake_at    INTEGER,
    idle_until INTEGER,                     -- of an owned run: when it next does something by itself; null: work in flight
    format     INTEGER NOT NULL,
    parent     TEXT,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    attributes TEXT    NOT NULL DEFAULT '{}',
    fault      TEXT
) STRICT;

CREATE INDEX runs_newest ON runs (created_at, uid);
CREATE INDEX runs_workflow ON runs (workflow, created_at, uid);
CREATE INDEX runs_status ON runs (status, created_at, uid);
CREATE INDEX runs_owned ON runs (owner, idle_until) WHERE owner IS NOT NULL;
CREATE INDEX runs_due ON runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_mail ON runs (mail_at) WHERE mail_at IS NOT NULL;
CREATE INDEX runs_children ON runs (parent) WHERE parent IS NOT NULL;

-- Stored in order of arrival and found by (run, seq): five hundred runs that append at once share a few pages. Clustered by
-- run, each of them would write its own page (seven times the bytes, half the speed).
CREATE TABLE events (
    num  INTEGER PRIMARY KEY,
    run  INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    body TEXT    NOT NULL,
    crc  INTEGER NOT NULL,                  -- CRC-32 of uid, seq, at and body
    UNIQUE (run, seq)
) STRICT;

CREATE TABLE snapshots (
    run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    fold INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    crc  INTEGER NOT NULL,
    body BLOB    NOT NULL,
    PRIMARY KEY (run, fold)
) STRICT;

CREATE TABLE inbox (
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    n      INTEGER NOT NULL,                -- the run's mail count when it came: the order of arrival
    id     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    key    TEXT,
    digest TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    crc    INTEGER NOT NULL,                -- CRC-32 of uid and all of these but n
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- The ids of all mail that was ever accepted, also after it was consumed: the same id is one piece of mail.
CREATE TABLE posted (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    id  TEXT    NOT NULL,
    n   INTEGER NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    key    TEXT    NOT NULL,
    digest TEXT    NOT NULL,
    seq    INTEGER NOT NULL,                -- 0: it came by mail, which still waits in the inbox
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE attributes (
    name  TEXT    NOT NULL,
    value TEXT    NOT NULL,                 -- canonical JSON, so that equal values are equal texts
    run   INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    PRIMARY KEY (name, value, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    num        INTEGER PRIMARY KEY,
    run        INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    task       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    delivery   INTEGER NOT NULL,
    step       TEXT    NOT NULL,
    queue      TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    host       TEXT,                        -- who has it
    limit_name TEXT,                        -- the limit against which it counts, and the key under which it counts
    limit_key  TEXT,
    unwanted   INTEGER NOT NULL DEFAULT 0,  -- num: withdrawn, and it counts until its host has stopped it
    UNIQUE (run, task, attempt, delivery, unwanted)
) STRICT;

CREATE INDEX tasks_offered ON tasks (queue, num) WHERE host IS NULL AND limit_name IS NULL;
CREATE INDEX tasks_waiting ON tasks (limit_name, limit_key, num) WHERE host IS NULL AND limit_name IS NOT NULL;
CREATE INDEX tasks_counted ON tasks (limit_name, limit_key) WHERE host IS NOT NULL AND limit_name IS NOT NULL;
CREATE INDEX tasks_claimed ON tasks (host) WHERE host IS NOT NULL;

CREATE TABLE blobs (
    hash    TEXT NOT NULL PRIMARY KEY,      -- SHA-256 of data
    touched INTEGER,                        -- null: after the last sweep
    data    BLOB NOT NULL
) STRICT;

CREATE TABLE refs (
    hash TEXT    NOT NULL,
    run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    PRIMARY KEY (hash, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE hosts (
    host     TEXT    NOT NULL PRIMARY KEY,
    beats    INTEGER NOT NULL,
    lease_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE definitions (
    name       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    style      TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (name, version)
) STRICT;

CREATE TABLE tags (
    name    TEXT NOT NULL,
    tag     TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (name, tag),
    FOREIGN KEY (name, version) REFERENCES definitions
) STRICT, WITHOUT ROWID;
