-- Blobs whose content refers to other blobs. A blob stays as long as one that refers to it.
CREATE TABLE blob_links (
    parent text COLLATE "C" NOT NULL,
    child  text COLLATE "C" NOT NULL,
    PRIMARY KEY (parent, child)
);

CREATE INDEX blob_links_child ON blob_links (child);

-- Blobs that no run, no other blob, no mail on its way and no memo refers to.
CREATE FUNCTION unused_blobs(touched_before bigint, most bigint) RETURNS SETOF text LANGUAGE sql AS $$
    WITH named AS MATERIALIZED (
        SELECT (regexp_matches(body, 'cas://sha256:([0-9a-f]{64})', 'g'))[1] AS hash
        FROM inbox WHERE body LIKE '%cas://sha256:%'
        UNION ALL
        SELECT (regexp_matches(output, 'cas://sha256:([0-9a-f]{64})', 'g'))[1]
        FROM memos WHERE output LIKE '%cas://sha256:%'
    )
    SELECT b.hash FROM blobs b
    WHERE b.touched <= touched_before AND b.doomed IS NULL
        AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.hash = b.hash)
        AND NOT EXISTS (SELECT 1 FROM blob_links l WHERE l.child = b.hash)
        AND NOT EXISTS (SELECT 1 FROM named n WHERE n.hash = b.hash)
    LIMIT most
$$;
