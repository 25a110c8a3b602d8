-- For people and their tools: SELECT * FROM weft.weft_runs WHERE status = 'failed' ORDER BY created_at DESC;
-- These stay as they are; the tables behind them may change from version to version. They are read-only by habit:
-- whoever writes past Weft writes past its rules.

CREATE FUNCTION moment(millis bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT timestamptz 'epoch' + millis * interval '1 millisecond'
$$;

CREATE VIEW weft_runs AS
SELECT
    id, workflow, version, style, status, attributes, parent AS parent_uid, owner AS host, epoch, seq AS events,
    mail AS mail_received, mail_at IS NOT NULL AS mail_waiting, moment(wake_at) AS wakes_at,
    moment(created_at) AS created_at, moment(updated_at) AS updated_at, moment(ended_at) AS ended_at, fault, uid
FROM runs;

CREATE VIEW weft_events AS
SELECT
    r.id AS run, e.seq, moment(e.at) AS at, e.body::jsonb ->> 'kind' AS kind, e.body::jsonb - 'kind' AS data,
    r.workflow, r.uid
FROM events e JOIN runs r ON r.num = e.run;

-- Events that end something which an earlier event of the run began, and the number of that one.
CREATE VIEW weft_endings AS
SELECT uid, seq, at, kind, data, CASE kind
    WHEN 'task_succeeded' THEN (data ->> 'task')::bigint
    WHEN 'task_failed' THEN CASE WHEN coalesce((data ->> 'retry_at')::bigint, 0) = 0 THEN (data ->> 'task')::bigint END
    WHEN 'ask_answered' THEN CASE WHEN coalesce((data ->> 'decided')::boolean, true) THEN (data ->> 'ask')::bigint END
    WHEN 'wait_timed_out' THEN (data ->> 'wait')::bigint
    WHEN 'entry_cancelled' THEN (data ->> 'entry')::bigint
END AS of
FROM weft_events
WHERE kind IN ('task_succeeded', 'task_failed', 'ask_answered', 'wait_timed_out', 'entry_cancelled');

-- Events that hand out a task: of its own, or inside the record of a graph or a goal that leads to it.
CREATE VIEW weft_handouts AS
SELECT run, seq, at, kind, workflow, uid, CASE
    WHEN kind IN ('task_scheduled', 'undo_scheduled') THEN data
    ELSE data -> 'task'
END AS data
FROM weft_events
WHERE kind IN ('task_scheduled', 'undo_scheduled') OR (kind IN ('node_routed', 'step_started') AND data ? 'task');

-- Work that runs asked of the world: open, succeeded, failed or cancelled. `queued_for`, `host`: only while it is shared.
CREATE VIEW weft_tasks AS
SELECT
    s.run, s.seq AS task, s.data ->> 'step' AS step, s.kind = 'undo_scheduled' AS undo,
    CASE
        WHEN f.kind = 'task_succeeded' THEN 'succeeded'
        WHEN f.kind = 'task_failed' THEN 'failed'
        WHEN f.kind = 'entry_cancelled' OR r.ended_at IS NOT NULL THEN 'cancelled'
        ELSE 'open'
    END AS status,
    coalesce((f.data ->> 'attempt')::integer, q.attempt, 1) AS attempt,
    s.data -> 'input' AS input, f.data -> 'output' AS output, f.data -> 'failure' AS failure,
    s.at AS scheduled_at, f.at AS ended_at, q.queue AS queued_for, q.host, s.workflow, s.uid
FROM weft_handouts s
JOIN runs r ON r.uid = s.uid
LEFT JOIN weft_endings f ON f.uid = s.uid AND f.of = s.seq
LEFT JOIN tasks q ON q.run = r.num AND q.task = s.seq;

-- Questions to people, with the answer that settled each.
CREATE VIEW weft_approvals AS
SELECT
    s.run, s.seq AS question, s.data ->> 'title' AS title,
    CASE
        WHEN f.kind = 'ask_answered' THEN CASE WHEN (f.data ->> 'approved')::boolean THEN 'approved' ELSE 'rejected' END
        WHEN f.kind = 'wait_timed_out' THEN 'timed_out'
        WHEN f.kind = 'entry_cancelled' OR r.ended_at IS NOT NULL THEN 'closed'
        ELSE 'open'
    END AS status,
    s.data -> 'of' AS asked, s.data -> 'quorum' AS quorum, s.data -> 'about' AS about, s.data -> 'form' AS form,
    moment((s.data ->> 'due')::bigint) AS due_at, s.at AS asked_at, f.at AS ended_at,
    f.data ->> 'by' AS answered_by, f.data ->> 'reason' AS reason, f.data -> 'form' AS answer, s.workflow, s.uid
FROM weft_events s
JOIN runs r ON r.uid = s.uid
LEFT JOIN weft_endings f ON f.uid = s.uid AND f.of = s.seq
WHERE s.kind = 'ask_opened';
