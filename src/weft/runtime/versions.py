"""The versions of workflows in a store: which there are, who names them, and which runs still need them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from weft.core import values
from weft.core.ids import GOAL, INTERNAL_WORKFLOWS
from weft.errors import NotFound
from weft.ports.definitions import Definition
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.host_steps import HOST_STEPS
from weft.runtime.offered_versions import MOVES_MAX, offered_versions, sees_version
from weft.runtime.orders import stored_workflow
from weft.runtime.programs import is_graph, read_graph
from weft.runtime.publication import PublicationService, PublishedVersion, WorkflowPatch
from weft.runtime.service import RunService
from weft.runtime.tag_views import TagMoves, TagView, tag_moves, tag_view
from weft.runtime.version_refs import VersionRef

VersionKey = tuple[str, str]


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow as people see it."""

    name: str
    version: str
    style: str
    """Empty if it is code of open runs that no living host has."""
    origin: str
    """``hosted``, ``patch`` or ``run``, for how it came into the store; empty if it is not stored, as code is not."""
    hosted: bool
    """A living host has it registered."""
    base: str
    """The version from which a patch made it."""
    tags: list[str]
    open_runs: int
    created_at: datetime | None


class VersionDocument(WorkflowVersion, frozen=True, kw_only=True):
    """A version with its document: as data, and as its author wrote it."""

    input: dict[str, Any] | None
    source: dict[str, Any] | None
    text: str
    """Empty if it was made by operations, or in Python."""
    ops: list[Any]
    """The operations that made it from ``base``."""


class _MadeFrom(msgspec.Struct):
    base: str = ""


REMEMBERED_MAX = 100
"""How many workflows are looked at that may have nothing but runs that are over."""
SCANNED_MAX = 20_000
NOT_WORKFLOWS = (*INTERNAL_WORKFLOWS, "weft.agent", CATALOGUE, HOST_STEPS)
"""What Weft brings itself, and what is stored like a workflow. None of them has versions that people choose."""

_made_from = msgspec.json.Decoder(_MadeFrom)


