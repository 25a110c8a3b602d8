"""Every setting that is not an argument in code: environment variables, and ``[tool.weft]`` in ``pyproject.toml``.

A setting exists only if it has a row here. ``variable`` and ``project_table`` know no others, a test keeps the rest of
the package from reading the environment, and ``docs/settings.md`` is generated from the rows.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weft.core.findings import closest
from weft.errors import UsageError

PREFIX = "WEFT_"
MARKS = frozenset({"WEFT_IMPORTING", "WEFT_COMPLETE"})
"""Variables that Weft sets itself."""
PROJECT_FILE = Path("pyproject.toml")
DEFAULT_URL = "sqlite:///weft.db"
STORE, SERVER, SIGN_IN, QUESTIONS, STEPS, CLIENTS = "store", "server", "sign-in", "questions", "steps", "clients"
EVENTS, RUNS, COMMANDS = "events", "runs", "commands"
_WEBHOOKS = "hooks.md#webhooks"


class Setting(NamedTuple):
    """One setting, as the table in the documentation shows it."""

    name: str
    """An environment variable, or a path in ``[tool.weft]`` with dots. ``*`` is a name that the user chooses."""
    area: str
    """What it belongs to."""
    meaning: str
    default: str = ""
    """The value if it is not set. Empty: nothing is set."""
    page: str = ""
    """The page of the documentation, with an anchor."""
    is_secret: bool = False


VARIABLES: tuple[Setting, ...] = (
    Setting(
        "WEFT_URL",
        STORE,
        "The store of apps and commands that name none. Not set: that of [tool.weft] url.",
        page="cli.md",
    ),
    Setting(
        "WEFT_BLOBS",
        STORE,
        "Where a Postgres store keeps values above 32 KiB: a folder (file:///…) or a bucket (s3://…, with the AWS_… "
        "variables). Not set: in the database.",
        page="postgres.md#large-values",
    ),
    Setting(
        "WEFT_REDIS",
        STORE,
        "A Redis server that wakes hosts and counts requests: redis://… or rediss://…. Not set: that of [tool.weft] "
        "redis.",
        page="redis.md",
    ),
    Setting(
        "WEFT_REDIS_PREFIX",
        STORE,
        "The beginning of the names of streams for workers, if several deployments share a Redis server.",
        page="stream-workers.md#tenants-prefixes-and-rights",
    ),
    Setting(
        "WEFT_HOT",
        STORE,
        "Commit plain steps to this Redis first, and to Postgres later: event, a duration such as 10s, or end. "
        "Not set: that of [tool.weft] hot.",
        page="redis.md#the-hot-path",
    ),
    Setting(
        "WEFT_PUBLIC_URL",
        SERVER,
        "The URL under which browsers and mails reach the server, with its prefix. Its origin is allowed to write.",
        page="server.md#access",
    ),
    Setting("WEFT_JWT_ISSUER", SIGN_IN, "The identity provider whose tokens are accepted.", page="server.md#access"),
    Setting("WEFT_JWT_AUDIENCE", SIGN_IN, "The audience that a token must name.", page="server.md#access"),
    Setting("WEFT_JWT_JWKS", SIGN_IN, "The URL of the provider's public keys.", page="server.md#access"),
    Setting("WEFT_JWT_NAME", SIGN_IN, "The claim with the caller's name.", "sub", "server.md#access"),
    Setting(
        "WEFT_JWT_TENANT",
        SIGN_IN,
        "The claim with the tenant, which every token must then have. Not set: tokens have no tenant.",
        page="server.md#access",
    ),
    Setting(
        "WEFT_OIDC_CLIENT_ID",
        SIGN_IN,
        "The client with which people sign in to the web UI. Not set: they sign in with a key.",
        page="ui.md#signing-in",
    ),
    Setting(
        "WEFT_OIDC_CLIENT_SECRET",
        SIGN_IN,
        "Its secret. Not set: a public client, with PKCE.",
        page="ui.md#signing-in",
        is_secret=True,
    ),
    Setting("WEFT_OIDC_SCOPE", SIGN_IN, "The scopes to ask for.", "openid profile", "ui.md#signing-in"),
    Setting("WEFT_EVENTS_URL", EVENTS, "Receives the events of runs, one POST each.", page=_WEBHOOKS),
    Setting("WEFT_EVENTS_SECRET", EVENTS, "Signs these requests; at least 16 bytes.", page=_WEBHOOKS, is_secret=True),
    Setting(
        "WEFT_EVENTS_KINDS",
        EVENTS,
        "The kinds of events to send, with commas, such as run_failed,dead_letter. Not set: all.",
        page=_WEBHOOKS,
    ),
    Setting(
        "WEFT_EVENTS_WHERE",
        EVENTS,
        "Which of them to send: CEL, such as workflow == 'order'. Not set: all.",
        page=_WEBHOOKS,
    ),
    Setting(
        "WEFT_APPROVALS_URL",
        QUESTIONS,
        "Receives every question, reminder and escalation, with links to answer.",
        page="server.md#approvals",
    ),
    Setting(
        "WEFT_APPROVALS_SECRET",
        QUESTIONS,
        "Signs these requests; at least 16 bytes.",
        page="server.md#approvals",
        is_secret=True,
    ),
    Setting(
        "WEFT_HTTP_ALLOW",
        STEPS,
        "Addresses, networks and host names, with commas, that HTTP steps may call although they are not public.",
        page="graphs.md#what-a-node-can-do",
    ),
    Setting(
        "WEFT_WEBHOOK_URL",
        STEPS,
        "Where HTTP steps that are answered later get their answers: the public URL of /api/v1/webhooks.",
        page="goals.md",
    ),
    Setting(
        "WEFT_WEBHOOK_SECRET",
        STEPS,
        "Signs the keys of these answers; at least 16 bytes, the same on every host.",
        page="goals.md",
        is_secret=True,
    ),
    Setting(
        "WEFT_KEY",
        CLIENTS,
        "The API key for a server: of commands without --key, and of weft.Client if the code names none.",
        page="remote.md",
        is_secret=True,
    ),
    Setting(
        "WEFT_KEY_FILE",
        CLIENTS,
        "A file with the API key for a server, if WEFT_KEY is not set.",
        page="remote.md",
    ),
    Setting(
        "WEFT_LOGS",
        RUNS,
        "Whether lines that steps print are kept: on or off. Not set: as [tool.weft.logs] keep says.",
        page="logs.md#settings",
    ),
    Setting(
        "WEFT_TRACE_CONTENT",
        RUNS,
        "1: spans of model calls contain the messages, too.",
        page="tracing.md#agents-and-model-calls",
    ),
    Setting("WEFT_DEBUG", COMMANDS, "1: the command line prints the traceback of an error, too.", page="cli.md"),
)
"""The environment variables, in the order of the table."""

_KEPT = 'How long {} are kept after the end of their tree, such as "90d"; "never": for ever.'
_RETENTION, _LIMITS = "retention.md#say-how-long-runs-are-kept", "changing-runs.md#limits"
_LOGS = "logs.md#settings"
_MODELS = "models.md"
_MODEL_SETTINGS = {
    "url": "A language model: where its API begins, such as https://api.openai.com/v1.",
    "model": "The name of the model at its provider. Not set: its name here.",
    "key": "The place of its key: env:NAME or file:/path.",
    "api": "What it speaks: chat, responses, or the name of an installed package's wire. Not set: chat.",
    "context": "How many tokens a request and its answer may have.",
    "output": "How many tokens an answer may have. Not set: 4096.",
    "prices": 'What a million tokens cost: {input = "0.25", output = "2.00", cached = "0.025", currency = "USD"}.',
    "fallback": "The models that are asked if it is unavailable.",
    "timeout": "How long a call may take. Not set: 2m.",
    "retries": "How often a call is repeated.",
    "limit": 'How many calls may run at once, and begin within a time: {concurrency = 5, rate = "20/s"}.',
    "options": "What is sent to the provider as it is, such as {temperature = 0}.",
    "cache": "For how long equal requests are answered from the cache; true: for ever.",
    "supports": "What it can do: tools, schema, stream. Not set: all.",
}
_AUTH_SETTINGS = {
    "secret": "Credentials for openapi_action and http_request: the place of the secret, env:NAME or file:/path.",
    "in": "Where it goes: header, query or bearer. Not set: header.",
    "name": "The name of the header or of the parameter.",
    "hosts": "The hosts to which it may go, with wildcards.",
}
MODEL_KEYS = tuple(_MODEL_SETTINGS)
"""The keys of ``[tool.weft.models.NAME]``."""
_RULE = ("completed", "cancelled", "failed", "keep_last")

PROJECT: tuple[Setting, ...] = (
    Setting("url", STORE, "The store, if neither the code nor WEFT_URL names one.", DEFAULT_URL, "cli.md"),
    Setting("redis", STORE, "The Redis server, if neither the code nor WEFT_REDIS names one.", page="redis.md"),
    Setting(
        "hot",
        STORE,
        "When steps in Redis are written to Postgres, if neither the code nor WEFT_HOT says it.",
        page="redis.md#the-hot-path",
    ),
    Setting("app", COMMANDS, "The file (or module) with the app, for commands that name none.", page="cli.md"),
    Setting("mcp", CLIENTS, "The names of workflows and agents that MCP clients may start.", "[]", "mcp.md"),
    Setting(
        "agents.promote",
        RUNS,
        "In how many runs of a tenant a pipeline of agents must succeed to become a tool; 0: never.",
        "2",
        "pipelines.md",
    ),
    Setting(
        "agents.promotion",
        RUNS,
        "What happens to such a tool: offer lets agents find it, ask leaves it proposed until somebody accepts it.",
        "offer",
        "pipelines.md",
    ),
    Setting("retention.completed", RUNS, _KEPT.format("completed runs"), "never", _RETENTION),
    Setting("retention.cancelled", RUNS, _KEPT.format("cancelled runs"), "never", _RETENTION),
    Setting("retention.failed", RUNS, _KEPT.format("failed runs"), "never", _RETENTION),
    Setting(
        "retention.streams",
        RUNS,
        _KEPT.format("output streams of runs"),
        "never",
        _RETENTION,
    ),
    Setting(
        "retention.keep_last",
        RUNS,
        "How many of the newest runs of each workflow are kept in any case.",
        "0",
        _RETENTION,
    ),
    *(
        Setting(
            f"retention.{level}.*.{name}",
            RUNS,
            f"The same for one {level}.",
            page=_RETENTION,
        )
        for level in ("workflow", "tenant")
        for name in _RULE
    ),
    Setting("limits.patches", RUNS, "Patches of one run.", "100", _LIMITS),
    Setting("limits.patch_operations", RUNS, "Operations in one patch.", "500", _LIMITS),
    Setting("limits.patch_bytes", RUNS, "The size of a patched document, as JSON.", "1048576", _LIMITS),
    Setting("limits.patch_agents", RUNS, "Agent nodes that one patch may add.", "5", _LIMITS),
    *(Setting(f"auth.*.{name}", STEPS, meaning, page="pipelines.md") for name, meaning in _AUTH_SETTINGS.items()),
    *(Setting(f"models.*.{name}", STEPS, meaning, page=_MODELS) for name, meaning in _MODEL_SETTINGS.items()),
    Setting("logs.keep", RUNS, "Whether lines that steps print are kept.", "true", _LOGS),
    Setting("logs.lines", RUNS, "How many lines are kept of each run.", "10000", _LOGS),
    Setting("logs.size_bytes", RUNS, "How many bytes of text are kept of each run.", "1048576", _LOGS),
)
"""The keys of ``[tool.weft]``, in the order of the table."""

_DEFAULTS = {setting.name: setting.default for setting in VARIABLES}


def variable(name: str) -> str:
    """Return the value of an environment variable, or its default. An empty variable is not set."""
    default = _DEFAULTS[name]
    return os.environ.get(name) or default


def given_variables() -> list[str]:
    """Return the names of all variables of the environment that look like settings of Weft, known or not."""
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in MARKS)


def store_url() -> str:
    """Return the store that the environment or the project names; empty if neither does. Raises UsageError."""
    return variable("WEFT_URL") or project_text("url")


def redis_url() -> str:
    """Return the Redis server that the environment or the project names; empty if neither does. Raises UsageError."""
    return variable("WEFT_REDIS") or project_text("redis")


def hot_name() -> str:
    """Return the policy of the hot path that the environment or the project names; empty if neither does."""
    return variable("WEFT_HOT") or project_text("hot")


def project_table(path: Path = PROJECT_FILE) -> dict[str, Any]:
    """Return ``[tool.weft]`` of the project in the current folder; empty without one. Raises UsageError."""
    if not path.is_file():
        return {}
    try:
        tool = _parse_project(path.read_text("utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}.", hint="Correct it: its settings would be ignored otherwise."
        ) from error
    table = tool.get("weft", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError("[tool.weft] in pyproject.toml is not a table.", hint='[tool.weft] url = "sqlite:///weft.db"')
    _refuse_unknown(table, project_keys())
    return table


@functools.lru_cache(maxsize=1)
def _parse_project(text: str) -> dict[str, Any]:
    """Return the content of a project's file. A host asks for seven of its tables, one after the other."""
    import tomllib  # noqa: PLC0415 - not needed without a pyproject.toml

    return tomllib.loads(text)


