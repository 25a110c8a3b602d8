-- A run that was moved is over: another store goes on with it.
CREATE OR REPLACE FUNCTION is_over(status text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT status IN ('completed', 'failed', 'cancelled', 'moved', 'imported')
$$;
