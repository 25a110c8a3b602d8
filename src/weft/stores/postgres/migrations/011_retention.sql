-- Deleting runs. A row with the status 'doomed' is being deleted: its uid has a prefix, so that nothing that names the run
-- finds it, and its id stays taken until the row is gone.

-- Who deleted or kept what, and why. Outlives the runs.
CREATE TABLE audit (
    num      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       bigint NOT NULL,
    verb     text NOT NULL,                -- delete, gc, keep, keep_end
    run      text COLLATE "C" NOT NULL,    -- the id of the root
    uid      text COLLATE "C" NOT NULL,
    workflow text NOT NULL,
    by       text NOT NULL,
    reason   text NOT NULL,
    details  text NOT NULL                 -- JSON
);

CREATE INDEX audit_run ON audit (run, num);

-- Roots whose trees must not be deleted.
CREATE TABLE holds (
    uid   text COLLATE "C" NOT NULL PRIMARY KEY,
    entry bigint NOT NULL REFERENCES audit
);

-- The host that deletes runs, and until when.
CREATE TABLE turns (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    host  text COLLATE "C" NOT NULL,
    until bigint NOT NULL
);

CREATE INDEX refs_run ON refs (run);

-- Delete up to `most` rows of the oldest doomed runs, and the runs that have nothing left.
CREATE FUNCTION clear_doomed(runs_most bigint, most bigint, OUT gone_rows bigint, OUT gone_runs bigint)
LANGUAGE plpgsql AS $$
DECLARE
    nums  bigint[];
    part  text;
    gone  bigint;
BEGIN
    gone_rows := 0;
    gone_runs := 0;
    -- Skips what another host is deleting.
    nums := ARRAY(
        SELECT num FROM runs WHERE status = 'doomed' ORDER BY created_at, uid LIMIT runs_most FOR UPDATE SKIP LOCKED
    );
    IF cardinality(nums) = 0 THEN
        RETURN;
    END IF;
    FOREACH part IN ARRAY ARRAY[
        'events', 'inbox', 'posted', 'keys', 'snapshots', 'chunks', 'streams', 'step_lines', 'step_line_totals', 'tasks', 'refs'
    ] LOOP
        -- tableoid: the tables that have partitions have equal ctids in several of them.
        EXECUTE format(
            'DELETE FROM %1$I WHERE run = ANY ($1) AND (tableoid, ctid) IN '
            '(SELECT tableoid, ctid FROM %1$I WHERE run = ANY ($1) LIMIT $2)', part
        ) USING nums, most - gone_rows;
        GET DIAGNOSTICS gone = ROW_COUNT;
        gone_rows := gone_rows + gone;
        IF gone_rows >= most THEN
            RETURN;
        END IF;
    END LOOP;
    DELETE FROM runs WHERE num = ANY (nums);
    gone_runs := cardinality(nums);
END
$$;

-- The views leave out what is being deleted.
CREATE OR REPLACE VIEW weft_runs AS
SELECT
    id, workflow, version, style, status, attributes, parent AS parent_uid, owner AS host, epoch, seq AS events,
    mail AS mail_received, mail_at IS NOT NULL AS mail_waiting, moment(wake_at) AS wakes_at,
    moment(created_at) AS created_at, moment(updated_at) AS updated_at, moment(ended_at) AS ended_at, fault, uid
FROM runs WHERE status <> 'doomed';

CREATE OR REPLACE VIEW weft_events AS
SELECT
    r.id AS run, e.seq, moment(e.at) AS at, e.body::jsonb ->> 'kind' AS kind, e.body::jsonb - 'kind' AS data,
    r.workflow, r.uid
FROM events e JOIN runs r ON r.num = e.run WHERE r.status <> 'doomed';

-- The append that ends a run deletes the rows of its tasks: after a retry, nobody may take one that ended with it.
DO $$
DECLARE
    body  text := pg_get_functiondef('commit_batch'::regproc);
    place text := '    INSERT INTO events (run, seq, at, crc, body)';
BEGIN
    IF position(place IN body) = 0 THEN
        RAISE EXCEPTION 'commit_batch is not as expected';
    END IF;
    EXECUTE replace(body, place, $text$    IF statuses && ARRAY['completed', 'failed', 'cancelled'] THEN
        DELETE FROM tasks t USING unnest(nums, statuses) AS a (num, status)
        WHERE t.run = a.num AND is_over(a.status) AND NOT still_counts(t.limit_name, t.host);
    END IF;
$text$ || place);
END
$$;
