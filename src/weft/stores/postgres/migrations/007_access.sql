-- Who may use the API. Of a key only its digest is kept.

CREATE TABLE api_keys (
    num        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text COLLATE "C" NOT NULL UNIQUE,
    digest     text COLLATE "C" NOT NULL UNIQUE,   -- SHA-256
    name       text NOT NULL,
    tenant     text NOT NULL,
    scopes     text[] NOT NULL,
    groups     text[] NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

-- Random bytes that all hosts share, such as what links are signed with.
CREATE TABLE seeds (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    bytes bytea NOT NULL
);
