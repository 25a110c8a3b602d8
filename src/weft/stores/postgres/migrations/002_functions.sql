-- What must be decided and written in one statement, without a pause for the client. A caller that locks several runs
-- locks all of them first, in the order of their uids; so nobody waits in a circle.

CREATE FUNCTION is_over(status text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT status IN ('completed', 'failed', 'cancelled')
$$;

-- Make rows of runs, with their start mail; those that were made. An id or uid that is taken: no row.
CREATE FUNCTION make_runs(new json) RETURNS TABLE (made text, number bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT * FROM ROWS FROM (json_to_recordset(new) AS (
            uid text, id text, workflow text, version text, style text, status text, seq bigint, updated_at bigint,
            owner text, wake_at bigint, format integer, parent text, created_at bigint, ended_at bigint,
            attributes jsonb, wal bigint, start text, start_crc bigint, idle_until bigint
        )) WITH ORDINALITY AS w
    ),
    added AS (
        INSERT INTO runs AS r (
            uid, id, workflow, version, style, status, seq, updated_at, epoch, owner, wal, mail, mail_at, wake_at, format,
            parent, created_at, ended_at, attributes, idle_until
        )
        SELECT
            w.uid, w.id, w.workflow, w.version, w.style, w.status, w.seq, w.updated_at,
            CASE WHEN w.owner IS NULL THEN 0 ELSE 1 END,
            CASE WHEN is_over(w.status) THEN NULL ELSE w.owner END,
            CASE WHEN w.wal IS NOT NULL AND NOT is_over(w.status)
                THEN (SELECT l.id FROM wals l WHERE l.id = w.wal AND l.drained_at IS NULL) END,
            CASE WHEN w.start IS NULL THEN 0 ELSE 1 END,
            CASE WHEN w.start IS NULL THEN NULL ELSE w.created_at END,
            CASE WHEN is_over(w.status) THEN NULL ELSE w.wake_at END,
            w.format, w.parent, w.created_at, w.ended_at, w.attributes, w.idle_until
        FROM wanted w
        -- Everybody in the same order: two who make the same ids at once do not wait for each other in a circle.
        ORDER BY w.id COLLATE "C", w.ordinality
        ON CONFLICT DO NOTHING
        RETURNING r.uid, r.num
    ),
    started AS (
        SELECT a.num, w.created_at, w.start, w.start_crc FROM added a JOIN wanted w ON w.uid = a.uid
        WHERE w.start IS NOT NULL
    ),
    counted AS (INSERT INTO posted (run, id, n) SELECT s.num, 'start', 1 FROM started s),
    filled AS (
        INSERT INTO inbox (run, n, id, at, digest, body, crc)
        SELECT s.num, 1, 'start', s.created_at, '', s.start, s.start_crc FROM started s
    )
    SELECT a.uid, a.num FROM added a;
END
$$;

-- Make the row of a child under its own id, or under one that nobody else can have.
CREATE FUNCTION make_child(child json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own_uid text := child ->> 'uid';
    own_id  text := child ->> 'id';
    try_id  text;
BEGIN
    IF EXISTS (SELECT 1 FROM runs WHERE uid = own_uid) THEN
        RETURN;
    END IF;
    FOREACH try_id IN ARRAY ARRAY[own_id, own_id || '~' || left(own_uid, 8), own_id || '~' || own_uid] LOOP
        PERFORM 1 FROM make_runs(json_build_array(child::jsonb || jsonb_build_object('id', try_id)));
        EXIT WHEN FOUND;
    END LOOP;
END
$$;

-- Put mail into its run's inbox, once. Keys come before the state: a duplicate is one after the end too.
CREATE FUNCTION deliver(
    target text, mail_id text, sent_at bigint, mail_key text, mail_digest text, mail_body text, mail_crc bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    run_num    bigint;
    run_status text;
    run_mail   bigint;
    known      text;
BEGIN
    SELECT num, status, mail INTO run_num, run_status, run_mail FROM runs WHERE uid = target FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'unknown_run';
    END IF;
    IF mail_key IS NOT NULL THEN
        SELECT digest INTO known FROM keys WHERE run = run_num AND key = mail_key;
        IF FOUND THEN
            RETURN CASE WHEN known = mail_digest THEN 'duplicate' ELSE 'key_reused' END;
        END IF;
    END IF;
    IF EXISTS (SELECT 1 FROM posted WHERE run = run_num AND id = mail_id) THEN
        RETURN 'duplicate';
    END IF;
    IF is_over(run_status) THEN
        RETURN 'over';
    END IF;
    IF mail_key IS NOT NULL THEN
        INSERT INTO keys (run, key, digest, seq) VALUES (run_num, mail_key, mail_digest, 0);
    END IF;
    INSERT INTO posted (run, id, n) VALUES (run_num, mail_id, run_mail + 1);
    INSERT INTO inbox (run, n, id, at, key, digest, body, crc)
    VALUES (run_num, run_mail + 1, mail_id, sent_at, mail_key, mail_digest, mail_body, mail_crc);
    UPDATE runs SET mail = mail + 1, mail_at = coalesce(mail_at, sent_at) WHERE num = run_num;
    RETURN 'accepted';
END
$$;

CREATE FUNCTION send_mail(
    targets text[], ids text[], ats bigint[], keys text[], digests text[], bodies text[], crcs bigint[]
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    answers text[] := '{}';
BEGIN
    PERFORM 1 FROM runs WHERE uid = ANY (targets) ORDER BY uid FOR NO KEY UPDATE;
    FOR i IN 1 .. cardinality(targets) LOOP
        answers := answers || deliver(targets[i], ids[i], ats[i], keys[i], digests[i], bodies[i], crcs[i]);
    END LOOP;
    RETURN answers;
END
$$;

-- Keys, mail taken, attributes and blobs of accepted appends. `nums` has the run of each append, 0 where it was refused.
CREATE FUNCTION write_parts(nums bigint[], parts json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    piece record;
BEGIN
    IF parts -> 'taken' IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM inbox i
            USING json_to_recordset(parts -> 'taken') AS t (of integer, id text), posted p
            WHERE nums[t.of] <> 0 AND p.run = nums[t.of] AND p.id = t.id AND i.run = p.run AND i.n = p.n
            RETURNING i.run, i.key
        )
        -- A key that its mail brought and that no event uses is free again: a rejection uses up no key.
        DELETE FROM keys k USING gone g WHERE k.run = g.run AND k.key = g.key AND k.seq = 0;
        UPDATE runs r SET mail_at = (SELECT i.at FROM inbox i WHERE i.run = r.num ORDER BY i.n LIMIT 1)
        WHERE r.num IN (SELECT nums[t.of] FROM json_to_recordset(parts -> 'taken') AS t (of integer));
    END IF;
    IF parts -> 'keys' IS NOT NULL THEN
        INSERT INTO keys (run, key, digest, seq)
        SELECT DISTINCT ON (nums[k.of], k.key) nums[k.of], k.key, k.digest, k.seq
        FROM json_to_recordset(parts -> 'keys') AS k (of integer, key text, digest text, seq bigint)
        WHERE nums[k.of] <> 0
        ON CONFLICT (run, key) DO UPDATE SET digest = excluded.digest, seq = excluded.seq;
    END IF;
    IF parts -> 'resolved' IS NOT NULL THEN
        UPDATE runs r SET version = n.version, style = n.style
        FROM json_to_recordset(parts -> 'resolved') AS n (of integer, version text, style text)
        WHERE r.num = nums[n.of];
    END IF;
    IF parts -> 'attributes' IS NOT NULL THEN
        UPDATE runs r SET attributes = (
            SELECT coalesce(jsonb_object_agg(key, value), '{}')
            FROM jsonb_each(r.attributes || a.changes) WHERE value <> 'null'
        )
        FROM json_to_recordset(parts -> 'attributes') AS a (of integer, changes jsonb)
        WHERE r.num = nums[a.of];
    END IF;
    IF parts -> 'refs' IS NOT NULL THEN
        INSERT INTO refs (hash, run)
        SELECT r.hash, nums[r.of] FROM json_to_recordset(parts -> 'refs') AS r (of integer, hash text)
        WHERE nums[r.of] <> 0
        ORDER BY r.hash COLLATE "C"
        ON CONFLICT DO NOTHING;
    END IF;
    IF parts -> 'children' IS NOT NULL THEN
        PERFORM make_child(c.child)
        FROM json_to_recordset(parts -> 'children') AS c (of integer, child json) WHERE nums[c.of] <> 0;
    END IF;
    IF parts -> 'mail' IS NOT NULL THEN
        FOR piece IN
            SELECT m.* FROM json_to_recordset(parts -> 'mail')
                AS m (of integer, target text, id text, at bigint, key text, digest text, body text, crc bigint)
            WHERE nums[m.of] <> 0
        LOOP
            PERFORM deliver(piece.target, piece.id, piece.at, piece.key, piece.digest, piece.body, piece.crc);
        END LOOP;
    END IF;
END
$$;

-- Appends whose keys were used. A key that came by mail is written again with the events that consume that very mail.
CREATE FUNCTION with_taken_keys(nums bigint[], parts json) RETURNS SETOF integer LANGUAGE sql AS $$
    SELECT DISTINCT k.of
    FROM json_to_recordset(parts -> 'keys') AS k (of integer, key text, digest text)
    JOIN keys known ON known.run = nums[k.of] AND known.key = k.key
    WHERE known.seq <> 0 OR known.digest <> k.digest OR NOT EXISTS (
        SELECT 1 FROM json_to_recordset(parts -> 'taken') AS t (of integer, id text)
        JOIN posted p ON p.run = known.run AND p.id = t.id
        JOIN inbox i ON i.run = p.run AND i.n = p.n
        WHERE t.of = k.of AND i.key = k.key
    )
$$;

CREATE FUNCTION keep_snapshots(
    nums bigint[], s_of integer[], s_fold integer[], s_seq bigint[], s_crc bigint[], s_body bytea[]
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO snapshots (run, fold, seq, crc, body)
    SELECT nums[s.of], s.fold, s.seq, s.crc, s.body
    FROM unnest(s_of, s_fold, s_seq, s_crc, s_body) AS s (of, fold, seq, crc, body) WHERE nums[s.of] <> 0
    ON CONFLICT (run, fold) DO UPDATE SET seq = excluded.seq, crc = excluded.crc, body = excluded.body
$$;

-- A batch: each append is judged by itself, under the locks of all, and written or not. One outcome per append.
-- `nexts`: the number of the last event after it; `ats`: its time, null without events; `mails`: mail taken in;
-- `reopens`: a run that nobody owns is opened, and woken then; `births`: made by this append, in parts -> 'births';
-- `idles`: when it next has something to do by itself, taken over where `idling`.
CREATE FUNCTION commit_batch(
    host text, uids text[], epochs bigint[], seqs bigint[], nexts bigint[], ats bigint[], statuses text[],
    mails bigint[], reopens bigint[], births boolean[], idles bigint[], idling boolean[],
    e_of integer[], e_seq bigint[], e_at bigint[], e_crc bigint[], e_body text[],
    s_of integer[], s_fold integer[], s_seq bigint[], s_crc bigint[], s_body bytea[],
    targets text[], parts json
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    born     text[] := '{}';
    nums     bigint[];
    outcomes text[];
    guilty   integer;
BEGIN
    IF parts -> 'births' IS NOT NULL THEN
        SELECT coalesce(array_agg(m.made), '{}') INTO born FROM make_runs(parts -> 'births') m;
    END IF;
    WITH heads AS MATERIALIZED (
        SELECT r.uid, r.num, r.epoch, r.owner, r.seq, r.mail, r.status FROM runs r
        WHERE r.uid = ANY (uids || targets) ORDER BY r.uid FOR NO KEY UPDATE
    ),
    judged AS (
        SELECT a.n, h.num, CASE
            WHEN a.birth THEN CASE WHEN b.uid IS NULL THEN 'id_taken' ELSE 'accepted' END
            WHEN h.num IS NULL OR h.epoch <> a.epoch THEN 'stale_epoch'
            WHEN a.reopen IS NULL AND h.owner IS DISTINCT FROM host THEN 'stale_epoch'
            WHEN a.reopen IS NOT NULL AND h.owner IS NOT NULL THEN 'stale_epoch'
            WHEN a.reopen IS NOT NULL AND h.status NOT IN ('failed', 'held')
                AND NOT (is_over(h.status) AND a.status IS NOT DISTINCT FROM h.status) THEN 'stale_seq'
            WHEN h.seq <> a.seq THEN 'stale_seq'
            WHEN is_over(a.status) AND h.mail <> a.mail THEN 'mail_waiting'
            ELSE 'accepted'
        END AS outcome
        FROM unnest(uids, epochs, seqs, statuses, mails, reopens, births) WITH ORDINALITY
            AS a (uid, epoch, seq, status, mail, reopen, birth, n)
        LEFT JOIN heads h ON h.uid = a.uid
        LEFT JOIN unnest(born) AS b (uid) ON b.uid = a.uid
    )
    SELECT
        array_agg(j.outcome ORDER BY j.n),
        array_agg(CASE WHEN j.outcome IN ('accepted', 'mail_waiting') THEN j.num ELSE 0 END ORDER BY j.n)
    INTO outcomes, nums FROM judged j;
    IF parts -> 'keys' IS NOT NULL THEN
        FOR guilty IN SELECT with_taken_keys(nums, parts) LOOP
            outcomes[guilty] := 'key_taken';
        END LOOP;
    END IF;
    SELECT array_agg(CASE WHEN o.outcome = 'accepted' THEN o.num ELSE 0 END ORDER BY o.n) INTO nums
    FROM unnest(outcomes, nums) WITH ORDINALITY AS o (outcome, num, n);
    -- A run that was over and is opened again: tasks that still run do not belong to what it does next.
    IF array_remove(reopens, NULL) <> '{}' THEN
        UPDATE tasks t SET unwanted = t.num FROM unnest(nums, statuses, reopens) AS a (num, status, reopen), runs r
        WHERE a.reopen IS NOT NULL AND NOT is_over(a.status) AND r.num = a.num AND is_over(r.status)
            AND t.run = a.num AND t.unwanted = 0;
    END IF;
    UPDATE runs r SET
        seq = a.next,
        updated_at = coalesce(a.at, r.updated_at),
        status = coalesce(a.status, r.status),
        owner = CASE WHEN is_over(a.status) THEN NULL ELSE r.owner END,
        wal = CASE WHEN is_over(a.status) THEN NULL ELSE r.wal END,
        idle_until = CASE
            WHEN a.reopen IS NOT NULL AND NOT is_over(a.status) THEN NULL
            WHEN a.idling THEN a.idle
            ELSE r.idle_until
        END,
        wake_at = CASE WHEN is_over(a.status) THEN NULL ELSE coalesce(a.reopen, r.wake_at) END,
        ended_at = CASE
            WHEN is_over(a.status) AND a.reopen IS NOT NULL THEN r.ended_at
            WHEN is_over(a.status) THEN coalesce(a.at, r.updated_at)
            WHEN a.reopen IS NOT NULL THEN NULL
            ELSE r.ended_at
        END
    FROM unnest(nums, nexts, ats, statuses, reopens, births, idles, idling)
        AS a (num, next, at, status, reopen, birth, idle, idling)
    WHERE r.num = a.num AND NOT a.birth;
    INSERT INTO events (run, seq, at, crc, body)
    SELECT nums[e.of], e.seq, e.at, e.crc, e.body
    FROM unnest(e_of, e_seq, e_at, e_crc, e_body) AS e (of, seq, at, crc, body) WHERE nums[e.of] <> 0;
    IF cardinality(s_of) > 0 THEN
        PERFORM keep_snapshots(nums, s_of, s_fold, s_seq, s_crc, s_body);
    END IF;
    IF parts IS NOT NULL THEN
        PERFORM write_parts(nums, parts);
    END IF;
    RETURN outcomes;
END
$$;

-- Put runs to rest; refused like an append, also while mail waits.
CREATE FUNCTION release_runs(
    uids text[], epochs bigint[], seqs bigint[], mails bigint[], wakes bigint[],
    s_of integer[], s_fold integer[], s_seq bigint[], s_crc bigint[], s_body bytea[]
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    nums     bigint[];
    outcomes text[];
BEGIN
    WITH heads AS MATERIALIZED (
        SELECT r.uid, r.num, r.epoch, r.owner, r.seq, r.mail FROM runs r
        WHERE r.uid = ANY (uids) ORDER BY r.uid FOR NO KEY UPDATE
    ),
    judged AS (
        SELECT a.n, h.num, CASE
            WHEN h.num IS NULL OR h.epoch <> a.epoch OR h.owner IS NULL THEN 'stale_epoch'
            WHEN h.seq <> a.seq THEN 'stale_seq'
            WHEN h.mail <> a.mail THEN 'mail_waiting'
            ELSE 'accepted'
        END AS outcome
        FROM unnest(uids, epochs, seqs, mails) WITH ORDINALITY AS a (uid, epoch, seq, mail, n)
        LEFT JOIN heads h ON h.uid = a.uid
    )
    SELECT
        array_agg(j.outcome ORDER BY j.n),
        array_agg(CASE WHEN j.outcome = 'accepted' THEN j.num ELSE 0 END ORDER BY j.n)
    INTO outcomes, nums FROM judged j;
    UPDATE runs r SET owner = NULL, wal = NULL, wake_at = a.wake
    FROM unnest(nums, wakes) AS a (num, wake) WHERE r.num = a.num;
    IF cardinality(s_of) > 0 THEN
        PERFORM keep_snapshots(nums, s_of, s_fold, s_seq, s_crc, s_body);
    END IF;
    RETURN outcomes;
END
$$;

-- Rows of tasks for other processes. The run is locked, so that a claim is before the offer or sees its row.
CREATE FUNCTION offer_tasks(
    uids text[], task_nums bigint[], attempts integer[], deliveries integer[], steps text[], queues text[],
    bodies text[], epochs bigint[], times bigint[], limit_names text[], limit_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM runs WHERE uid = ANY (uids) ORDER BY uid FOR NO KEY UPDATE;
    INSERT INTO tasks (run, task, attempt, delivery, step, queue, body, epoch, not_before, limit_name, limit_key)
    SELECT r.num, t.task, t.attempt, t.delivery, t.step, t.queue, t.body, r.epoch, t.not_before, t.limit_name, t.limit_key
    FROM unnest(
        uids, task_nums, attempts, deliveries, steps, queues, bodies, epochs, times, limit_names, limit_keys
    ) WITH ORDINALITY
        AS t (uid, task, attempt, delivery, step, queue, body, epoch, not_before, limit_name, limit_key, n)
    JOIN runs r ON r.uid = t.uid AND r.epoch = t.epoch AND NOT is_over(r.status)
    ORDER BY t.n
    ON CONFLICT DO NOTHING;
    PERFORM line_up(limit_names, limit_keys);
END
$$;

-- Remove a claimed row and put the result into the run's inbox. False: it is not this host's any more.
CREATE FUNCTION settle_task(
    who text, of_run text, task_num bigint, task_attempt integer, task_delivery integer,
    target text, mail_id text, sent_at bigint, mail_key text, mail_digest text, mail_body text,
    mail_crc bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM runs WHERE uid IN (of_run, target) ORDER BY uid FOR NO KEY UPDATE;
    DELETE FROM tasks t USING runs r
    WHERE r.uid = of_run AND t.run = r.num AND t.task = task_num AND t.attempt = task_attempt
        AND t.delivery = task_delivery AND t.host = who;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM deliver(target, mail_id, sent_at, mail_key, mail_digest, mail_body, mail_crc);
    RETURN true;
END
$$;
