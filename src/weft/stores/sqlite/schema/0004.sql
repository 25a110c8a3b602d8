-- Descriptions of hosts, and queues that have limits or a priority.

ALTER TABLE hosts ADD COLUMN about TEXT NOT NULL DEFAULT '{}';
ALTER TABLE hosts ADD COLUMN beat_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE queues (
    queue       TEXT    NOT NULL PRIMARY KEY,
    priority    INTEGER NOT NULL,
    concurrency INTEGER,                    -- tasks in hands at once
    rate        INTEGER,                    -- tasks handed out in any stretch of per_ms
    per_ms      INTEGER NOT NULL,
    stream      INTEGER NOT NULL DEFAULT 0  -- 1: workers on a Redis stream perform its tasks
) STRICT, WITHOUT ROWID;

-- When tasks of queues with a rate were handed out, for the period of the rate.
CREATE TABLE handed_out (
    queue TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    tasks INTEGER NOT NULL
) STRICT;

CREATE INDEX handed_out_at ON handed_out (queue, at);
CREATE INDEX tasks_in_hands ON tasks (queue) WHERE host IS NOT NULL;

-- The limits of steps and workflows per key, as the code of hosts declares them.
CREATE TABLE key_limits (
    name TEXT NOT NULL PRIMARY KEY,         -- step/charge, workflow/order
    body TEXT NOT NULL                      -- JSON
) STRICT, WITHOUT ROWID;

-- The keys that may have room, in the order of their turns.
CREATE TABLE ready_keys (
    turn       INTEGER PRIMARY KEY,
    limit_name TEXT    NOT NULL,
    limit_key  TEXT    NOT NULL,
    not_before INTEGER NOT NULL DEFAULT 0,
    UNIQUE (limit_name, limit_key)
) STRICT;

-- Until when the starts of keys with a rate count.
CREATE TABLE key_starts (
    limit_name TEXT    NOT NULL,
    limit_key  TEXT    NOT NULL,
    until      INTEGER NOT NULL,
    tasks      INTEGER NOT NULL,
    PRIMARY KEY (limit_name, limit_key, until)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_starts_over ON key_starts (until);

-- Whoever removes a taken row, for whatever reason, frees its place. It matters if somebody waits for it.
CREATE TRIGGER place_freed AFTER DELETE ON tasks WHEN OLD.limit_name IS NOT NULL AND OLD.host IS NOT NULL BEGIN
    INSERT OR IGNORE INTO ready_keys (limit_name, limit_key) SELECT OLD.limit_name, OLD.limit_key WHERE EXISTS (
        SELECT 1 FROM tasks WHERE limit_name = OLD.limit_name AND limit_key = OLD.limit_key AND host IS NULL
    );
END;

CREATE TRIGGER place_wanted AFTER INSERT ON tasks WHEN NEW.limit_name IS NOT NULL AND NEW.host IS NULL BEGIN
    INSERT OR IGNORE INTO ready_keys (limit_name, limit_key) VALUES (NEW.limit_name, NEW.limit_key);
END;
