-- API keys. Only the digest of a key is stored.

CREATE TABLE api_keys (
    num        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    digest     TEXT    NOT NULL UNIQUE,     -- SHA-256
    name       TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,
    scopes     TEXT    NOT NULL,            -- JSON
    groups     TEXT    NOT NULL,            -- JSON
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

-- Random bytes that all hosts share, such as the secret for signed links.
CREATE TABLE seeds (
    name  TEXT NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
