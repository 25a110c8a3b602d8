-- Limits per key find each row by its own index, and hold whatever the clocks of hosts say.

DO $$
DECLARE
    exchange text := pg_get_functiondef('exchange_tasks'::regproc);
    settle   text := pg_get_functiondef('settle_tasks'::regproc);
    known    text := 'AND NOT EXISTS (
                        SELECT 1 FROM tasks o WHERE o.run = r.num AND o.task = t.task AND o.attempt = t.attempt
                            AND o.delivery = t.delivery AND o.unwanted = 0
                    )';
BEGIN
    IF position(known IN exchange) = 0 OR position('AND t.host = who' IN exchange) = 0
        OR position('AND t.host = a.host' IN settle) = 0 THEN
        RAISE EXCEPTION 'exchange_tasks or settle_tasks is not as expected';
    END IF;
    -- As a join, it read the rows of all runs that have a task with this number.
    exchange := replace(exchange, known, 'AND (
                        SELECT o.num FROM tasks o WHERE o.run = r.num AND o.task = t.task AND o.attempt = t.attempt
                            AND o.delivery = t.delivery AND o.unwanted = 0 LIMIT 1
                    ) IS NULL');
    -- No index can answer these conditions, so that the row is found by its run and not among all of the host.
    EXECUTE replace(exchange, 'AND t.host = who', 'AND t.host IS NOT DISTINCT FROM who');
    EXECUTE replace(settle, 'AND t.host = a.host', 'AND t.host IS NOT DISTINCT FROM a.host');
END
$$;

-- Few at a time. With the thousand that the server assumes, it reads all runs to join them.
ALTER FUNCTION take_tasks ROWS 10;

-- The time by which rates are judged: the clock of the server, which is the same for all, however wrong those of hosts
-- are. Only tests count from zero. Rounded down, so that no start stops counting early.
CREATE OR REPLACE FUNCTION rate_time(at_time bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE
        WHEN at_time < 1000000000000 THEN at_time ELSE floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
    END
$$;

-- Starts that no longer count are removed by one call in sixteen: each removal passes those that were removed before it.
DO $$
DECLARE
    body text := pg_get_functiondef('count_starts'::regproc);
    rule text := 'SELECT s.ctid FROM key_starts s WHERE s.until <= at_time ORDER BY s.until LIMIT 200 FOR UPDATE SKIP LOCKED';
BEGIN
    IF position(rule IN body) = 0 THEN
        RAISE EXCEPTION 'count_starts is not as expected';
    END IF;
    EXECUTE replace(body, rule,
        'SELECT s.ctid FROM key_starts s WHERE s.until <= at_time AND at_time % 16 = 0
        ORDER BY s.until LIMIT 5000 FOR UPDATE SKIP LOCKED');
END
$$;
