-- Rules about the starts of workflows, and what runs have because of them.
ALTER TABLE runs
    ADD COLUMN slot     text COLLATE "C",           -- the workflow and the key; null without a rule
    ADD COLUMN inputs   integer NOT NULL DEFAULT 0, -- how many inputs a batch has
    ADD COLUMN priority integer NOT NULL DEFAULT 0; -- higher ones are taken first

CREATE INDEX runs_slot ON runs (slot) WHERE slot IS NOT NULL AND ended_at IS NULL;

CREATE INDEX runs_due_ranked ON runs (priority DESC, wake_at) WHERE wake_at IS NOT NULL AND owner IS NULL AND priority <> 0;
CREATE INDEX runs_mail_ranked ON runs (priority DESC, mail_at) WHERE mail_at IS NOT NULL AND owner IS NULL AND priority <> 0;

ALTER TABLE tasks ADD COLUMN priority integer NOT NULL DEFAULT 0;  -- that of the run

CREATE INDEX tasks_ranked ON tasks (priority DESC, num) WHERE host IS NULL AND priority <> 0;

-- Numbers of tasks without a limit per key that are free and due: of runs with a higher priority first, then the oldest.
-- Locked, and not waited for. Tasks with a priority have an index of their own: a long line of others does not hide them.
CREATE OR REPLACE FUNCTION free_tasks(names text[], known text[], at_time bigint, most bigint)
RETURNS SETOF bigint LANGUAGE sql AS $$
    SELECT f.num FROM (
        SELECT a.num, a.priority FROM (
            SELECT t.num, t.priority FROM tasks t
            WHERE t.host IS NULL AND t.limit_name IS NULL AND t.queue = ANY (names)
                AND (known IS NULL OR t.step = ANY (known))
                AND t.not_before <= at_time AND t.priority = 0
                AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND NOT is_over(r.status))
            ORDER BY t.num LIMIT most FOR UPDATE OF t SKIP LOCKED
        ) AS a
        UNION ALL
        SELECT b.num, b.priority FROM (
            SELECT t.num, t.priority FROM tasks t
            WHERE t.host IS NULL AND t.limit_name IS NULL AND t.queue = ANY (names)
                AND (known IS NULL OR t.step = ANY (known))
                AND t.not_before <= at_time AND t.priority <> 0
                AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND NOT is_over(r.status))
            ORDER BY t.priority DESC, t.num LIMIT most FOR UPDATE OF t SKIP LOCKED
        ) AS b
    ) AS f ORDER BY f.priority DESC, f.num LIMIT most
$$;

DO $$
DECLARE
    offer text := pg_get_functiondef('offer_tasks'::regproc);
    take  text := pg_get_functiondef('take_plain'::regproc);
    rule  text := 'SELECT p FROM unnest(picked) AS p ORDER BY p LIMIT most';
BEGIN
    IF position('limit_name, limit_key)' IN offer) = 0 OR position('t.limit_name, t.limit_key' IN offer) = 0
        OR position(rule IN take) = 0 THEN
        RAISE EXCEPTION 'offer_tasks or take_plain is not as expected';
    END IF;
    offer := replace(offer, 'not_before, limit_name, limit_key)', 'not_before, limit_name, limit_key, priority)');
    EXECUTE replace(offer, 't.limit_name, t.limit_key', 't.limit_name, t.limit_key, r.priority');
    EXECUTE replace(take, rule,
        'SELECT t.num FROM tasks t WHERE t.num = ANY (picked) ORDER BY t.priority DESC, t.num LIMIT most');
END
$$;

CREATE TABLE start_rules (
    workflow text COLLATE "C" NOT NULL PRIMARY KEY,
    body     text NOT NULL                          -- JSON
);

-- The ids of starts that other runs took: the same id is the same start.
CREATE TABLE start_ids (
    id     text COLLATE "C" NOT NULL PRIMARY KEY,
    run    bigint NOT NULL,
    digest text NOT NULL
);

CREATE INDEX start_ids_run ON start_ids (run);

-- The ledger of budgets: one unit of one scope. Amounts are whole numbers.
CREATE TABLE budgets (
    scope    text COLLATE "C" NOT NULL,
    unit     text COLLATE "C" NOT NULL,
    run      bigint,                                -- null: the scope is a window of time
    most     bigint,                                -- the limit; null for none
    spent    bigint NOT NULL,
    at_most  bigint NOT NULL,                       -- how much of it was only reserved
    reserved bigint NOT NULL,
    warn     integer NOT NULL,                      -- in thousandths of the limit; 0 for never
    warned   boolean NOT NULL,
    ends_at  bigint,                                -- when the window is over; null: the scope is of a run
    PRIMARY KEY (scope, unit)
);

CREATE INDEX budgets_run ON budgets (run);
CREATE INDEX budgets_ends_at ON budgets (ends_at) WHERE ends_at IS NOT NULL;

-- What is reserved for calls that are in hands.
CREATE TABLE reservations (
    run      bigint NOT NULL,
    task     bigint NOT NULL,
    attempt  integer NOT NULL,
    delivery integer NOT NULL,
    body     text NOT NULL,                         -- JSON
    PRIMARY KEY (run, task, attempt, delivery)
);

DO $$
DECLARE
    body text := pg_get_functiondef('clear_doomed'::regproc);
BEGIN
    IF position('''keys'', ' IN body) = 0 THEN
        RAISE EXCEPTION 'clear_doomed is not as expected';
    END IF;
    EXECUTE replace(body, '''keys'', ', '''keys'', ''start_ids'', ''budgets'', ''reservations'', ');
END
$$;

-- New runs have a slot, inputs and a priority.
DO $$
DECLARE
    body text := pg_get_functiondef('make_runs'::regproc);
BEGIN
    IF position('start_crc bigint, idle_until bigint' IN body) = 0
        OR position('ended_at, attributes, idle_until' IN body) = 0
        OR position('w.attributes, w.idle_until' IN body) = 0 THEN
        RAISE EXCEPTION 'make_runs is not as expected';
    END IF;
    body := replace(body, 'start_crc bigint, idle_until bigint',
        'start_crc bigint, idle_until bigint, slot text, inputs integer, priority integer');
    body := replace(body, 'ended_at, attributes, idle_until', 'ended_at, attributes, idle_until, slot, inputs, priority');
    EXECUTE replace(body, 'w.attributes, w.idle_until',
        'w.attributes, w.idle_until, w.slot, coalesce(w.inputs, 0), coalesce(w.priority, 0)');
END
$$;
