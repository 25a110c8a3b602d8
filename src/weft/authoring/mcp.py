"""MCP servers as a program names them: ``weft.mcp``."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TypeGuard, get_args
from urllib.parse import urlsplit

from weft.agents.mcp.servers import McpOptions, McpServer
from weft.authoring.policies import Duration
from weft.authoring.tools import checked_timeout_ms
from weft.core.events import Effect
from weft.errors import BadValue, UsageError
from weft.steps.http.exchange import check_headers
from weft.steps.secrets import Secret

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_COMMAND = 'Write command="uvx some-server --flag", or ["uvx", "some-server", "--flag"].'


def mcp(
    name: str,
    *,
    command: str | Sequence[str] | None = None,
    env: Mapping[str, str | Secret] | None = None,
    cwd: str | None = None,
    url: str | None = None,
    headers: Mapping[str, str | Secret] | None = None,
    tools: Sequence[str] | None = None,
    effects: Mapping[str, Effect] | None = None,
    timeout: Duration = "1m",
) -> McpServer:
    """Name an MCP server whose tools agents may call: ``tools=[weft.mcp("github", url=...)]``.

    It is a ``command``, which the host starts with ``env`` in ``cwd``, or a ``url`` with ``headers``. ``tools`` names
    the tools that are offered, with wildcards; without it, all of them. Each is called ``NAME__TOOL``. ``effects`` says
    what they do, by name or wildcard; a tool that it does not name is irreversible. ``timeout`` limits one call.

    Raises BadValue, UsageError.
    """
    named: object = name  # type hints are not checked at run time
    if not isinstance(named, str) or not _NAME.fullmatch(named):
        raise BadValue(
            f"weft.mcp({str(name)[:60]!r}): a name has 1 to 32 letters, digits, _ and -.", code="value.bad_name"
        )
    if (command is None) is (url is None):
        raise UsageError(f"weft.mcp({name!r}) needs a command or a url, and not both.")
    useless = {"env": env, "cwd": cwd} if url is not None else {"headers": headers}
    for option, given in useless.items():
        if given is not None:
            reached = "url" if url is not None else "command"
            raise UsageError(f"weft.mcp({name!r}): {option} means nothing for a server with a {reached}.")
    words = _words_of(name, command) if command is not None else ()
    for option, given in (("env", env), ("headers", headers), ("effects", effects)):
        if given is not None and not isinstance(given, Mapping):
            raise BadValue(f"weft.mcp({name!r}, {option}={given!r}) is not a mapping.", code="value.wrong_type")
    for effect in (effects or {}).values():
        if effect not in get_args(Effect):
            choices = ", ".join(get_args(Effect))
            raise BadValue(f"weft.mcp({name!r}, effects=): {effect!r} is none of {choices}.", code="value.bad_policy")
    if tools is not None and (isinstance(tools, str) or not _are_texts(tools)):
        raise BadValue(
            f"weft.mcp({name!r}, tools={tools!r}) is not a list of names.",
            hint='Write tools=["search_*", "create_issue"].',
            code="value.wrong_type",
        )
    sent = {header.lower(): value for header, value in (headers or {}).items()}
    check_headers({header: value if isinstance(value, str) else "" for header, value in sent.items()})
    return McpServer(
        McpOptions(
            name=name,
            command=words,
            env=dict(env or {}),
            cwd=cwd,
            url=_checked_url(name, url) if url is not None else "",
            headers=sent,
            tools=tuple(tools) if tools is not None else None,
            effects=dict(effects or {}),
            timeout_ms=checked_timeout_ms(timeout, '"1m"'),
        )
    )


def _words_of(name: str, command: object) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise UsageError(f"weft.mcp({name!r}): the command cannot be read: {error}.", hint=_COMMAND) from None
    if not _are_texts(words) or not words:
        raise UsageError(f"weft.mcp({name!r}): {command!r} is not a command.", hint=_COMMAND)
    return tuple(words)


def _are_texts(given: object) -> TypeGuard[Sequence[str]]:
    return isinstance(given, Sequence) and all(isinstance(one, str) for one in given)


def _checked_url(name: str, url: str) -> str:
    parts = urlsplit(str(url))
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise BadValue(f"weft.mcp({name!r}): {str(url)[:200]!r} is not the URL of a server.", code="value.wrong_type")
    if parts.scheme == "http" and not _is_loopback(host):
        raise BadValue(
            f"weft.mcp({name!r}): {host} is reached over http, which others can read.",
            hint="Use https. Only servers on this machine may use http.",
            code="value.wrong_type",
        )
    return url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
