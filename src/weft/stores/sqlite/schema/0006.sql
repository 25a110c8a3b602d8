-- Tags belong to a tenant and have a history of moves. A version says how it came into the store.

DROP TABLE tags;

CREATE TABLE tags (
    tenant   TEXT    NOT NULL,              -- empty: the operator
    workflow TEXT    NOT NULL,
    tag      TEXT    NOT NULL,
    version  TEXT    NOT NULL,              -- empty: before its first move
    cursor   INTEGER NOT NULL,              -- the move that led to version; later ones can be redone
    moves    INTEGER NOT NULL,
    revision INTEGER NOT NULL,              -- how often it was changed
    moved_by TEXT    NOT NULL,
    moved_at INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    PRIMARY KEY (tenant, workflow, tag)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag_moves (
    tenant   TEXT    NOT NULL,
    workflow TEXT    NOT NULL,
    tag      TEXT    NOT NULL,
    number   INTEGER NOT NULL,              -- from 1, without gaps
    "before" TEXT    NOT NULL,
    "after"  TEXT    NOT NULL,
    moved_by TEXT    NOT NULL,
    moved_at INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    PRIMARY KEY (tenant, workflow, tag, number)
) STRICT, WITHOUT ROWID;

ALTER TABLE definitions ADD COLUMN origin TEXT NOT NULL DEFAULT 'hosted';
