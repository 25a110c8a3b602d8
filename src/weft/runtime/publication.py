"""Publish versions of graphs: make one by a patch or from a document, and let a tag name it.

No run is touched: new runs that name the tag get the version. The tag moves only if it still names the version that the
patch was written against.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from weft.core import values
from weft.core.findings import Finding, document_error
from weft.core.graph.model import GraphModel
from weft.core.graph.patch.form import GraphPatch
from weft.errors import BadPatch, NotAllowed, NotFound, StaleBase
from weft.ports.definitions import Definition
from weft.runtime.graph_patches import bad_patch, new_source, read_graph_patch
from weft.runtime.offered_versions import sees_version
from weft.runtime.orders import stored_workflow
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.patches import PatchService
from weft.runtime.programs import StoredGraph, graph_definition, is_graph, read_graph, store_definition
from weft.runtime.service import RunService
from weft.runtime.version_refs import VersionRef


class PublishedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version that a tag names now."""

    workflow: str
    tag: str
    version: str
    base: str
    """The version that the tag, or else the workflow, had before."""
    moved: bool
    """False if the tag named this version already."""


class WorkflowPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch of a workflow: operations, a whole document, or a version.

    ``text`` is a document as its author wrote it, which is stored as it is.
    """

    patch: Mapping[str, Any] = {}
    text: str = ""
    file: str = ""
    """The name of the file that has the text, for findings."""
    by: str = ""
    reason: str = ""
    sets_changes: bool = True
    """Whether the author may say who must agree to changes of runs."""


class PublicationService:
    """Publishes versions of graphs, as one caller may."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._definitions = service.store.definitions

    async def preview(self, name: str, tag: str, patch: WorkflowPatch) -> tuple[str, Definition]:
        """Return the version that a patch is written against, and the one it leads to. Writes nothing.

        Raises what ``publish`` raises.
        """
        _, current = await self._service.tags.standing(name, tag)
        base = current or await self._newest_version(name)
        definition = await self._prepare_version(name, base, _read_patch(patch, self._service.patch_limits), patch)
        if not patch.sets_changes:
            await self._check_changes(name, base, definition)
        return base, definition

    async def publish(self, name: str, tag: str, patch: WorkflowPatch) -> PublishedVersion:
        """Make a version and let the tag name it, if it still names the base of the patch.

        Raises:
            StaleBase: the tag names another version than the one the patch was written against.
            BadPatch, BadGraph: the patch or the new document is not valid.
            NotFound, LimitExceeded: there is no such workflow; the document is too large.
        """
        tags = self._service.tags
        known, current = await tags.standing(name, tag)
        base = current or await self._newest_version(name)
        form = _read_patch(patch, self._service.patch_limits)
        if form.base and form.base != base:
            raise self._stale_base_error(name, tag, form.base, base)
        definition = await self._prepare_version(name, base, form, patch)
        if not patch.sets_changes:
            await self._check_changes(name, base, definition)
        await store_definition(self._definitions, definition)
        moved = await tags.move_from(known, definition.version, by=patch.by, reason=patch.reason or form.reason)
        if moved is None:
            _, now = await tags.standing(name, tag)
            raise self._stale_base_error(name, tag, base, now)
        return PublishedVersion(
            workflow=name, tag=tag, version=definition.version, base=base, moved=moved.revision != known.revision
        )

    async def _check_changes(self, name: str, base: str, new: Definition) -> None:
        """Raise NotAllowed if a version has another ``changes`` than the one before."""
        if read_graph(new).graph.review != read_graph(await self._load_version(name, base)).graph.review:
            raise NotAllowed(
                f"Who must agree to changes of runs of {name[:60]} can only be set by an administrator.",
                hint="It needs the scope admin. Leave changes as it is.",
            )

    async def _prepare_version(self, name: str, base: str, form: GraphPatch, patch: WorkflowPatch) -> Definition:
        """Return the version that a patch leads to. Writes nothing."""
        if form.to:
            return await self._load_version(name, await self._version_named(name, form.to))
        from weft.graphs.load import load_graph, parse_graph  # noqa: PLC0415 - slow to import

        context = PatchService(self._service).document_context()
        if patch.text:
            loaded = parse_graph(patch.text, patch.file, context)
        else:
            old = read_graph(await self._load_version(name, base)).source
            loaded = load_graph(new_source(form, old, self._service.patch_limits), context)
        self._check_policy(loaded.graph)
        self._service.patch_limits.check_size(len(values.encode_trusted(loaded.source)))
        if loaded.graph.name != name:
            text = f"the name of a workflow cannot change: {name} would become {loaded.graph.name}."
            raise bad_patch([Finding("patch.invalid", text, "name")])
        ops = [] if form.ops is UNSET else form.ops
        stored = StoredGraph(loaded.source, loaded.graph, loaded.text, base, ops)
        return graph_definition(stored, now=self._service.clock.now_ms(), origin="patch")

    def _check_policy(self, graph: GraphModel) -> None:
        """Raise BadGraph if the policy denies something in a graph to everybody."""
        if self._service.policy.rules is None:
            return
        from weft.agents.policy.graph_work import policy_findings  # noqa: PLC0415 - only with a policy

        findings = policy_findings(graph, self._service.policy.rules)
        if findings:
            raise document_error(findings, name=graph.name)

    async def _newest_version(self, name: str) -> str:
        versions = await self._definitions.versions(name)
        hosted = [one.version for one in versions if is_graph(one) and one.origin == "hosted"]
        if not hosted:
            raise NotFound(
                f"There is no graph {name[:60]!r} in the store.", hint="A graph is stored when a process hosts it."
            )
        return hosted[-1]

    async def _load_version(self, name: str, version: str) -> Definition:
        found = await stored_workflow(self._definitions, name, version)
        if found is None or not is_graph(found) or not await sees_version(self._service, name, version):
            raise NotFound(f"{name[:60]} has no version {version[:60]!r} with a document.")
        return found

    async def _version_named(self, name: str, named: str) -> str:
        found = await stored_workflow(self._definitions, name, named)
        if found is not None and await sees_version(self._service, name, named):
            return named
        return await self._service.tags.version(VersionRef(name, tag=named))

    def _stale_base_error(self, name: str, tag: str, base: str, now: str) -> StaleBase:
        return StaleBase(
            f"The patch was written against version {base[:16]}, but {name}:{tag} names {now[:16] or 'none'}.",
            hint=f"To see what has moved it: weft workflows tag {name} {tag}",
            base=base,
            version=now,
        )


def _read_patch(patch: WorkflowPatch, limits: PatchLimits) -> GraphPatch:
    """Read a patch. Raises BadPatch for instructions, which are for runs."""
    given = {**patch.patch, "document": {}} if patch.text else dict(patch.patch)
    form = read_graph_patch(values.encode(given, what="the patch has"), limits)
    if form.has_instructions or form.rename:
        raise BadPatch(
            "The patch of a workflow has no instructions: there are no tokens to move.",
            hint="Leave out rename, move, drop, start, restart, again and set; they are for weft patch RUN.",
        )
    return form
