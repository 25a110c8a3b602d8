"""Patches that an agent makes: of the graph run that it is a node of, or of a workflow under a tag.

An agent may add nodes and edges, and change those that it added, unless they have run. Everything else of the document
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.findings import Finding
from weft.core.ids import RunId
from weft.core.secrets import references_in
from weft.errors import BadPatch, BadValue, PatchRefused, WeftError
from weft.ports.store import RunRow
from weft.runtime.graph_patches import bad_patch, new_source, read_graph_patch
from weft.runtime.patch_limits import agents_in
from weft.runtime.patch_policy import LISTS, elements_by_name, operation_names
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.policy import DENIED, tenant_of
from weft.runtime.programs import is_graph, read_graph
from weft.runtime.publication import PublicationService, WorkflowPatch
from weft.runtime.service import RunService
from weft.runtime.tenancy import TenantService

OPERATIONS_MAX = 20
AGENTS_MAX = 5
"""How many agent nodes an agent adds to a run, in all its patches."""


class PatchReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a patch would do or has done, or why it is refused."""

    error: str = ""
    is_denied: bool = False
    """Whether the policy refuses it."""
    findings: list[dict[str, Any]] = []
    run: str = ""
    """The run that is patched; empty for a new version under a tag."""
    workflow: str = ""
    version: str = ""
    names: list[str] = []
    """The names of the operations, as the policy knows them."""
    changes: list[str] = []
    digest: str = ""
    applied: bool = False
    review: list[str] = []
    """Who has to agree before it is applied, if it is not applied yet."""


class AgentPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch as an agent gives it."""

    operations: list[dict[str, Any]]
    description: str = ""
    tag: str = ""

    def document(self) -> dict[str, Any]:
        """Return the patch as people write it."""
        return {"ops": self.operations, **({"reason": self.description} if self.description else {})}


class WorkflowPatcher:
    """Makes the patches of one run of an agent."""

    def __init__(self, service: RunService, agent: str, run_id: str) -> None:
        tenant = tenant_of(run_id)
        self._service = TenantService(service, tenant) if tenant else service
        self._by = f"agent:{agent}"
        self._run_id = RunId(run_id.partition("/")[2] if tenant else run_id)

    async def plan(self, patch: AgentPatch) -> PatchReport:
        """Say what a patch would do. Changes nothing."""
        try:
            return await self._planned(patch)
        except WeftError as error:
            return _refused_patch(error)

    async def apply(self, patch: AgentPatch, plan: PatchReport, approved_by: list[str], key: str) -> PatchReport:
        """Apply a patch if it still does what was planned. With the same key, it is applied once."""
        try:
            if not plan.run:
                return await self._publish(patch, plan)
            options = PatchOptions(by=self._by, expect=plan.digest, key=key, approved_by=approved_by)
            done = await PatchService(self._service).patch(plan.run, patch.document(), options)
        except WeftError as error:
            return _refused_patch(error)
        review = [] if done.applied else list(done.review)
        return msgspec.structs.replace(plan, applied=done.applied, review=review, version=done.version)

    async def _planned(self, patch: AgentPatch) -> PatchReport:
        if len(patch.operations) > OPERATIONS_MAX:
            raise BadPatch(f"A patch of an agent has at most {OPERATIONS_MAX} operations.", findings=[])
        graph_run = await self._graph_run()
        if graph_run is None or not await self._is_own(graph_run, patch.tag):
            return await self._planned_version(graph_run, patch)
        before = await self._source(graph_run.workflow, graph_run.version)
        after = self._changed(patch, before)
        owned = await self._added_by_agent(graph_run)
        self._check(before, after, owned, await self._nodes_that_ran(graph_run))
        count = len(agents_in(after) & (owned["nodes"] | (agents_in(after) - agents_in(before))))
        if count > AGENTS_MAX:
            raise BadPatch(f"An agent adds at most {AGENTS_MAX} agent nodes to a run.", findings=[])
        document = patch.document()
        plan = await PatchService(self._service).patch(
            graph_run.id, document, PatchOptions(by=self._by, dry_run=True, asks=True)
        )
        if plan.refusals:
            findings = [{"code": one.code, "message": one.message} for one in plan.refusals]
            return PatchReport(error="The patch does not fit the run as it stands.", findings=findings)
        if plan.unchanged:
            return PatchReport(error="The patch changes nothing.")
        return PatchReport(
            run=graph_run.id,
            workflow=graph_run.workflow,
            version=plan.version,
            names=operation_names(document, before, after),
            changes=plan.changes,
            digest=plan.digest,
        )

    async def _planned_version(self, graph_run: RunRow | None, patch: AgentPatch) -> PatchReport:
        name, _, tag = patch.tag.rpartition(":")
        name = name or (graph_run.workflow if graph_run is not None else "")
        if not name or not tag:
            raise BadValue("This agent is no node of a graph.", hint="Give workflow_tag as WORKFLOW:TAG.")
        publication = PublicationService(self._service)
        base, definition = await publication.preview(name, tag, self._workflow_patch(patch))
        before, after = await self._source(name, base), read_graph(definition).source
        self._check(before, after, {field: set() for field in LISTS}, set())
        names = operation_names(patch.document(), before, after)
        return PatchReport(workflow=name, version=definition.version, names=names, digest=base)

    async def _publish(self, patch: AgentPatch, plan: PatchReport) -> PatchReport:
        tag = patch.tag.rpartition(":")[2]
        given = msgspec.structs.replace(self._workflow_patch(patch), by=self._by, reason=patch.description)
        based = msgspec.structs.replace(given, patch={**given.patch, "base": plan.digest})
        _, now = await self._service.tags.standing(plan.workflow, tag)
        if now != plan.version:  # a repeated attempt finds it done
            await PublicationService(self._service).publish(plan.workflow, tag, based)
        return msgspec.structs.replace(plan, applied=True)

    def _workflow_patch(self, patch: AgentPatch) -> WorkflowPatch:
        return WorkflowPatch(patch=patch.document(), sets_changes=False)

    async def _graph_run(self) -> RunRow | None:
        """Return the graph run that this agent is a node of."""
        own = await self._service.row(self._run_id)
        above = await self._service.store.directory.row(own.parent) if own.parent is not None else None
        found = await self._service.store.definitions.get(above.workflow, above.version) if above is not None else None
        return above if found is not None and is_graph(found) else None

    async def _is_own(self, graph_run: RunRow, tag: str) -> bool:
        started = await self._service.reader.started_with(graph_run)
        own = {"", graph_run.workflow, *((started.tag, f"{graph_run.workflow}:{started.tag}") if started.tag else ())}
        return tag in own

    async def _source(self, workflow: str, version: str) -> dict[str, Any]:
        found = await self._service.store.definitions.get(workflow, version)
        return read_graph(found).source if found is not None else {}

    def _changed(self, patch: AgentPatch, before: dict[str, Any]) -> dict[str, Any]:
        limits = self._service.patch_limits
        return new_source(read_graph_patch(msgspec.json.encode(patch.document()), limits), before, limits)

    async def _added_by_agent(self, graph_run: RunRow) -> dict[str, set[str]]:
        """Return the nodes and edges that this agent has added to the run."""
        found: dict[str, set[str]] = {field: set() for field in LISTS}
        before: dict[str, Any] = {}
        for one in await PatchService(self._service).versions(graph_run.id):
            after = await self._source(graph_run.workflow, one.version)
            for field in LISTS if one.by == self._by else ():
                found[field] |= elements_by_name(after.get(field)).keys() - elements_by_name(before.get(field)).keys()
            before = after
        return found

    async def _nodes_that_ran(self, graph_run: RunRow) -> set[str]:
        """Return the nodes that have begun to work."""
        found = set()
        async for stored in self._service.reader.events(graph_run):
            node = getattr(e.decode(stored.body), "node", "")
            if isinstance(node, str):
                found.add(node)
        return found

    def _check(
        self, before: Mapping[str, Any], after: Mapping[str, Any], owned: Mapping[str, set[str]], ran: set[str]
    ) -> None:
        """Raise BadPatch with everything that an agent may not change."""
        findings = [
            Finding("patch.not_for_agents", f"an agent may not change {field}.", field)
            for field in {**before, **after}
            if field not in LISTS and before.get(field) != after.get(field)
        ]
        for field in LISTS:
            old, new = elements_by_name(before.get(field)), elements_by_name(after.get(field))
            for name, element in old.items():
                if new.get(name) != element and (name not in owned[field] or name in ran):
                    why = "has begun to work" if name in ran else "was not added by this agent"
                    findings.append(Finding("patch.not_for_agents", f"{name} {why}.", f"{field}.{name}"))
            for name, element in new.items():
                if old.get(name) != element and references_in(msgspec.json.encode(element)):
                    findings.append(Finding("patch.not_for_agents", f"{name} names a secret.", f"{field}.{name}"))
        if findings:
            raise bad_patch(findings)


def _refused_patch(error: WeftError) -> PatchReport:
    listed = error.context.get("findings", [])
    findings = [msgspec.to_builtins(one) for one in listed] if isinstance(listed, list) else []
    if isinstance(error, PatchRefused):
        findings += [{"code": one.code, "message": one.message} for one in error.plan.refusals]
    return PatchReport(
        error=f"{error.message} {error.hint}".strip(), is_denied=error.code == DENIED, findings=findings[:20]
    )
