-- The taken tasks of a key are found by their own index, whatever the server knew when it made its plans. Every index of
-- taken tasks could answer "host IS NOT NULL". If `tasks` was analysed while it was empty, all of them look equally
-- cheap, and the server read all taken tasks for each key. This condition is that of one index alone.

DROP INDEX tasks_counted;
CREATE INDEX tasks_counted ON tasks (limit_name, limit_key) WHERE coalesce(host, '') <> '' AND limit_name IS NOT NULL;

DO $$
DECLARE
    name text;
    body text;
    was  text;
BEGIN
    FOREACH name IN ARRAY ARRAY['key_room', 'end_turns', 'exchange_tasks'] LOOP
        was := pg_get_functiondef(name::regproc);
        body := regexp_replace(was, '\m([to])\.host IS NOT NULL AND', 'coalesce(\1.host, '''') <> '''' AND', 'g');
        IF body = was THEN
            RAISE EXCEPTION '% is not as expected', name;
        END IF;
        EXECUTE body;
    END LOOP;
END
$$;
