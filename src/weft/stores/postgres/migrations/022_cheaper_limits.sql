-- Limits per key that cost less, and rates that hold to the millisecond.

-- The time by which rates are judged: the clock of the server, which is the same for all. A caller whose time is far
-- from it lives in another time, as tests do. Rounded down, so that no start stops counting early.
CREATE OR REPLACE FUNCTION rate_time(at_time bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN abs(s.now - at_time) < 60000 THEN s.now ELSE at_time END
    FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) AS s
$$;

-- Count tasks that begin against the rates of their keys. `places`: those that do, in the arrays of names and keys.
-- Above a rate of 64, starts are counted in 64 parts of the period, and each until the end of its part. A task begins
-- after it was judged, because its transaction has waited for locks since. So it counts from now on, not from then.
CREATE OR REPLACE FUNCTION count_starts(names text[], keys text[], places bigint[], at_time bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now_ms numeric := extract(epoch FROM clock_timestamp()) * 1000;
    began  bigint := CASE WHEN abs(now_ms - at_time) < 60000 THEN ceil(now_ms) ELSE at_time END;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM key_limits l WHERE l.rate IS NOT NULL AND l.name = ANY (names)) THEN
        RETURN;
    END IF;
    DELETE FROM key_starts WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM key_starts s WHERE s.until <= at_time ORDER BY s.until LIMIT 200 FOR UPDATE SKIP LOCKED
    ));
    INSERT INTO key_starts AS s (limit_name, limit_key, until, tasks)
    SELECT names[p.place], keys[p.place], l.per_ms + CASE
        WHEN l.rate <= 64 THEN began
        ELSE (began / greatest(1, l.per_ms / 64) + 1) * greatest(1, l.per_ms / 64)
    END, count(*)
    FROM unnest(places) AS p (place) JOIN key_limits l ON l.name = names[p.place] AND l.rate IS NOT NULL
    GROUP BY 1, 2, 3
    ON CONFLICT (limit_name, limit_key, until) DO UPDATE SET tasks = s.tasks + excluded.tasks;
END
$$;

-- Whoever asks for tasks needs the same plans each time; to make them anew costs more than to follow them.
ALTER FUNCTION take_tasks SET enable_seqscan = off SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION admit_run SET enable_seqscan = off SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION admit_runs SET enable_seqscan = off SET plan_cache_mode = force_generic_plan;

-- A key that waits for its rate wakes nobody when one of its tasks ends: hosts know when its turn comes.
DO $$
DECLARE
    body text := pg_get_functiondef('exchange_tasks'::regproc);
    rule text := 'k.limit_name = v.name AND k.limit_key = v.key';
BEGIN
    IF position(rule IN body) = 0 THEN
        RAISE EXCEPTION 'exchange_tasks is not as expected';
    END IF;
    EXECUTE replace(body, rule, rule || ' AND k.not_before <= judged');
END
$$;

-- Remove the rows of tasks that hosts have taken, and deliver their reports. Returns the places of those that were there.
-- The runs are locked first, and in one order, then the keys of the limits.
CREATE FUNCTION settle_tasks(
    hosts text[], uids text[], task_nums bigint[], attempts integer[], deliveries integer[],
    targets text[], mail_ids text[], times bigint[], mail_keys text[], digests text[], bodies text[], crcs bigint[]
) RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    nums    bigint[];
    places  bigint[];
    settled bigint[];
BEGIN
    PERFORM 1 FROM (
        SELECT DISTINCT u.uid COLLATE "C" AS uid FROM unnest(uids || targets) AS u (uid) ORDER BY 1
    ) AS u CROSS JOIN LATERAL (SELECT 1 FROM runs r WHERE r.uid = u.uid FOR NO KEY UPDATE) AS f;
    SELECT array_agg(f.num), array_agg(f.n) INTO nums, places FROM (
        SELECT t.num, min(a.n) AS n
        FROM unnest(hosts, uids, task_nums, attempts, deliveries) WITH ORDINALITY
            AS a (host, uid, task, attempt, delivery, n)
        CROSS JOIN LATERAL (
            SELECT t.num FROM tasks t
            WHERE t.run = (SELECT r.num FROM runs r WHERE r.uid = a.uid) AND t.task = a.task
                AND t.attempt = a.attempt AND t.delivery = a.delivery AND t.host = a.host
            OFFSET 0
        ) AS t GROUP BY t.num
    ) AS f;
    WITH gone AS (
        DELETE FROM tasks t WHERE t.num = ANY (nums) AND t.host IS NOT NULL RETURNING t.num
    )
    SELECT array_agg(f.n ORDER BY f.n) INTO settled FROM unnest(nums, places) AS f (num, n) JOIN gone g ON g.num = f.num;
    PERFORM deliver(targets[p.n], mail_ids[p.n], times[p.n], mail_keys[p.n], digests[p.n], bodies[p.n], crcs[p.n])
    FROM unnest(settled) AS p (n);
    RETURN coalesce(settled, '{}');
END
$$;