def project_text(key: str, path: Path = PROJECT_FILE) -> str:
    """Return a text of ``[tool.weft]``, such as ``url``; empty if it is not set. Raises UsageError."""
    value = project_table(path).get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"[tool.weft] {key} = {value!r} is not a text.", hint=f'Write it in quotes: {key} = "…"')
    return value


def project_names(key: str, path: Path = PROJECT_FILE) -> tuple[str, ...]:
    """Return a list of names of ``[tool.weft]``, such as ``mcp``; empty if it is not set. Raises UsageError."""
    value = project_table(path).get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"[tool.weft] {key} = {value!r} is not a list of names.", hint=f'{key} = ["order"]')
    return tuple(value)


def project_keys(section: str = "") -> tuple[str, ...]:
    """Return the keys that a section of ``[tool.weft]`` has, such as those of ``limits``, in the order of the table."""
    start = f"{section}." if section else ""
    paths = (setting.name.removeprefix(start) for setting in PROJECT if setting.name.startswith(start))
    return tuple(dict.fromkeys(path.partition(".")[0] for path in paths))


def _refuse_unknown(table: dict[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            near = closest(key, known)
            meant = f"Did you mean {near}? " if near else ""
            raise UsageError(
                f"[tool.weft] in pyproject.toml has no setting {key!r}.", hint=f"{meant}It has {', '.join(known)}."
            )
