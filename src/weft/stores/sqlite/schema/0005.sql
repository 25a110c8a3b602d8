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

-- What is permitted. Every version is kept; the newest holds.
CREATE TABLE policies (
    version INTEGER NOT NULL PRIMARY KEY,
    body    TEXT    NOT NULL,               -- YAML or JSON, as it was written
    set_by  TEXT    NOT NULL,
    set_at  INTEGER NOT NULL,
    reason  TEXT    NOT NULL
) STRICT;

-- How much of the limits of the policy was used, by tenant and window of time.
CREATE TABLE policy_counts (
    tenant    TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    begins_at INTEGER NOT NULL,
    ends_at   INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, begins_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX policy_counts_end ON policy_counts (ends_at);

-- The tools of MCP servers as they were accepted, and as the servers have them now.
CREATE TABLE tool_pins (
    server   TEXT    NOT NULL,
    tool     TEXT    NOT NULL,
    accepted TEXT    NOT NULL,              -- JSON; empty: nobody accepted it
    seen     TEXT    NOT NULL,              -- JSON; empty: the server has the accepted one
    set_by   TEXT    NOT NULL,
    set_at   INTEGER NOT NULL,
    PRIMARY KEY (server, tool)
) STRICT, WITHOUT ROWID;
