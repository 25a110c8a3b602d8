-- Only a run that has an owner offers tasks. After a retry it has none until a host claims it, and an offer from before its
-- end that arrives only then is refused.
DO $$
DECLARE
    body text := pg_get_functiondef('offer_tasks'::regproc);
    rule text := 'AND NOT is_over(r.status)';
BEGIN
    IF position(rule IN body) = 0 THEN
        RAISE EXCEPTION 'offer_tasks is not as expected';
    END IF;
    EXECUTE replace(body, rule, 'AND r.owner IS NOT NULL ' || rule);
END
$$;
