-- Sessions of browsers that have signed in. Only the digest of the cookie is kept.

CREATE TABLE web_sessions (
    digest     text COLLATE "C" NOT NULL PRIMARY KEY,   -- SHA-256
    owner      text NOT NULL,                           -- JSON
    created_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    expires_at bigint NOT NULL
);
