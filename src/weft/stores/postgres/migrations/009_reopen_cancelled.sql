-- A cancelled run may be reopened: a schedule that was removed and is added again.
DO $$
DECLARE
    body text := pg_get_functiondef('commit_batch'::regproc);
BEGIN
    IF position('NOT IN (''failed'', ''held'')' IN body) = 0 THEN
        RAISE EXCEPTION 'commit_batch is not as expected';
    END IF;
    EXECUTE replace(body, 'NOT IN (''failed'', ''held'')', 'NOT IN (''failed'', ''held'', ''cancelled'')');
END
$$;
