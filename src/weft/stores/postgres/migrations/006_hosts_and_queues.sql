-- Hosts: what people see of them, and how long others saw one stand still. An observer may die before a lease is over;
-- what it saw is not lost, because the next one counts on from it. A beat sets it back to nothing.
ALTER TABLE hosts
    ADD COLUMN about    jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN beat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN stood_ms bigint NOT NULL DEFAULT 0;

-- Queues that have limits or a priority.
CREATE TABLE queues (
    queue       text COLLATE "C" NOT NULL PRIMARY KEY,
    priority    integer NOT NULL,
    concurrency integer,                   -- tasks in hands at once
    rate        integer,                   -- tasks handed out in any stretch of per_ms
    per_ms      bigint NOT NULL,
    stream      boolean NOT NULL DEFAULT false      -- workers on a Redis stream perform its tasks
);

-- Whether the tasks of a queue must be counted before more of them are handed out.
CREATE FUNCTION is_limited(q queues) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(q.stream OR coalesce(q.concurrency, q.rate) IS NOT NULL, false)
$$;

-- When tasks of queues with a rate were handed out, as long as that matters.
CREATE TABLE handed_out (
    queue text COLLATE "C" NOT NULL,
    at    bigint NOT NULL,
    tasks integer NOT NULL
);

CREATE INDEX handed_out_at ON handed_out (queue, at);
CREATE INDEX tasks_in_hands ON tasks (queue) WHERE host IS NOT NULL;

-- How many more tasks of a queue may be in hands now; null: it has no limits. Whoever asks holds the queue until the end
-- of its transaction, so that two who ask at once do not both count on the same room.
CREATE FUNCTION room_of(name text, at_time bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    q    queues;
    room bigint;
BEGIN
    SELECT * INTO q FROM queues WHERE queue = name FOR NO KEY UPDATE;
    IF q.stream OR q.concurrency IS NOT NULL THEN
        -- least() leaves out a null.
        room := least(q.concurrency, CASE WHEN q.stream THEN 10000 END)
            - (SELECT count(*) FROM tasks t WHERE t.queue = name AND t.host IS NOT NULL);
    END IF;
    IF q.rate IS NOT NULL THEN
        DELETE FROM handed_out h WHERE h.queue = name AND h.at <= at_time - q.per_ms;
        room := least(room, q.rate - (SELECT coalesce(sum(h.tasks), 0) FROM handed_out h WHERE h.queue = name));
    END IF;
    RETURN CASE WHEN room < 0 THEN 0 ELSE room END;
END
$$;

-- Numbers of tasks without a limit per key that are free and due, oldest first. Locked, and not waited for.
CREATE FUNCTION free_tasks(names text[], known text[], at_time bigint, most bigint) RETURNS SETOF bigint LANGUAGE sql AS $$
    SELECT t.num FROM tasks t
    WHERE t.host IS NULL AND t.limit_name IS NULL AND t.queue = ANY (names)
        AND (known IS NULL OR t.step = ANY (known))
        AND t.not_before <= at_time
        AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND NOT is_over(r.status))
    ORDER BY t.num LIMIT most FOR UPDATE OF t SKIP LOCKED
$$;