class VersionService:
    """The versions of workflows, as one caller may see them."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._definitions = service.store.definitions

    # --- versions -------------------------------------------------------------------------------------------------

    async def list(
        self, name: str | None = None, *, all: bool = False, hosted: Mapping[VersionKey, str] | None = None
    ) -> Sequence[WorkflowVersion]:
        """Return the versions of all workflows, or of one, sorted by name and age.

        Versions that only a patch of a run made are left out unless ``all``. ``hosted`` has the versions that are
        registered here, with their styles.
        """
        stored = {(one.name, one.version): one for one in await self._stored_versions(name, all=all)}
        offered = await self._hosted_versions() if hosted is None else hosted
        open_runs = await self._service.store.directory.open_versions()
        draining = [key for key in open_runs if key[1] and (all or await self._is_listed(key))]
        hidden = {*NOT_WORKFLOWS, *(() if _is_registered(GOAL, offered) else (GOAL,))}
        named = {*hidden, *(key[0] for key in (*stored, *offered, *draining))}
        remembered = await self._versions_of_ended_runs(name, named)
        known = {*stored, *offered, *draining, *remembered}
        wanted = [key for key in known if name in {None, key[0]} and key[0] not in hidden]
        ages = {key: one.created_at for key, one in stored.items()}
        tags = await self._tag_names(name)
        return [
            remembered.get(key)
            or _version_view(key, stored.get(key), offered, tags=tags.get(key, []), open_runs=open_runs.get(key, 0))
            for key in sorted(wanted, key=lambda key: (key[0], ages.get(key, 0), key[1]))
        ]

    async def get(self, name: str, version: str, *, hosted: Mapping[VersionKey, str] | None = None) -> VersionDocument:
        """Return one version with its document. Raises NotFound."""
        stored = await self._visible_version(name, version)
        found = [one for one in await self.list(name, all=True, hosted=hosted) if one.version == version]
        ran = await self._newest_run(name, version) if not found and stored is None else None
        if not found and stored is None and ran is None:
            raise NotFound(f"{name[:60]} has no version {version[:60]!r}.", hint=f"weft workflows {name[:60]}")
        view = found[0] if found else _unnamed_version((name, version), stored, ran)
        graph = read_graph(stored) if stored is not None and is_graph(stored) else None
        return VersionDocument(
            **{field: getattr(view, field) for field in view.__struct_fields__},
            input=graph.graph.input if graph is not None else None,
            source=graph.source if graph is not None else None,
            text=graph.text if graph is not None else "",
            ops=graph.ops if graph is not None else [],
        )

    async def check_exists(self, name: str, version: str) -> None:
        """Refuse a version that is neither in the store nor hosted. Raises NotFound.

        For a tenant, there is no version that only patches of others made.
        """
        if await self._visible_version(name, version) is not None:
            return
        if not await sees_version(self._service, name, version):
            raise NotFound(f"{name[:60]} has no version {version[:60]!r}.", hint=f"weft workflows {name[:60]}")
        local = self._service.local
        here = local is not None and version != "" and local.catalogue.resolve(name, version) is not None
        if not here and (name, version) not in await self._hosted_versions():
            raise NotFound(f"{name[:60]} has no version {version[:60]!r}.", hint=f"weft workflows {name[:60]}")

    # --- tags -----------------------------------------------------------------------------------------------------

    async def tags(self, name: str | None = None) -> Sequence[TagView]:
        """Return all tags that name a version, or those of one workflow."""
        return [tag_view(tag, self._service.tenant) for tag in await self._service.tags.list(name)]

    async def history(self, name: str, tag: str, *, upto: int | None = None, limit: int = 100) -> TagMoves:
        """Return a tag with its moves, newest first, beginning with number ``upto``. Raises NotFound."""
        found = await self._service.tags.history(name, tag, upto=upto, limit=limit)
        return tag_moves(found.tag, found.moves, self._service.tenant)

    async def version_of_tag(self, ref: VersionRef) -> str:
        """Return the version that a tag names now, or named some moves ago. Raises NotFound."""
        return await self._service.tags.version(ref)

    async def tag(self, name: str, tag: str, version: str, *, by: str = "", reason: str = "") -> TagView:
        """Let a tag name a version. Raises NotFound, BadValue."""
        values.encode([name, tag, version, reason], what="the tag has")
        await self.check_exists(name, version)
        moved = await self._service.tags.move(name, tag, version, by=by, reason=reason)
        return tag_view(moved, self._service.tenant)

    async def remove_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView:
        """Let a tag name nothing, until the removal is undone. Raises NotFound."""
        moved = await self._service.tags.remove(name, tag, by=by, reason=reason)
        return tag_view(moved, self._service.tenant)

    async def publish(self, name: str, tag: str, patch: WorkflowPatch) -> PublishedVersion:
        """Make a version by a patch, and let a tag name it. Raises StaleBase, BadPatch, BadGraph, NotFound."""
        return await PublicationService(self._service).publish(name, tag, patch)

    async def undo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView:
        """Take a tag back to where it was before its last move. Raises NotFound, Refused."""
        moved = await self._service.tags.undo(name, tag, by=by, reason=reason)
        return tag_view(moved, self._service.tenant)

    async def redo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView:
        """Repeat the move of a tag that was undone last. Raises NotFound, Refused."""
        moved = await self._service.tags.redo(name, tag, by=by, reason=reason)
        return tag_view(moved, self._service.tenant)

    # --- what there is --------------------------------------------------------------------------------------------

    async def _stored_versions(self, name: str | None, *, all: bool) -> Sequence[Definition]:
        found = await self._definitions.versions(name)
        if not self._service.tenant:
            return [one for one in found if all or one.origin != "run"]
        own = await self._named_by_tenant(name)
        return [one for one in found if one.origin == "hosted" or (one.name, one.version) in own]

    async def _versions_of_ended_runs(
        self, name: str | None, known: Collection[str]
    ) -> dict[VersionKey, WorkflowVersion]:
        """Return the newest versions of workflows that nothing names any more but runs that are over."""
        names = await self._service.store.directory.workflows(name or "", limit=REMEMBERED_MAX)
        rows = [await self._newest_run(one) for one in names if name in {None, one} and one not in known]
        keys = {(row.workflow, row.version): row for row in rows if row is not None and row.version}
        return {key: _unnamed_version(key, None, row) for key, row in keys.items()}

    async def _newest_run(self, name: str, version: str | None = None) -> RunRow | None:
        query = RunQuery(workflow=name, version=version, limit=1, scan=SCANNED_MAX)
        rows = (await self._service.store.directory.search(query)).rows
        return rows[0] if rows else None

    async def _visible_version(self, name: str, version: str) -> Definition | None:
        """Return a stored version if the caller may know it."""
        stored = await stored_workflow(self._definitions, name, version)
        return stored if stored is None or await sees_version(self._service, name, version) else None

    async def _named_by_tenant(self, name: str | None) -> Collection[VersionKey]:
        """Return the versions that the tags and the open runs of a tenant name."""
        tags, named = self._service.store.tags, set(await self._service.store.directory.open_versions())
        for tag in await self._service.tags.list(name):
            named |= {(tag.key.workflow, move.after) for move in await tags.moves(tag.key, limit=MOVES_MAX)}
        return named

    async def _is_listed(self, key: VersionKey) -> bool:
        stored = await self._definitions.get(*key)
        return stored is None or stored.origin != "run"

    async def _tag_names(self, name: str | None) -> Mapping[VersionKey, Sequence[str]]:
        found: dict[VersionKey, Any] = {}
        for tag in await self._service.tags.list(name):
            found.setdefault((tag.key.workflow, tag.version), []).append(tag.key.tag)
        return found

    async def _hosted_versions(self) -> dict[VersionKey, str]:
        """Return the versions that living hosts have registered, with their styles."""
        local = self._service.local
        found: dict[VersionKey, str] = {}
        for (name, version), style in (await offered_versions(self._service)).items():
            callee = local.catalogue.resolve(name, version) if local is not None else None
            found[name, version] = callee.style if callee is not None else style
        return found


def _is_registered(name: str, offered: Mapping[VersionKey, str]) -> bool:
    """Return whether a host has a workflow of this name. Runs whose goals were named by steps have none."""
    return any(key[0] == name and style for key, style in offered.items())


def _version_view(
    key: VersionKey, stored: Definition | None, hosted: Mapping[VersionKey, str], *, tags: Sequence[str], open_runs: int
) -> WorkflowVersion:
    return WorkflowVersion(
        name=key[0],
        version=key[1],
        style=stored.style if stored is not None else hosted.get(key, ""),
        origin=stored.origin if stored is not None else "",
        hosted=key in hosted,
        base=_made_from.decode(stored.body).base if stored is not None and is_graph(stored) else "",
        tags=list(tags),
        open_runs=open_runs,
        created_at=datetime.fromtimestamp(stored.created_at / 1000, UTC) if stored is not None else None,
    )


def _unnamed_version(key: VersionKey, stored: Definition | None, ran: RunRow | None) -> WorkflowVersion:
    """Return a version that no host and no open run names."""
    view = _version_view(key, stored, {}, tags=[], open_runs=0)
    return msgspec.structs.replace(view, style=ran.style) if ran is not None else view
