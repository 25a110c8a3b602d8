-- An imported run is over: it can be read, and nothing goes on with it.
CREATE OR REPLACE FUNCTION is_over(status text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT status IN ('completed', 'failed', 'cancelled', 'imported')
$$;
