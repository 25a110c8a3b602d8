"""MCP servers as a program names them: ``weft.mcp``."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import get_args
from urllib.parse import urlsplit

from weft.agents.mcp.servers import McpOptions, McpServer
from weft.authoring.policies import Duration
from weft.core.durations import duration_ms
from weft.core.events import Effect
from weft.errors import BadValue, UsageError
from weft.steps.http.exchange import check_headers
from weft.steps.secrets import Secret

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


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
    if not _NAME.fullmatch(name):
        raise BadValue(f"weft.mcp({name[:60]!r}): a name has 1 to 32 letters, digits, _ and -.", code="value.bad_name")
    if (command is None) is (url is None):
        raise UsageError(f"weft.mcp({name!r}) needs a command or a url, and not both.")
    words = tuple(shlex.split(command) if isinstance(command, str) else command or ())
    if command is not None and not words:
        raise UsageError(f"weft.mcp({name!r}) has an empty command.")
    for effect in (effects or {}).values():
        if effect not in get_args(Effect):
            choices = ", ".join(get_args(Effect))
            raise BadValue(f"weft.mcp({name!r}, effects=): {effect!r} is none of {choices}.", code="value.bad_policy")
    if isinstance(tools, str):
        raise BadValue(f"weft.mcp({name!r}, tools={tools!r}) is a text, and must be a list.", code="value.wrong_type")
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
            timeout_ms=duration_ms(timeout),
        )
    )


def _checked_url(name: str, url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise BadValue(f"weft.mcp({name!r}): {url[:200]!r} is not the URL of a server.", code="value.wrong_type")
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
