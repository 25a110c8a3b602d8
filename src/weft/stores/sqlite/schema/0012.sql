-- Sessions of browsers that have signed in. Only the digest of the cookie is stored.

CREATE TABLE web_sessions (
    digest     TEXT    NOT NULL PRIMARY KEY,   -- SHA-256
    owner      TEXT    NOT NULL,               -- JSON
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
