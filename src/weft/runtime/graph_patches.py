"""Prepare the patch of a graph run: make the new document, compile it, and name its version."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from weft.core import values
from weft.core.event_parts import ABSENT
from weft.core.findings import Finding
from weft.core.graph.differences import describe_changes
from weft.core.graph.model import GraphModel
from weft.core.graph.patch.form import GraphPatch, GraphReport, decode_patch
from weft.core.run.state import State
from weft.errors import BadPatch, NotFound
from weft.ports.definitions import Definition
from weft.ports.store import RunRow
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.offered_work import refused_work
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.patch_parts import PatchParts, PreparedPatch, wrong_form
from weft.runtime.programs import StoredGraph, graph_definition, read_graph
from weft.runtime.version_refs import VersionRef


async def prepare_graph_patch(parts: PatchParts, row: RunRow, patch: bytes) -> PreparedPatch:
    """Make the version that a patch leads to. Raises BadPatch, BadGraph, NotFound, LimitExceeded. Writes nothing."""
    form = read_graph_patch(patch, parts.limits)
    old = read_graph(await _load_definition(parts, row, row.version))
    if form.to:
        version = await _resolve_tag(parts, row, form.to)
        new = read_graph(await _load_definition(parts, row, version))
        return PreparedPatch(
            base=form.base or row.version,
            version=version,
            reason=form.reason,
            prepared=await _report_refused_work(parts, new.graph, old.graph),
            changes=_describe_changes(old, new),
        )
    source = new_source(form, old.source, parts.limits)
    parts.limits.check_agents(old.source, source)
    stored = _compile_document(parts, row, source, [] if form.ops is UNSET else form.ops)
    definition = graph_definition(stored, now=parts.clock.now_ms(), origin="run")
    return PreparedPatch(
        base=form.base or row.version,
        version=definition.version,
        reason=form.reason,
        prepared=await _report_refused_work(parts, stored.graph, old.graph),
        changes=_describe_changes(old, stored),
        definition=definition,
        graph=stored.graph,
    )


async def _report_refused_work(parts: PatchParts, new: GraphModel, old: GraphModel) -> Raw:
    """Return what no host has or takes of the new version, for the judgement."""
    stored = StoredCatalogue(parts.definitions, parts.clock)
    refused = await refused_work(new, old, parts.catalogue, parts.hosts, stored)
    return Raw(msgspec.json.encode(GraphReport(refused))) if refused else ABSENT


async def prepare_graph_undo(parts: PatchParts, row: RunRow, state: State, rev: int) -> PreparedPatch:
    """Return the version before a patch."""
    version = state.revisions[rev - 1].base
    old, new = [read_graph(await _load_definition(parts, row, one)) for one in (row.version, version)]
    return PreparedPatch(base=row.version, version=version, changes=_describe_changes(old, new))


def _describe_changes(old: StoredGraph, new: StoredGraph) -> list[str]:
    return describe_changes(old.graph, new.graph, (old.source, new.source))


def read_graph_patch(patch: bytes, limits: PatchLimits) -> GraphPatch:
    """Read a patch and check its form. Raises BadPatch with everything that is wrong, LimitExceeded."""
    try:
        form = decode_patch(patch)
    except msgspec.ValidationError as error:
        hint = f"A patch of a graph run has {', '.join(GraphPatch.__struct_fields__)}."
        raise bad_patch([Finding("patch.invalid", f"{wrong_form(error)}.")], hint) from None
    findings = []
    if len(form.ways) != 1:
        given = " and ".join(form.ways) or "none of them"
        alone = "; ops: [] if the document stays as it is" if form.has_instructions and not form.ways else ""
        findings.append(Finding("patch.invalid", f"give exactly one of ops, document and to; it has {given}{alone}."))
    if form.has_instructions and not form.reason.strip():
        findings.append(Finding("patch.invalid", "a patch with instructions needs a reason.", "reason"))
    if findings:
        raise bad_patch(findings)
    if form.ops is not UNSET:
        limits.check_operations(len(form.ops))
    return form


def bad_patch(findings: list[Finding], hint: str = "") -> BadPatch:
    """Return the error for a patch that is not valid in itself."""
    first, more = findings[0].message, len(findings) - 1
    rest = f" ({more} more)" if more else ""
    return BadPatch(f"The patch is not valid: {first.rstrip('.')}{rest}.", hint=hint, findings=findings)


def new_source(form: GraphPatch, source: dict[str, Any], limits: PatchLimits) -> dict[str, Any]:
    """Return the document that a patch makes from another one. Raises BadPatch, LimitExceeded."""
    from weft.documents.json_patch import apply_operations  # noqa: PLC0415 - only needed where documents are changed
    from weft.graphs.fold import GRAPH_DOCUMENT  # noqa: PLC0415

    changed: Any = form.document
    if changed is UNSET:
        ops = form.ops if isinstance(form.ops, list) else []
        changed = apply_operations(source, ops, GRAPH_DOCUMENT.ids, bytes_max=limits.patch_bytes)
    if not isinstance(changed, dict):
        raise bad_patch([Finding("patch.invalid", "the operations leave no document.", "ops")])
    limits.check_size(len(values.encode_trusted(changed)))
    return changed


def _compile_document(parts: PatchParts, row: RunRow, source: dict[str, Any], ops: list[Any]) -> StoredGraph:
    loaded = parts.compiled.load(source, parts.document_context())
    if loaded.graph.name != row.workflow:
        text = f"the name of a workflow cannot change: {row.workflow} would become {loaded.graph.name}."
        raise bad_patch([Finding("patch.invalid", text, "name")])
    return StoredGraph(loaded.source, loaded.graph, base=row.version, ops=ops)


async def _load_definition(parts: PatchParts, row: RunRow, version: str) -> Definition:
    found = await parts.definitions.get(row.workflow, version)
    if found is None:
        raise NotFound(f"{row.workflow} has no version {version}.")
    return found


async def _resolve_tag(parts: PatchParts, row: RunRow, name: str) -> str:
    if await parts.definitions.get(row.workflow, name) is not None and await parts.sees_version(row.workflow, name):
        return name
    return await parts.tags.version(VersionRef(row.workflow, tag=name))
