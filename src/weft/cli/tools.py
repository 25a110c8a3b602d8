"""List the tools that agents made of pipelines, accept, discard and rename them; accept tools of MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.cli.login import login
from weft.cli.mcp_tools import accept_server, print_withheld, withheld_tools
from weft.cli.operations import remote_of
from weft.cli.output import console, print_json, print_table
from weft.cli.store_access import open_service, url_of
from weft.errors import UsageError
from weft.runtime.service import RunService
from weft.runtime.stored_tools import StoredTools
from weft.server.endpoints.tool_servers import WithheldTool
from weft.server.endpoints.tools import ToolView, tool_view

HINT = "weft tools list | accept NAME or SERVER | discard NAME | rename NAME NEW"


class ToolCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed after ``weft tools``."""

    words: Sequence[str]
    tenant: str = ""
    by: str | None = None


class ToolOperations(Protocol):
    """Commands to the stored tools of a store or server."""

    async def list(self) -> Sequence[ToolView]: ...

    async def change(self, verb: str, name: str, to: str = "", *, by: str = "") -> ToolView: ...


class ToolsInStore:
    """Lists and changes the tools of one tenant of a store."""

    def __init__(self, service: RunService, tenant: str) -> None:
        self._stored = StoredTools(service.store.definitions, service.clock)
        self._tenant = tenant

    async def list(self) -> Sequence[ToolView]:
        """Return all stored tools, by name."""
        found = (await self._stored.tools(self._tenant)).values()
        return [tool_view(tool) for tool in sorted(found, key=lambda tool: tool.name)]

    async def change(self, verb: str, name: str, to: str = "", *, by: str = "") -> ToolView:
        """Accept, discard or rename a tool. Raises NotFound, NameTaken, UsageError."""
        if verb == "rename":
            return tool_view(await self._stored.rename(self._tenant, name, to, by=by))
        change = self._stored.accept if verb == "accept" else self._stored.discard
        return tool_view(await change(self._tenant, name, by=by))


async def act_on_tools(request: ToolCommand, *, url: str | None, app: str | None, json: bool) -> None:
    """Carry out a command. Raises UsageError, NotFound, NameTaken."""
    verb, *words = request.words or ["list"]
    async with open_service(url_of(url, app), create=False) as service:
        tools = _operations(service, request.tenant)
        sees_servers = remote_of(service) is None or not service.tenant
        match verb, words:
            case "list", []:
                withheld = await withheld_tools(service) if sees_servers else []
                _print_list(await tools.list(), withheld, json=json)
            case "accept", [name] if sees_servers and await accept_server(
                service, name, by=_who_acts(request), json=json
            ):
                return
            case (("accept" | "discard"), [name]):
                _print_change(await tools.change(verb, name, by=_who_acts(request)), json=json)
            case "rename", [name, new]:
                _print_change(await tools.change(verb, name, new, by=_who_acts(request)), json=json)
            case _:
                raise UsageError(f"weft tools {' '.join(request.words)} is not a command.", hint=HINT)


def _operations(service: RunService, tenant: str) -> ToolOperations:
    remote = remote_of(service)
    if remote is None:
        return ToolsInStore(service, tenant)
    if tenant:
        raise UsageError(
            "A server knows the tenant by its key.", hint="Leave --tenant out, and use a key of the tenant."
        )
    from weft.authoring.remote_tools import RemoteTools

    return RemoteTools(remote)


def _who_acts(request: ToolCommand) -> str:
    return login() if request.by is None else request.by


def _print_list(tools: Sequence[ToolView], withheld: Sequence[WithheldTool], *, json: bool) -> None:
    if json:
        print_json({"tools": tools, "withheld": withheld})
        return
    if withheld:
        print_withheld(withheld)
    if not tools and withheld:
        return
    if not tools:
        console().print("No tools yet: a pipeline of agents becomes one when it has succeeded in two runs.")
        return
    rows = [(tool.name, tool.status, ", ".join(tool.schema["required"]), tool.description) for tool in tools]
    print_table(console(), ("TOOL", "STATUS", "PARAMETERS", "WHAT IT DOES"), rows)


def _print_change(tool: ToolView, *, json: bool) -> None:
    if json:
        print_json(tool)
    else:
        console().print(f"{tool.name} is {tool.status}.")
