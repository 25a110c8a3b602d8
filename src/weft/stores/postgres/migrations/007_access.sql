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

-- What is permitted. Every version is kept; the newest holds.
CREATE TABLE policies (
    version bigint NOT NULL PRIMARY KEY,
    body    text NOT NULL,                  -- YAML or JSON, as it was written
    set_by  text NOT NULL,
    set_at  bigint NOT NULL,
    reason  text NOT NULL
);

-- How much of the limits of the policy was used, by tenant and window of time.
CREATE TABLE policy_counts (
    tenant    text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    begins_at bigint NOT NULL,
    ends_at   bigint NOT NULL,
    used      bigint NOT NULL,
    PRIMARY KEY (tenant, name, begins_at)
);

CREATE INDEX policy_counts_end ON policy_counts (ends_at);

-- The tools of MCP servers as they were accepted, and as the servers have them now.
CREATE TABLE tool_pins (
    server   text COLLATE "C" NOT NULL,
    tool     text COLLATE "C" NOT NULL,
    accepted text NOT NULL,                 -- JSON; empty: nobody accepted it
    seen     text NOT NULL,                 -- JSON; empty: the server has the accepted one
    set_by   text NOT NULL,
    set_at   bigint NOT NULL,
    PRIMARY KEY (server, tool)
);
