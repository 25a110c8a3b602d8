-- Since when tasks wait. Only shown to people.
ALTER TABLE tasks ADD COLUMN offered_at INTEGER NOT NULL DEFAULT 0;

-- Filters of lists that people have saved for everybody in their tenant.
CREATE TABLE saved_views (
    tenant   TEXT    NOT NULL,              -- empty: the operator
    name     TEXT    NOT NULL,
    query    TEXT    NOT NULL,              -- as in the address of the list
    saved_by TEXT    NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
