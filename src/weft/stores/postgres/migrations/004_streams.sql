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