-- The queues in which tasks without a limit per key wait. It jumps from name to name in the index.
CREATE FUNCTION waiting_queues() RETURNS text[] LANGUAGE sql AS $$
    WITH RECURSIVE names AS (
        (SELECT queue AS name FROM tasks WHERE host IS NULL AND limit_name IS NULL ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (
            SELECT t.queue FROM tasks t
            WHERE t.host IS NULL AND t.limit_name IS NULL AND t.queue > n.name ORDER BY t.queue LIMIT 1
        ) FROM names n WHERE n.name IS NOT NULL
    )
    SELECT coalesce(array_agg(name), '{}') FROM names WHERE name IS NOT NULL
$$;

-- Give tasks to a host, and count them against the rates of their queues.
CREATE FUNCTION hand_out(who text, nums bigint[], at_time bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF nums = '{}' THEN
        RETURN;
    END IF;
    UPDATE tasks t SET host = who WHERE t.num = ANY (nums);
    INSERT INTO handed_out (queue, at, tasks)
    SELECT t.queue, at_time, count(*) FROM tasks t JOIN queues q ON q.queue = t.queue AND q.rate IS NOT NULL
    WHERE t.num = ANY (nums) GROUP BY t.queue;
END
$$;

-- Tasks of one priority without a limit per key: the oldest, and no more than the limits of each queue.
CREATE FUNCTION take_plain(who text, names text[], known text[], level integer, at_time bigint, most bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    one    record;
    picked bigint[] := '{}';
BEGIN
    FOR one IN
        SELECT array_agg(n.name) AS names, is_limited(q) AS limited
        FROM unnest(names) AS n (name) LEFT JOIN queues q ON q.queue = n.name
        WHERE coalesce(q.priority, 0) = level AND coalesce(q.stream, false) = (who = 'stream')
        GROUP BY 2, CASE WHEN is_limited(q) THEN n.name END ORDER BY min(n.name)
    LOOP
        -- Without tasks that wait there is nothing to count, and nobody to hold up.
        CONTINUE WHEN one.limited AND NOT EXISTS (
            SELECT 1 FROM tasks t WHERE t.host IS NULL AND t.limit_name IS NULL AND t.queue = one.names[1]
        );
        picked := picked || ARRAY(SELECT * FROM free_tasks(
            one.names, known, at_time, CASE WHEN one.limited THEN least(most, room_of(one.names[1], at_time)) ELSE most END
        ));
    END LOOP;
    picked := ARRAY(SELECT p FROM unnest(picked) AS p ORDER BY p LIMIT most);
    PERFORM hand_out(who, picked, at_time);
    RETURN picked;
END
$$;

-- Give a host tasks: of queues of higher priority first, and no more than the limits of queues and keys. Tasks with and
-- without limits per key share what it asks for. `names` null: all queues; `known` null: all steps. Tasks of queues that
-- are streams go to 'stream', which stands for a host, and to nobody else.
CREATE FUNCTION take_tasks(who text, names text[], known text[], at_time bigint, most bigint)
RETURNS SETOF tasks LANGUAGE plpgsql AS $$
DECLARE
    plain text[] := coalesce(names, waiting_queues());
    keyed boolean := EXISTS (SELECT 1 FROM ready_keys);
    level integer;
    taken bigint[] := '{}';
BEGIN
    IF NOT keyed AND plain = '{}' THEN
        RETURN;
    END IF;
    FOR level IN SELECT DISTINCT p FROM (SELECT 0 UNION ALL SELECT priority FROM queues) AS a (p) ORDER BY p DESC LOOP
        IF keyed THEN
            taken := taken || take_keyed(
                who, names, known, level, at_time, (most - cardinality(taken) + at_time % 2) / 2
            );
        END IF;
        taken := taken || take_plain(who, plain, known, level, at_time, most - cardinality(taken));
        IF keyed THEN
            taken := taken || take_keyed(who, names, known, level, at_time, most - cardinality(taken));
        END IF;
        EXIT WHEN cardinality(taken) >= most;
    END LOOP;
    RETURN QUERY SELECT t.* FROM tasks t WHERE t.num = ANY (taken);
END
$$;

-- Limits of steps and workflows per key. A row of `tasks` that is taken is the permit itself: when it is deleted, for
-- whatever reason, its place is free.

-- The limits, as the code of hosts declares them.
CREATE TABLE key_limits (
    name        text COLLATE "C" NOT NULL PRIMARY KEY,  -- step/charge, workflow/order
    concurrency integer,
    rate        integer,
    per_ms      bigint NOT NULL,
    body        text NOT NULL              -- JSON
);

-- The line: keys for which somebody waits and that may have room, in the order of their turns. Whoever serves a key,
-- waits for it or frees a place holds the lock of the key until the end of the transaction (lock_keys). So what was
-- counted stays true, and a key never leaves the line while something about it is about to change.
CREATE TABLE ready_keys (
    limit_name text COLLATE "C" NOT NULL,
    limit_key  text COLLATE "C" NOT NULL,
    turn       bigint GENERATED BY DEFAULT AS IDENTITY,
    not_before bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (limit_name, limit_key)
);

CREATE INDEX ready_keys_turn ON ready_keys (turn);

-- Until when the starts of keys with a rate count.
CREATE TABLE key_starts (
    limit_name text COLLATE "C" NOT NULL,
    limit_key  text COLLATE "C" NOT NULL,
    until      bigint NOT NULL,
    tasks      integer NOT NULL,
    PRIMARY KEY (limit_name, limit_key, until)
);

CREATE INDEX key_starts_over ON key_starts (until);

-- Whether a row that nobody needs counts until its host has stopped the task.
CREATE FUNCTION still_counts(limit_name text, host text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT limit_name IS NOT NULL AND coalesce(host, '-') <> '-'
$$;

-- The number of the lock of a key.
CREATE FUNCTION key_lock(name text, key text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(name || E'\n' || key, 0)
$$;

-- Wait for the locks of keys. All transactions take them in the same order, and after the rows of runs.
CREATE FUNCTION lock_keys(names text[], keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(a.lock) FROM (
        SELECT DISTINCT weft.key_lock(v.name, v.key) AS lock FROM unnest(names, keys) AS v (name, key)
        WHERE v.name IS NOT NULL ORDER BY 1
    ) AS a;
END
$$;

-- Put keys into the line, and lock them.
CREATE FUNCTION line_up(names text[], keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF names IS NULL OR array_remove(names, NULL) = '{}' THEN
        RETURN;
    END IF;
    PERFORM lock_keys(names, keys);
    INSERT INTO ready_keys AS k (limit_name, limit_key)
    SELECT DISTINCT a.name, a.key FROM unnest(names, keys) AS a (name, key) WHERE a.name IS NOT NULL ORDER BY 1, 2
    ON CONFLICT (limit_name, limit_key) DO NOTHING;
END
$$;

-- Whoever removes a taken row frees its place: if somebody waits for it, the key is put into the line. Names have their
-- schema, because a search path of its own would cost every call more than all that it does.
CREATE FUNCTION free_places() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    names text[];
    keys  text[];
BEGIN
    SELECT array_agg(g.limit_name), array_agg(g.limit_key) INTO names, keys
    FROM gone g WHERE g.limit_name IS NOT NULL AND g.host IS NOT NULL;
    IF names IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM weft.lock_keys(names, keys);
    -- A statement of its own: it sees whoever began to wait while this one waited for the locks.
    INSERT INTO weft.ready_keys (limit_name, limit_key)
    SELECT DISTINCT v.name, v.key FROM unnest(names, keys) AS v (name, key)
    WHERE EXISTS (SELECT 1 FROM weft.tasks t WHERE t.host IS NULL AND t.limit_name = v.name AND t.limit_key = v.key)
    ORDER BY 1, 2 ON CONFLICT (limit_name, limit_key) DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER places_freed AFTER DELETE ON tasks REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION free_places();

-- The time by which rates are judged: the clock of the server, which is the same for all. A caller whose time is far
-- from it lives in another time, as tests do.
CREATE FUNCTION rate_time(at_time bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN abs(s.now - at_time) < 60000 THEN s.now ELSE at_time END
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS s
$$;

-- How many more of a key may begin: the room of its limit, or `most` if that is less.
CREATE FUNCTION key_room(name text, key text, at_time bigint, most bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(0, least(
        most,
        (SELECT l.concurrency - CASE WHEN l.concurrency IS NOT NULL THEN (
            SELECT count(*) FROM tasks t
            WHERE t.host IS NOT NULL AND t.limit_name = key_room.name AND t.limit_key = key_room.key
        ) END FROM key_limits l WHERE l.name = key_room.name),
        (SELECT l.rate - CASE WHEN l.rate IS NOT NULL THEN (
            SELECT coalesce(sum(s.tasks), 0) FROM key_starts s
            WHERE s.limit_name = key_room.name AND s.limit_key = key_room.key AND s.until > at_time
        ) END FROM key_limits l WHERE l.name = key_room.name)
    ))
$$;

-- Count tasks that begin against the rates of their keys. `places`: those that do, in the arrays of names and keys.
-- Above a rate of 64, starts are counted in 64 parts of the period, and each until the end of its part.
CREATE FUNCTION count_starts(names text[], keys text[], places bigint[], at_time bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM key_limits l WHERE l.rate IS NOT NULL AND l.name = ANY (names)) THEN
        RETURN;
    END IF;
    DELETE FROM key_starts WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM key_starts s WHERE s.until <= at_time ORDER BY s.until LIMIT 200 FOR UPDATE SKIP LOCKED
    ));
    INSERT INTO key_starts AS s (limit_name, limit_key, until, tasks)
    SELECT names[p.place], keys[p.place], l.per_ms + CASE
        WHEN l.rate <= 64 THEN at_time
        ELSE (at_time / greatest(1, l.per_ms / 64) + 1) * greatest(1, l.per_ms / 64)
    END, count(*)
    FROM unnest(places) AS p (place) JOIN key_limits l ON l.name = names[p.place] AND l.rate IS NOT NULL
    GROUP BY 1, 2, 3
    ON CONFLICT (limit_name, limit_key, until) DO UPDATE SET tasks = s.tasks + excluded.tasks;
END
$$;

-- After keys had their turn: count what began against their rates, and put those that still wait at the end of the line.
-- A key whose concurrency is used up leaves the line; it comes back when a place is freed.
CREATE FUNCTION end_turns(names text[], keys text[], taken bigint[], at_time bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_starts(array_agg(t.limit_name), array_agg(t.limit_key), array_agg(t.place), at_time) FROM (
        SELECT t.limit_name, t.limit_key, row_number() OVER () AS place FROM tasks t WHERE t.num = ANY (taken)
    ) AS t HAVING count(*) > 0;
    WITH seen AS (
        SELECT v.name, v.key,
            EXISTS (
                SELECT 1 FROM tasks t WHERE t.host IS NULL AND t.limit_name = v.name AND t.limit_key = v.key
            ) AS waits,
            l.concurrency IS NOT NULL AND l.concurrency <= (
                SELECT count(*) FROM tasks t
                WHERE t.host IS NOT NULL AND t.limit_name = v.name AND t.limit_key = v.key
            ) AS used_up,
            CASE WHEN l.rate IS NOT NULL THEN (
                SELECT CASE WHEN sum(s.tasks) >= l.rate THEN min(s.until) END FROM key_starts s
                WHERE s.limit_name = v.name AND s.limit_key = v.key AND s.until > at_time
            ) END AS not_before
        FROM unnest(names, keys) AS v (name, key) LEFT JOIN key_limits l ON l.name = v.name
    ), gone AS (
        DELETE FROM ready_keys k USING seen s
        WHERE k.limit_name = s.name AND k.limit_key = s.key AND (NOT s.waits OR s.used_up)
    )
    UPDATE ready_keys k
    SET turn = nextval(pg_get_serial_sequence('ready_keys', 'turn')), not_before = coalesce(s.not_before, 0)
    FROM seen s WHERE k.limit_name = s.name AND k.limit_key = s.key AND s.waits AND NOT s.used_up;
END
$$;

-- Tasks with limits per key, in the queues `within` (null: all) and not in the queues `never`.
CREATE FUNCTION take_turns(who text, known text[], within text[], never text[], at_time bigint, most bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    judged bigint := rate_time(at_time);
    names  text[];
    keys   text[];
    share  bigint;
    picked bigint[];
BEGIN
    SELECT array_agg(k.limit_name), array_agg(k.limit_key) INTO names, keys FROM (
        SELECT limit_name, limit_key FROM ready_keys
        WHERE not_before <= judged AND CASE
            WHEN known IS NULL THEN starts_with(limit_name, 'step/')
            ELSE limit_name = ANY (SELECT 'step/' || s FROM unnest(known) AS s)
        END
        ORDER BY turn LIMIT most FOR UPDATE SKIP LOCKED
    ) AS k WHERE pg_try_advisory_xact_lock(key_lock(k.limit_name, k.limit_key));
    IF names IS NULL THEN
        RETURN '{}';
    END IF;
    share := greatest(1, most / cardinality(names));
    -- A statement of its own: it sees all that was done by those who held these keys before.
    picked := ARRAY(
        SELECT p.num FROM unnest(names, keys) AS v (name, key)
        CROSS JOIN LATERAL (
            SELECT t.num FROM tasks t
            WHERE t.host IS NULL AND t.limit_name = v.name AND t.limit_key = v.key
                AND (known IS NULL OR t.step = ANY (known))
                AND t.not_before <= at_time AND (within IS NULL OR t.queue = ANY (within)) AND t.queue <> ALL (never)
                AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND NOT is_over(r.status))
            ORDER BY t.num LIMIT key_room(v.name, v.key, judged, share) FOR UPDATE OF t SKIP LOCKED
        ) AS p
    );
    PERFORM hand_out(who, picked, at_time);
    PERFORM end_turns(names, keys, picked, judged);
    RETURN picked;
END
$$;

-- Tasks of one priority with limits per key.
CREATE FUNCTION take_keyed(who text, names text[], known text[], level integer, at_time bigint, most bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    others text[] := ARRAY(
        SELECT q.queue FROM queues q WHERE is_limited(q) OR q.priority <> level
    );
    within text[] := names;
    name   text;
    room   bigint;
    taken  bigint[] := '{}';
BEGIN
    IF level <> 0 THEN
        within := ARRAY(
            SELECT q.queue FROM queues q WHERE q.queue <> ALL (others) AND (names IS NULL OR q.queue = ANY (names))
        );
    END IF;
    IF most > 0 AND who <> 'stream' AND within IS DISTINCT FROM '{}' THEN
        taken := take_turns(who, known, within, others, at_time, most);
    END IF;
    FOR name IN
        SELECT q.queue FROM queues q
        WHERE q.priority = level AND is_limited(q) AND q.stream = (who = 'stream')
            AND (names IS NULL OR q.queue = ANY (names))
        ORDER BY q.queue
    LOOP
        EXIT WHEN cardinality(taken) >= most;
        room := least(most - cardinality(taken), room_of(name, at_time));
        CONTINUE WHEN room <= 0;
        taken := taken || take_turns(who, known, ARRAY[name], '{}', at_time, room);
    END LOOP;
    RETURN taken;
END
$$;

-- One round of a host: remove rows of tasks that have ended there, insert rows of tasks that its runs offer, and give it
-- those that may begin at once. These are among the first `most`, their key has room and nobody waits for it, and their
-- queue has neither limits nor a priority. Returns their places in the arrays, and whether anything may be taken now.
-- Everything is found row by row in its index: the server does not know that these tables are small only for a moment.
CREATE FUNCTION exchange_tasks(
    who text, at_time bigint, most bigint,
    old_uids text[], old_tasks bigint[], old_attempts integer[], old_deliveries integer[], old_names text[], old_keys text[],
    uids text[], task_nums bigint[], attempts integer[], deliveries integer[], steps text[], queue_names text[],
    bodies text[], epochs bigint[], times bigint[], limit_names text[], limit_keys text[],
    OUT taken bigint[], OUT is_ready boolean
) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    judged bigint := rate_time(at_time);
    names  text[] := old_names || limit_names;
    keys   text[] := old_keys || limit_keys;
    ruled  text[] := ARRAY(
        SELECT q.queue FROM queues q WHERE is_limited(q) OR q.priority <> 0
    );
    nums   bigint[];
    ranks  integer[];
    begins boolean[];
BEGIN
    taken := '{}';
    is_ready := false;
    IF uids <> '{}' THEN
        PERFORM 1 FROM (SELECT DISTINCT u.uid COLLATE "C" AS uid FROM unnest(uids) AS u (uid) ORDER BY 1) AS u
        CROSS JOIN LATERAL (SELECT 1 FROM runs r WHERE r.uid = u.uid FOR NO KEY UPDATE) AS f;
    END IF;
    PERFORM lock_keys(names, keys);
    IF old_uids <> '{}' THEN
        DELETE FROM tasks WHERE num = ANY (ARRAY(
            SELECT f.num FROM unnest(old_uids, old_tasks, old_attempts, old_deliveries) AS a (uid, task, attempt, delivery)
            CROSS JOIN LATERAL (
                SELECT t.num FROM tasks t
                WHERE t.run = (SELECT r.num FROM runs r WHERE r.uid = a.uid) AND t.task = a.task
                    AND t.attempt = a.attempt AND t.delivery = a.delivery AND t.host = who
                OFFSET 0
            ) AS f
        ));
    END IF;
    IF uids <> '{}' THEN
        SELECT array_agg(w.num ORDER BY w.n), array_agg(w.priority ORDER BY w.n), array_agg(coalesce(
            w.n <= most AND w.limit_name IS NOT NULL AND w.rank <= coalesce(w.room, most) AND w.not_before <= at_time
            AND w.queue <> ALL (ruled), false
        ) ORDER BY w.n)
        INTO nums, ranks, begins
        FROM (
            SELECT t.n, t.queue, t.not_before, t.limit_name, f.num, f.priority,
                row_number() OVER (PARTITION BY t.limit_name, t.limit_key ORDER BY f.num IS NULL, t.n) AS rank,
                CASE WHEN EXISTS (
                    SELECT 1 FROM tasks o
                    WHERE o.host IS NULL AND o.limit_name = t.limit_name AND o.limit_key = t.limit_key
                ) THEN 0 ELSE least(
                    l.concurrency - CASE WHEN l.concurrency IS NOT NULL THEN (
                        SELECT count(*) FROM tasks o
                        WHERE o.host IS NOT NULL AND o.limit_name = t.limit_name AND o.limit_key = t.limit_key
                    ) END,
                    l.rate - CASE WHEN l.rate IS NOT NULL THEN (
                        SELECT coalesce(sum(s.tasks), 0) FROM key_starts s
                        WHERE s.limit_name = t.limit_name AND s.limit_key = t.limit_key AND s.until > judged
                    ) END
                ) END AS room
            FROM unnest(
                uids, task_nums, attempts, deliveries, queue_names, epochs, times, limit_names, limit_keys
            ) WITH ORDINALITY
                AS t (uid, task, attempt, delivery, queue, epoch, not_before, limit_name, limit_key, n)
            LEFT JOIN LATERAL (
                SELECT r.num, r.priority FROM runs r
                WHERE r.uid = t.uid AND r.epoch = t.epoch AND r.owner IS NOT NULL AND NOT is_over(r.status)
                    AND NOT EXISTS (
                        SELECT 1 FROM tasks o WHERE o.run = r.num AND o.task = t.task AND o.attempt = t.attempt
                            AND o.delivery = t.delivery AND o.unwanted = 0
                    )
                OFFSET 0
            ) AS f ON true
            LEFT JOIN key_limits l ON l.name = t.limit_name
        ) AS w;
        INSERT INTO tasks (
            run, task, attempt, delivery, step, queue, body, epoch, not_before, limit_name, limit_key, priority, host
        )
        SELECT t.run, t.task, t.attempt, t.delivery, t.step, t.queue, t.body, t.epoch, t.not_before, t.limit_name,
            t.limit_key, t.priority, CASE WHEN t.begins THEN who END
        FROM unnest(
            nums, task_nums, attempts, deliveries, steps, queue_names, bodies, epochs, times, limit_names, limit_keys,
            ranks, begins
        ) WITH ORDINALITY AS t (
            run, task, attempt, delivery, step, queue, body, epoch, not_before, limit_name, limit_key, priority, begins, n
        )
        WHERE t.run IS NOT NULL ORDER BY t.n;
        taken := ARRAY(
            SELECT t.n FROM unnest(nums, begins) WITH ORDINALITY AS t (run, begins, n) WHERE t.run IS NOT NULL AND t.begins
        );
        IF taken <> '{}' THEN
            PERFORM count_starts(limit_names, limit_keys, taken, judged);
        END IF;
        IF cardinality(taken) < cardinality(uids) THEN
            -- A key whose concurrency is used up comes into the line when a place is freed.
            INSERT INTO ready_keys (limit_name, limit_key)
            SELECT DISTINCT t.name, t.key FROM unnest(limit_names, limit_keys, nums, begins) AS t (name, key, run, begins)
            WHERE t.name IS NOT NULL AND t.run IS NOT NULL AND NOT t.begins AND coalesce((
                SELECT l.concurrency FROM key_limits l WHERE l.name = t.name
            ) > (
                SELECT count(*) FROM tasks o WHERE o.host IS NOT NULL AND o.limit_name = t.name AND o.limit_key = t.key
            ), true)
            ORDER BY 1, 2 ON CONFLICT (limit_name, limit_key) DO NOTHING;
            is_ready := EXISTS (
                SELECT 1 FROM unnest(limit_names, nums) AS t (name, run) WHERE t.name IS NULL AND t.run IS NOT NULL
            );
        END IF;
    END IF;
    is_ready := is_ready OR EXISTS (SELECT 1 FROM ready_keys) AND EXISTS (
        SELECT 1 FROM unnest(names, keys) AS v (name, key)
        JOIN ready_keys k ON k.limit_name = v.name AND k.limit_key = v.key
    );
END
$$;

-- Remove tasks that are no longer wanted. Those that a host performs under a limit count until it has stopped them.
CREATE FUNCTION withdraw_tasks(of_run text, task_nums bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    run_of bigint := (SELECT r.num FROM runs r WHERE r.uid = of_run);
BEGIN
    DELETE FROM tasks t WHERE t.run = run_of AND t.task = ANY (task_nums) AND NOT still_counts(t.limit_name, t.host);
    UPDATE tasks t SET unwanted = t.num WHERE t.run = run_of AND t.task = ANY (task_nums) AND t.unwanted = 0;
END
$$;

-- Set a limit, and look again at all that waits for it.
CREATE FUNCTION declare_limit(
    limit_of text, new_concurrency integer, new_rate integer, new_per_ms bigint, new_body text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF new_body IS NULL THEN
        DELETE FROM key_limits WHERE name = limit_of;
    ELSE
        INSERT INTO key_limits (name, concurrency, rate, per_ms, body)
        VALUES (limit_of, new_concurrency, new_rate, new_per_ms, new_body)
        ON CONFLICT (name) DO UPDATE
        SET concurrency = new_concurrency, rate = new_rate, per_ms = new_per_ms, body = new_body;
    END IF;
    INSERT INTO ready_keys (limit_name, limit_key)
    SELECT DISTINCT t.limit_name, t.limit_key FROM tasks t WHERE t.host IS NULL AND t.limit_name = limit_of ORDER BY 1, 2
    ON CONFLICT (limit_name, limit_key) DO UPDATE SET not_before = 0;
END
$$;

-- Let a run begin that has no events, or let it wait without an owner until it may. Whether it may.
CREATE FUNCTION admit_run(
    who text, of_run text, of_epoch bigint, workflow text, name text, key text, at_time bigint, never bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    judged bigint := rate_time(at_time);
    run_of bigint;
    place  tasks;
    first  boolean;
BEGIN
    SELECT r.num INTO run_of FROM runs r
    WHERE r.uid = of_run AND r.epoch = of_epoch AND r.owner = who AND r.seq = 0 FOR NO KEY UPDATE;
    IF run_of IS NULL THEN
        RETURN false;
    END IF;
    PERFORM line_up(ARRAY[name], ARRAY[key]);
    SELECT * INTO place FROM tasks t WHERE t.run = run_of AND t.task = 0;
    IF place.num IS NULL THEN
        first := NOT EXISTS (
            SELECT 1 FROM tasks t WHERE t.host IS NULL AND t.limit_name = name AND t.limit_key = key
        ) AND key_room(name, key, judged, 1) > 0;
        INSERT INTO tasks (run, task, attempt, delivery, step, queue, body, epoch, not_before, host, limit_name, limit_key)
        VALUES (run_of, 0, 0, 0, workflow, '', '', of_epoch, 0, CASE WHEN first THEN '-' END, name, key)
        RETURNING * INTO place;
        PERFORM end_turns(
            ARRAY[name], ARRAY[key], CASE WHEN first THEN ARRAY[place.num] ELSE '{}'::bigint[] END, judged
        );
    END IF;
    IF place.host IS NULL THEN
        UPDATE runs SET owner = NULL, wal = NULL, wake_at = never WHERE num = run_of;
    END IF;
    RETURN place.host IS NOT NULL;
END
$$;

-- Let runs begin that wait for the limits of their workflows. How many.
CREATE FUNCTION admit_runs(at_time bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    judged bigint := rate_time(at_time);
    names  text[];
    keys   text[];
    share  bigint;
    picked bigint[];
BEGIN
    SELECT array_agg(k.limit_name), array_agg(k.limit_key) INTO names, keys FROM (
        SELECT limit_name, limit_key FROM ready_keys
        WHERE not_before <= judged AND limit_name LIKE 'workflow/%' ORDER BY turn LIMIT most FOR UPDATE SKIP LOCKED
    ) AS k WHERE pg_try_advisory_xact_lock(key_lock(k.limit_name, k.limit_key));
    IF names IS NULL THEN
        RETURN 0;
    END IF;
    share := greatest(1, most / cardinality(names));
    picked := ARRAY(
        SELECT p.num FROM unnest(names, keys) AS v (name, key)
        CROSS JOIN LATERAL (
            SELECT t.num FROM tasks t JOIN runs r ON r.num = t.run
            WHERE t.host IS NULL AND t.limit_name = v.name AND t.limit_key = v.key AND r.owner IS NULL
            ORDER BY t.num LIMIT key_room(v.name, v.key, judged, share) FOR UPDATE SKIP LOCKED
        ) AS p
    );
    UPDATE tasks SET host = '-' WHERE num = ANY (picked);
    UPDATE runs r SET wake_at = NULL FROM tasks t WHERE t.num = ANY (picked) AND r.num = t.run;
    PERFORM end_turns(names, keys, picked, judged);
    RETURN cardinality(picked);
END
$$;
