-- Since when tasks wait. Only shown to people.
ALTER TABLE tasks ADD COLUMN offered_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Filters of lists that people have saved for everybody in their tenant.
CREATE TABLE saved_views (
    tenant   text COLLATE "C" NOT NULL,    -- empty: the operator
    name     text COLLATE "C" NOT NULL,
    query    text NOT NULL,                -- as in the address of the list
    saved_by text NOT NULL,
    saved_at bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);
