-- Rules about the starts of workflows, and what runs have because of them.
ALTER TABLE runs ADD COLUMN slot TEXT;                             -- the workflow and the key; null without a rule
ALTER TABLE runs ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0;     -- how many inputs a batch has
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;   -- higher ones are taken first

CREATE INDEX runs_slot ON runs (slot) WHERE slot IS NOT NULL AND ended_at IS NULL;

CREATE INDEX runs_due_ranked ON runs (priority DESC, wake_at) WHERE wake_at IS NOT NULL AND priority <> 0;
CREATE INDEX runs_mail_ranked ON runs (priority DESC, mail_at) WHERE mail_at IS NOT NULL AND priority <> 0;

ALTER TABLE tasks ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;  -- that of the run
CREATE INDEX tasks_ranked ON tasks (priority DESC, num) WHERE host IS NULL AND priority <> 0;

CREATE TABLE start_rules (
    workflow TEXT NOT NULL PRIMARY KEY,
    body     TEXT NOT NULL                  -- JSON
) STRICT, WITHOUT ROWID;

-- The ids of starts that other runs took: the same id is the same start.
CREATE TABLE start_ids (
    id     TEXT    NOT NULL PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    digest TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX start_ids_run ON start_ids (run);

-- The ledger of budgets: one unit of one scope. Amounts are whole numbers.
CREATE TABLE budgets (
    scope    TEXT    NOT NULL,
    unit     TEXT    NOT NULL,
    run      INTEGER REFERENCES runs ON DELETE CASCADE,    -- null: the scope is a window of time
    most     INTEGER,                                      -- the limit; null for none
    spent    INTEGER NOT NULL,
    at_most  INTEGER NOT NULL,                             -- how much of it was only reserved
    reserved INTEGER NOT NULL,
    warn     INTEGER NOT NULL,                             -- in thousandths of the limit; 0 for never
    warned   INTEGER NOT NULL,
    ends_at  INTEGER,                                      -- when the window is over; null: the scope is of a run
    PRIMARY KEY (scope, unit)
) STRICT, WITHOUT ROWID;

CREATE INDEX budgets_run ON budgets (run);
CREATE INDEX budgets_ends_at ON budgets (ends_at) WHERE ends_at IS NOT NULL;

-- What is reserved for calls that are in hands.
CREATE TABLE reservations (
    run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    task     INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    delivery INTEGER NOT NULL,
    body     TEXT    NOT NULL,                             -- JSON
    PRIMARY KEY (run, task, attempt, delivery)
) STRICT, WITHOUT ROWID;
