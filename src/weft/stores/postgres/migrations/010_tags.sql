-- Tags belong to a tenant and have a history of moves. A version says how it came into the store.

DROP TABLE tags;

CREATE TABLE tags (
    tenant   text COLLATE "C" NOT NULL,    -- empty: the operator
    workflow text COLLATE "C" NOT NULL,
    tag      text COLLATE "C" NOT NULL,
    version  text COLLATE "C" NOT NULL,    -- empty: before its first move
    cursor   bigint NOT NULL,              -- the move that led to version; later ones can be redone
    moves    bigint NOT NULL,
    revision bigint NOT NULL,              -- how often it was changed
    moved_by text NOT NULL,
    moved_at bigint NOT NULL,
    reason   text NOT NULL,
    PRIMARY KEY (tenant, workflow, tag)
);

CREATE TABLE tag_moves (
    tenant   text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    tag      text COLLATE "C" NOT NULL,
    number   bigint NOT NULL,              -- from 1, without gaps
    "before" text COLLATE "C" NOT NULL,
    "after"  text COLLATE "C" NOT NULL,
    moved_by text NOT NULL,
    moved_at bigint NOT NULL,
    reason   text NOT NULL,
    PRIMARY KEY (tenant, workflow, tag, number)
);

ALTER TABLE definitions ADD COLUMN origin text NOT NULL DEFAULT 'hosted';
