-- What steps and workflows write while they work. No part of any log, so it locks no run: each stream has a row of its own
-- that its writers wait for, which keeps offsets without gaps.

CREATE TABLE streams (
    run    bigint NOT NULL,
    stream text COLLATE "C" NOT NULL,
    length bigint NOT NULL,
    PRIMARY KEY (run, stream)
);

CREATE TABLE chunks (
    run      bigint NOT NULL,
    stream   text COLLATE "C" NOT NULL,
    "offset" bigint NOT NULL,              -- from 1, without gaps
    at       bigint NOT NULL,
    place    text NOT NULL,                -- who wrote it
    attempt  integer NOT NULL,
    key      text COLLATE "C" NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (run, stream, "offset"),
    UNIQUE (run, stream, key)
);

CREATE FUNCTION write_chunks(
    uids text[], names text[], ats bigint[], places text[], attempts integer[], new_keys text[], bodies text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO streams (run, stream, length)
    SELECT DISTINCT r.num, c.stream, 0
    FROM unnest(uids, names) AS c (uid, stream) JOIN runs r ON r.uid = c.uid
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM streams s
    WHERE (s.run, s.stream) IN (
        SELECT r.num, c.stream FROM unnest(uids, names) AS c (uid, stream) JOIN runs r ON r.uid = c.uid
    )
    ORDER BY s.run, s.stream FOR UPDATE;
    WITH fresh AS (
        -- The first of each key, and none that is known: what is left out costs no offset.
        SELECT DISTINCT ON (r.num, c.stream, c.key) r.num AS run, c.*
        FROM unnest(uids, names, ats, places, attempts, new_keys, bodies) WITH ORDINALITY
            AS c (uid, stream, at, place, attempt, key, body, n)
        JOIN runs r ON r.uid = c.uid
        WHERE NOT EXISTS (SELECT 1 FROM chunks k WHERE k.run = r.num AND k.stream = c.stream AND k.key = c.key)
        ORDER BY r.num, c.stream, c.key, c.n
    ),
    counted AS (
        INSERT INTO chunks (run, stream, "offset", at, place, attempt, key, body)
        SELECT
            f.run, f.stream, s.length + row_number() OVER (PARTITION BY f.run, f.stream ORDER BY f.n),
            f.at, f.place, f.attempt, f.key, f.body
        FROM fresh f JOIN streams s ON s.run = f.run AND s.stream = f.stream
        RETURNING run, stream
    )
    UPDATE streams s SET length = s.length + c.number
    FROM (SELECT run, stream, count(*) AS number FROM counted GROUP BY 1, 2) AS c
    WHERE s.run = c.run AND s.stream = c.stream;
END
$$;

-- What steps print and log. The numbers of lines that were left out are missing. Writers wait for the row of totals.
CREATE TABLE step_line_totals (
    run   bigint NOT NULL PRIMARY KEY,
    last  bigint NOT NULL,                 -- the number of the last line
    lines bigint NOT NULL,                 -- how many are stored
    bytes bigint NOT NULL,
    host  text COLLATE "C" NOT NULL,       -- who wrote last, and its batch
    batch bigint NOT NULL
);

CREATE TABLE step_lines (
    run     bigint NOT NULL,
    number  bigint NOT NULL,
    at      bigint NOT NULL,
    place   text NOT NULL,
    attempt integer NOT NULL,
    level   integer NOT NULL,              -- as in Python's logging
    source  text NOT NULL,
    text    text NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE FUNCTION write_step_lines(
    writer text, new_batch bigint, lines_most bigint, bytes_most bigint,
    uids text[], ats bigint[], places text[], attempts integer[], levels integer[], sources text[], texts text[],
    losts bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    head       record;
    added      record;
    gone_lines bigint;
    gone_bytes bigint;
BEGIN
    INSERT INTO step_line_totals (run, last, lines, bytes, host, batch)
    SELECT DISTINCT r.num, 0, 0, 0, '', 0 FROM unnest(uids) AS u (uid) JOIN runs r ON r.uid = u.uid
    ORDER BY 1
    ON CONFLICT DO NOTHING;
    FOR head IN
        SELECT t.*, r.uid FROM step_line_totals t JOIN runs r ON r.num = t.run WHERE r.uid = ANY (uids)
        ORDER BY t.run FOR UPDATE OF t
    LOOP
        CONTINUE WHEN head.host = writer AND head.batch >= new_batch;
        WITH written AS (
            INSERT INTO step_lines (run, number, at, place, attempt, level, source, text)
            SELECT
                head.run, head.last + sum(c.lost + 1) OVER (ORDER BY c.n), c.at, c.place, c.attempt, c.level, c.source,
                c.text
            FROM unnest(uids, ats, places, attempts, levels, sources, texts, losts) WITH ORDINALITY
                AS c (uid, at, place, attempt, level, source, text, lost, n)
            WHERE c.uid = head.uid
            RETURNING number, octet_length(text) AS size
        )
        SELECT max(number) AS last, count(*) AS lines, sum(size) AS bytes INTO added FROM written;
        gone_lines := 0;
        gone_bytes := 0;
        IF head.lines + added.lines > lines_most OR head.bytes + added.bytes > bytes_most THEN
            -- The newest line that has to go: with the lines after it, there are as many lines or bytes as may stay.
            WITH removed AS (
                DELETE FROM step_lines WHERE run = head.run AND number <= (
                    SELECT max(number) FROM (
                        SELECT number, row_number() OVER newest AS lines, sum(octet_length(text)) OVER newest AS bytes
                        FROM step_lines WHERE run = head.run WINDOW newest AS (ORDER BY number DESC)
                    ) AS l WHERE l.lines > lines_most * 3 / 4 OR l.bytes > bytes_most * 3 / 4
                )
                RETURNING octet_length(text) AS size
            )
            SELECT count(*), coalesce(sum(size), 0) INTO gone_lines, gone_bytes FROM removed;
        END IF;
        UPDATE step_line_totals SET
            last = added.last, lines = head.lines + added.lines - gone_lines,
            bytes = head.bytes + added.bytes - gone_bytes, host = writer, batch = new_batch
        WHERE run = head.run;
    END LOOP;
END
$$;
