"""Compare two runs, two versions or two documents. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from weft.core.graph.model import GraphModel
from weft.core.ids import RunId
from weft.core.run.composites import open_raw
from weft.core.values import blobs_in
from weft.errors import Corrupt, NotFound, Refused, UsageError
from weft.graphs.load import load_graph
from weft.observe.graph_diff import DocumentDiff, compare_documents
from weft.observe.run_diff import TraceDiff, compare
from weft.observe.run_trace import RunTrace
from weft.observe.styles import views_of
from weft.ports.store import RunRow
from weft.runtime.programs import read_graph
from weft.runtime.service import RunService
from weft.runtime.version_refs import is_version_ref, parse_version_ref
from weft.runtime.versions import VersionService


class DiffSide(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the two things that are compared."""

    name: str
    kind: str
    """``run``, ``version`` or ``file``."""
    version: str = ""
    status: str = ""
    seq: int = 0


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two runs, or between two versions or documents.

    ``equal`` is about what was done; times are never equal, and are not counted.
    """

    a: DiffSide
    b: DiffSide
    equal: bool
    runs: TraceDiff | None = None
    documents: DocumentDiff | None = None


class _Document(NamedTuple):
    side: DiffSide
    source: dict[str, Any]
    graph: GraphModel


class DiffService:
    """Compares what a store has."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def diff(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs (up to an event each), or two versions or files. Raises NotFound, UsageError, Refused."""
        runs = [await self._run(name) for name in (a, b)]
        if runs[0] is not None and runs[1] is not None:
            return await self.runs(runs[0], runs[1], at_a=at_a, at_b=at_b)
        if at_a is not None or at_b is not None:
            raise UsageError("Only runs have events: --at-a and --at-b are for them.")
        if runs != [None, None]:
            one, other = (a, b) if runs[0] is not None else (b, a)
            raise UsageError(f"{one} is a run and {other[:100]} is not, so they cannot be compared.")
        return _compared(await self._document(a), await self._document(b))

    async def _run(self, name: str) -> RunRow | None:
        try:
            return await self._service.by_prefix(name)
        except NotFound:
            return None

    async def _document(self, name: str) -> _Document:
        """Return the document of a version, or of a file. Raises NotFound, Refused."""
        found = _read_file(name)
        if found is not None:
            return found
        if not is_version_ref(name):
            raise NotFound(
                f"{name!r} is no run, version or file.", hint="Name a run, WORKFLOW@VERSION, WORKFLOW:TAG or a file."
            )
        ref = parse_version_ref(name)
        version = ref.version or await VersionService(self._service).version_of_tag(ref)
        definition = await self._service.store.definitions.get(ref.workflow, version)
        if definition is None:
            raise NotFound(f"{ref.workflow} has no stored version {version!r}.", hint=f"weft workflows {ref.workflow}")
        try:
            stored = read_graph(definition)
        except Corrupt as error:
            raise Refused(f"{name} is not a graph, so it cannot be compared.") from error
        return _Document(DiffSide(name, "version", definition.version), stored.source, stored.graph)

    # --- runs -----------------------------------------------------------------------------------------------------

    async def runs(self, a: RunRow, b: RunRow, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs, up to an event each."""
        left, right = await self._trace(a, at_a), await self._trace(b, at_b)
        blobs = await self._blobs(left, right)
        found = compare(left, right, lambda raw: open_raw(raw, blobs.get))
        sides = [
            DiffSide(row.id, "run", row.version, trace.run.outcome, trace.seq) for row, trace in ((a, left), (b, right))
        ]
        equal = not (found.first or found.changed or found.only_a or found.only_b)
        return Diff(a=sides[0], b=sides[1], equal=equal, runs=found)

    async def _trace(self, row: RunRow, at: int | None) -> RunTrace:
        reader = self._service.reader
        stored = [event async for event in reader.events(row)]
        if at is not None and not 1 <= at <= len(stored):
            raise Refused(f"{row.id} has the events 1 to {len(stored)}, so it has no event {at}.", code="fork.no_point")
        if not stored:
            raise Refused(f"{row.id} has not begun, so there is nothing to compare.", code="fork.not_possible")
        return RunTrace(await reader.empty_machine(row, row.uid, stored), stored[:at], views_of(row.style))

    async def _blobs(self, a: RunTrace, b: RunTrace) -> dict[str, bytes]:
        """Return the blobs of values that are not equal as they stand."""
        found: dict[str, bytes] = {}
        for digest in _unequal_references(a, b):
            if digest not in found:
                found[digest] = await self._service.values.blob(digest)
        return found

    async def by_ids(self, a: str, b: str, *, at_a: int | None = None, at_b: int | None = None) -> Diff:
        """Compare two runs by their ids. Raises NotFound."""
        rows = [await self._service.row(RunId(name)) for name in (a, b)]
        return await self.runs(rows[0], rows[1], at_a=at_a, at_b=at_b)


def _unequal_references(a: RunTrace, b: RunTrace) -> Iterable[str]:
    pairs = [(a.run, b.run), *((item, b.items[place]) for place, item in a.items.items() if place in b.items)]
    for left, right in pairs:
        for one, other in ((left.input, right.input), (left.value, right.value)):
            if one != other:
                yield from (*blobs_in(one), *blobs_in(other))


def diff_files(a: str, b: str) -> Diff | None:
    """Compare the documents in two files; None if one of them is no file. Raises BadGraph."""
    left, right = _read_file(a), _read_file(b)
    return None if left is None or right is None else _compared(left, right)


def _compared(left: _Document, right: _Document) -> Diff:
    found = compare_documents(left.source, right.source, (left.graph, right.graph))
    return Diff(a=left.side, b=right.side, equal=not found.operations, documents=found)


def _read_file(name: str) -> _Document | None:
    """Return the document in a file; None if there is no such file. Raises BadGraph."""
    if not Path(name).is_file():
        return None
    loaded = load_graph(name)
    return _Document(DiffSide(name, "file", loaded.hash[:16]), loaded.source, loaded.graph)
