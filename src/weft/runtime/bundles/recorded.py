"""Recorded runs in files: those of a bundle, or one run as JSON (``events/1``). Replay them against code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from weft.core import events as e
from weft.core.ids import Millis, Seq
from weft.errors import Corrupt, UnknownWorkflow, UsageError
from weft.ports.store import StoredEvent
from weft.runtime.bundles.archive import CheckedBundle, read_bundle
from weft.runtime.bundles.export import EVENTS, Exported
from weft.runtime.programs import (
    EmptyProgramRegistry,
    GraphProgram,
    code_machine,
    is_published,
    new_machine,
    read_graph,
)
from weft.runtime.run.driver import Program
from weft.runtime.run.replay import Replayed, ReplayedRun, replay
from weft.steps.failures import text_of

_ZIP_MARK = b"PK"

FindCode = Callable[[str, str], Program | None]
"""Returns the code of a workflow and version, if there is one."""


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a file has it."""

    uid: str
    id: str
    workflow: str
    version: str
    style: str
    events: Sequence[StoredEvent]
    blobs: Mapping[str, bytes]
    graph: GraphProgram | None = None
    """The definition of a graph run."""
    left_out: str = ""
    """The place of the first value that was left out, so that the run cannot be replayed."""


class ReplayedRecord(msgspec.Struct, frozen=True):
    """The outcome of replaying a recorded run."""

    run: RecordedRun
    outcome: Replayed


def read_recorded(data: bytes, file: str = "The file") -> list[RecordedRun]:
    """Read the runs of a file. Raises UsageError if it has none, and Corrupt if a bundle is damaged."""
    if data.startswith(_ZIP_MARK):
        return _of_bundle(read_bundle(data))
    try:
        exported = msgspec.json.decode(data, type=Exported)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{file} cannot be read as an exported run: {error}.", hint="Write one with weft export RUN."
        ) from error
    if exported.weft != EVENTS:
        raise UsageError(f"{file} has the format {exported.weft!r}, but this version of Weft reads {EVENTS!r}.")
    events = [
        # JSON in its stored form, regardless of the formatting of the file.
        StoredEvent(Seq(one.seq), Millis(one.at), msgspec.json.encode(msgspec.json.decode(one.event)))
        for one in exported.events
    ]
    first = e.decode(events[0].body) if events else None
    return [
        RecordedRun(
            uid=exported.uid,
            id=exported.run,
            workflow=exported.workflow,
            version=exported.version,
            style=first.style if isinstance(first, e.RunStarted) else "code",
            events=events,
            blobs={digest: text.encode() for digest, text in exported.blobs.items()},
        )
    ]


def _of_bundle(bundle: CheckedBundle) -> list[RecordedRun]:
    left_out = {one.run: f"{one.pointer} of event {one.seq}" for one in reversed(bundle.manifest.redacted) if one.run}
    graphs = _graphs(bundle)
    found = []
    for run in bundle.runs:
        about = run.about
        found.append(
            RecordedRun(
                uid=about.uid,
                id=about.id,
                workflow=about.workflow,
                version=about.version,
                style=about.style,
                events=run.events,
                blobs=bundle.blobs,
                graph=graphs.get((about.workflow, about.version)),
                left_out=left_out.get(about.uid, ""),
            )
        )
    return found


def _graphs(bundle: CheckedBundle) -> Mapping[tuple[str, str], GraphProgram]:
    """Return the graphs of a bundle. A patched run needs several versions of its graph."""
    graphs: dict[tuple[str, str], GraphProgram] = {}

    def finder(name: str) -> Callable[[str], GraphProgram | None]:
        return lambda version: graphs.get((name, version))

    for one in bundle.definitions:
        graph = read_graph(one).graph
        graphs[one.name, one.version] = GraphProgram(graph, one.version, EmptyProgramRegistry(), finder(one.name))
    return graphs


async def replay_recorded(run: RecordedRun, find: FindCode) -> Replayed:
    """Replay a recorded run against the code of today, performing nothing. A run without code is only folded.

    Raises UnknownWorkflow, UsageError, Corrupt.
    """
    if run.left_out:
        raise UsageError(
            f"{run.id} cannot be replayed: {run.left_out} was left out of the bundle.",
            hint="Export it without --redact.",
        )
    machine = new_machine(run.style, run.graph, run.uid)
    for one in run.events:
        try:
            machine.evolve(e.decode(one.body), at=one.at)
        except Exception as error:
            raise Corrupt(f"Event {one.seq} of {run.id} cannot be read: {text_of(error)}.") from error
    if is_published(run.style) or not run.events:
        return Replayed(verdict="fits")
    program = find(run.workflow, run.version)
    if program is None:
        raise UnknownWorkflow(f'No workflow "{run.workflow}" of version {run.version} is registered.')

    async def blob(digest: str) -> bytes:
        return run.blobs[digest]

    async def event(seq: Seq) -> bytes:
        return run.events[seq - 1].body

    now = run.events[-1].at
    return await replay(ReplayedRun(machine=code_machine(machine), blob=blob, event=event, now=now), program)
