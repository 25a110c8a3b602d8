"""The tools that were made of pipelines, in the store: for every tenant a log of changes.

A pipeline that succeeds in enough different runs of a tenant is worth a tool. Its uses are definitions named by its
shape, one per run, so that a use that is reported twice counts once. The tools themselves are a log like the catalogue
of steps: numbered appends, each a definition. Two writers of the same number cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from weft.agents.toolbox.shapes import PipelineShape, shape_name, shape_of_pipeline
from weft.agents.toolbox.stored import StoredTool, ToolStatus
from weft.agents.tools.spec import model_tool_name
from weft.cache import BoundedCache
from weft.core.findings import did_you_mean
from weft.errors import Conflict, NameTaken, NotFound, UsageError
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.runtime.tool_settings import ToolSettings

TOOLS = "weft.tools"
USES = "weft.tool_uses"
STYLE = "tools"
USE_STYLE = "tool_use"
TRIES_MAX = 100
NOTED_MAX = 10_000
TOOLS_MAX = 1_000
"""The largest number of tools of a tenant, those that were discarded included."""


class ToolChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change: a new tool, another status, or another name."""

    what: Literal["made", "accepted", "discarded", "renamed"]
    tool: str
    made: StoredTool | None = None
    name: str = ""
    by: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ToolChange).decode

Tools = dict[str, StoredTool]


class StoredTools:
    """The tools of all tenants. Reads what is new when it is asked."""

    def __init__(self, definitions: Definitions, clock: Clock, settings: ToolSettings | None = None) -> None:
        self._definitions = definitions
        self._clock = clock
        self._settings = settings or ToolSettings()
        self._known: dict[str, tuple[int, Tools]] = {}
        """By tenant: how many changes were read, and the tools by name."""
        self._noted: BoundedCache[tuple[str, str, str], bool] = BoundedCache(NOTED_MAX)
        """Uses that need no write: the shape is a tool already, or the run has reported it."""

    async def tools(self, tenant: str) -> Mapping[str, StoredTool]:
        """Return all tools of a tenant by name, those that were discarded included."""
        number, known = self._known.get(tenant, (0, {}))
        name = _log_name(tenant)
        if not number:
            for change in sorted(await self._definitions.versions(name), key=lambda one: int(one.version)):
                number, known = int(change.version), _apply_change(known, _decode(change.body))
        while (append := await self._definitions.get(name, str(number + 1))) is not None:
            number, known = number + 1, _apply_change(known, _decode(append.body))
        self._known[tenant] = (number, known)
        return known

    async def offered(self, tenant: str) -> Sequence[StoredTool]:
        """Return the tools that agents of a tenant may call."""
        return [tool for tool in (await self.tools(tenant)).values() if tool.status == "accepted"]

    async def used(self, tenant: str, run_id: str, pipeline: Sequence[Any]) -> None:
        """Note that a pipeline succeeded in a run. In enough runs, its shape becomes a tool."""
        if not self._settings.promote:
            return
        shape = shape_of_pipeline(pipeline)
        if self._noted.get((tenant, run_id, shape.digest)):
            return
        if not any(tool.shape.digest == shape.digest for tool in (await self.tools(tenant)).values()):
            runs = await self._note_use(tenant, run_id, shape)
            if len(runs) >= self._settings.promote:
                await self._make_tool(tenant, shape, runs)
        self._noted.put((tenant, run_id, shape.digest), True)

    async def _note_use(self, tenant: str, run_id: str, shape: PipelineShape) -> list[str]:
        """Note a use, and return the runs that used the shape."""
        name = f"{USES}/{tenant}/{shape.digest}"
        now = self._clock.now_ms()
        use = Definition(name=name, version=run_id, style=USE_STYLE, body=_encode(run_id), created_at=now)
        await self._definitions.put(use)
        return [found.version for found in await self._definitions.versions(name)]

    async def _make_tool(self, tenant: str, shape: PipelineShape, runs: Sequence[str]) -> None:
        status: ToolStatus = "proposed" if self._settings.promotion == "ask" else "accepted"
        at = self._clock.now_ms()

        def decide(known: Tools) -> ToolChange | None:
            if len(known) >= TOOLS_MAX or any(tool.shape.digest == shape.digest for tool in known.values()):
                return None
            base = name = shape_name(shape)
            number = 2
            while name in known:
                name, number = f"{base}_{number}", number + 1
            made = StoredTool(name=name, status=status, shape=shape, runs=tuple(runs), at=at)
            return ToolChange(what="made", tool=name, made=made)

        await self._append_change(tenant, decide)

    async def accept(self, tenant: str, name: str, *, by: str = "") -> StoredTool:
        """Let agents call a tool that was proposed or discarded. Raises NotFound."""
        return await self._change_tool(tenant, name, ToolChange(what="accepted", tool=name, by=by))

    async def discard(self, tenant: str, name: str, *, by: str = "") -> StoredTool:
        """Let no agent call a tool any more. Its shape does not become a tool again. Raises NotFound."""
        return await self._change_tool(tenant, name, ToolChange(what="discarded", tool=name, by=by))

    async def rename(self, tenant: str, name: str, new: str, *, by: str = "") -> StoredTool:
        """Give a tool another name. Raises NotFound, NameTaken, UsageError."""
        if not new or model_tool_name(new) != new:
            raise UsageError(
                f'"{new[:80]}" cannot be the name of a tool.', hint="Use 1 to 64 letters, digits, _ and -."
            )
        return await self._change_tool(tenant, name, ToolChange(what="renamed", tool=name, name=new, by=by))

    async def _change_tool(self, tenant: str, name: str, change: ToolChange) -> StoredTool:
        def decide(known: Tools) -> ToolChange | None:
            tool = known.get(name)
            if tool is None:
                near = did_you_mean(name, list(known))
                hint = near or "weft tools list prints all of them."
                raise NotFound(f'There is no stored tool "{name[:80]}".', hint=hint, code="tool.unknown")
            if change.what == "renamed" and change.name in known and change.name != name:
                raise NameTaken(f'A stored tool is already called "{change.name}".', hint="Choose another name.")
            return change if change.what == "renamed" or tool.status != change.what else None

        await self._append_change(tenant, decide)
        return (await self.tools(tenant))[change.name or name]

    async def _append_change(self, tenant: str, decide: Callable[[Tools], ToolChange | None]) -> None:
        for _ in range(TRIES_MAX):
            known = dict(await self.tools(tenant))
            change = decide(known)
            if change is None:
                return
            number = self._known[tenant][0] + 1
            now = self._clock.now_ms()
            body = _encode(change)
            try:
                await self._definitions.put(
                    Definition(name=_log_name(tenant), version=str(number), style=STYLE, body=body, created_at=now)
                )
            except Conflict:  # another writer took this number
                continue
            return
        raise Conflict("The stored tools kept changing while this change was decided.", hint="Try again.")


def _log_name(tenant: str) -> str:
    return f"{TOOLS}/{tenant}"


def _apply_change(known: Tools, change: ToolChange) -> Tools:
    """Return the tools after a change."""
    tools = dict(known)
    if change.made is not None:
        return {**tools, change.tool: change.made}
    tool = tools.pop(change.tool)
    if change.what == "renamed":
        return {**tools, change.name: msgspec.structs.replace(tool, name=change.name)}
    status: ToolStatus = "accepted" if change.what == "accepted" else "discarded"
    return {**tools, change.tool: msgspec.structs.replace(tool, status=status)}
