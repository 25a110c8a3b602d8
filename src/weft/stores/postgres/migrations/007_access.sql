-- API keys. Only the digest of a key is stored.

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

-- Random bytes that all hosts share, such as the secret for signed links.
CREATE TABLE seeds (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    bytes bytea NOT NULL
);
