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
    per_ms      bigint NOT NULL
);

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
    IF q.concurrency IS NOT NULL THEN
        room := q.concurrency - (SELECT count(*) FROM tasks t WHERE t.queue = name AND t.host IS NOT NULL);
    END IF;
    IF q.rate IS NOT NULL THEN
        DELETE FROM handed_out h WHERE h.queue = name AND h.at <= at_time - q.per_ms;
        -- least() leaves out a null.
        room := least(room, q.rate - (SELECT coalesce(sum(h.tasks), 0) FROM handed_out h WHERE h.queue = name));
    END IF;
    RETURN CASE WHEN room < 0 THEN 0 ELSE room END;
END
$$;

-- Numbers of tasks that are free and due, oldest first. Locked, and not waited for.
CREATE FUNCTION free_tasks(names text[], known text[], at_time bigint, most bigint) RETURNS SETOF bigint LANGUAGE sql AS $$
    SELECT t.num FROM tasks t
    WHERE t.host IS NULL AND t.queue = ANY (names) AND t.step = ANY (known) AND t.not_before <= at_time
        AND EXISTS (SELECT 1 FROM runs r WHERE r.num = t.run AND NOT is_over(r.status))
    ORDER BY t.num LIMIT most FOR UPDATE OF t SKIP LOCKED
$$;

-- Give a host tasks: of queues of higher priority first, then the oldest, and no more than the limits of each queue.
CREATE FUNCTION take_tasks(who text, names text[], known text[], at_time bigint, most bigint)
RETURNS SETOF tasks LANGUAGE plpgsql AS $$
DECLARE
    level  record;
    name   text;
    picked bigint[];
    taken  bigint[] := '{}';
BEGIN
    FOR level IN
        SELECT coalesce(q.priority, 0) AS priority,
            array_agg(n.name ORDER BY n.name)
                FILTER (WHERE coalesce(q.concurrency, q.rate) IS NOT NULL) AS limited,
            array_agg(n.name) FILTER (WHERE coalesce(q.concurrency, q.rate) IS NULL) AS free
        FROM unnest(names) AS n (name) LEFT JOIN queues q ON q.queue = n.name
        GROUP BY 1 ORDER BY 1 DESC
    LOOP
        picked := ARRAY(SELECT * FROM free_tasks(level.free, known, at_time, most - cardinality(taken)));
        IF level.limited IS NOT NULL THEN
            FOREACH name IN ARRAY level.limited LOOP
                -- Without tasks that wait there is nothing to count, and nobody to hold up.
                CONTINUE WHEN NOT EXISTS (SELECT 1 FROM tasks t WHERE t.host IS NULL AND t.queue = name);
                picked := picked || ARRAY(SELECT * FROM free_tasks(
                    ARRAY[name], known, at_time, least(most - cardinality(taken), room_of(name, at_time))
                ));
            END LOOP;
        END IF;
        taken := taken || ARRAY(SELECT p FROM unnest(picked) AS p ORDER BY p LIMIT most - cardinality(taken));
        EXIT WHEN cardinality(taken) >= most;
    END LOOP;
    INSERT INTO handed_out (queue, at, tasks)
    SELECT t.queue, at_time, count(*) FROM tasks t JOIN queues q ON q.queue = t.queue AND q.rate IS NOT NULL
    WHERE t.num = ANY (taken) GROUP BY t.queue;
    RETURN QUERY UPDATE tasks t SET host = who WHERE t.num = ANY (taken) RETURNING t.*;
END
$$;
