"""The views of graph runs: joins, the path, dead letters, and the graph as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from weft.core import events as e
from weft.core.graph.machine import GraphMachine
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import DeadLetter
from weft.core.run.composites import compose
from weft.observe.diagnosis import Diagnosis, PendingWait, Progress
from weft.observe.explanation import ExplainedLine, StyleSentences
from weft.observe.graph_check import check_graph
from weft.observe.graph_operations import GraphOperations
from weft.observe.graph_path import GraphPath, joins_of
from weft.observe.graph_sentences import join_sentence, path_sentence, skip_sentence
from weft.observe.live_finding import LiveFinding, LiveRun
from weft.observe.operations import Keep, NoteChange, Operation, StyleOperations
from weft.observe.pictures import Picture, edges_taken, picture_of_graph
from weft.observe.run_moment import RunMoment
from weft.observe.runs import read_run
from weft.observe.style_views import Held, StyleViews
from weft.observe.task_wait import task_wait, timer_wait
from weft.ports.store import RunRow
from weft.runtime.service import RunService


class GraphViews(StyleViews[GraphMachine]):
    """The views of graph runs."""

    def waits(self, machine: GraphMachine, now: int) -> Iterator[PendingWait]:
        """Yield the waits for timers, for answers that come later, and of joins with a timeout."""
        state = machine.state
        for number, due in state.timers.items():
            if number in state.parked and number not in state.deadlines:
                yield task_wait(machine, "answer", number, state.parked[number], due)
            else:
                yield timer_wait(machine, "join" if number in state.deadlines else "sleep", number, due)

    def held(self, machine: GraphMachine) -> Held:
        """Return the fields of the state, and the rounds of its loops."""
        state = machine.state
        rounds = {
            f"{loop.loop} {loop.id}": msgspec.json.encode({"tokens": loop.live, "exits taken": loop.taken})
            for loop in state.loops.values()
        }
        return {"state": {name: bytes(compose(value)) for name, value in state.data.items()}, "loops": rounds}

    def aligned_place(self, machine: GraphMachine, number: int, place: str) -> str:
        """Return the node with its branch indexes and rounds. Ids of tokens differ between runs."""
        token = machine.state.tokens.get(machine.state.by_task.get(number, ""))
        if token is None:
            return place.partition("/")[0]
        return token.node + "".join(f"[{seg.n}]" if seg.kind == "f" else f"~{seg.n}" for seg in token.path)

    def progress(self, machine: GraphMachine) -> Iterator[Progress]:
        """Yield the progress of each fan-out."""
        places: dict[str, tuple[int, int]] = {}
        for frame in machine.state.frames.values():
            if not frame.fired:
                place = frame.fan_in or frame.opener
                done, total = places.get(place, (0, 0))
                places[place] = (done + frame.settled, total + frame.total)
        for place, (done, total) in places.items():
            yield Progress(place, done, total)

    async def details(self, service: RunService, row: RunRow, machine: GraphMachine) -> dict[str, Any]:
        """Return the fields of the diagnosis about the path, the skipped nodes and the open joins."""
        path = GraphPath(machine.graph)

        async def graph_of(version: str) -> GraphModel | None:
            program = await service.reader.version(row.workflow, version)
            return program.graph if program is not None else None

        revisions = machine.state.revisions
        first = revisions[0].base if revisions else row.version
        await path.read(service.reader.events(row, until=machine.state.seq), graph_of, first)
        return {
            "path": path.steps(),
            "skips": path.skips(machine.state),
            "joins": joins_of(machine.graph, machine.state),
        }

    def sentences(self, diagnosis: Diagnosis) -> StyleSentences:
        """Describe the path of the run, the skipped nodes, and what its joins wait for."""
        over = diagnosis.is_over
        return StyleSentences(
            path=[
                ExplainedLine(
                    text=path_sentence(step),
                    seq=step.seq,
                    boxes=[step.node, *(edge.to for edge in step.edges)],
                    arrows=[edge.edge for edge in step.edges],
                )
                for step in diagnosis.path
            ],
            skipped=[
                ExplainedLine(text=skip_sentence(skip, is_over=over), boxes=[skip.node]) for skip in diagnosis.skips
            ],
            joins=[
                ExplainedLine(text=join_sentence(join, is_over=over), boxes=[join.node, *join.sources])
                for join in diagnosis.joins
            ],
        )

    def operations(self, operations: dict[int, Operation], keep: Keep, note_change: NoteChange) -> StyleOperations:
        """Return the operations at nodes."""
        return GraphOperations(keep, note_change)

    async def picture(self, service: RunService, row: RunRow) -> Picture | None:
        """Return the graph with the tokens of the run; None if the graph is not in the store."""
        machine: Any = await read_run(service, row) if row.seq else None
        program = await service.reader.program(row)
        if program is None:
            return None
        taken: Counter[str] = Counter()
        async for stored in service.reader.events(row):
            taken += edges_taken([e.decode(stored.body)])
        return picture_of_graph(program.graph, machine.state if machine is not None else None, taken)

    def draw(self, machine: GraphMachine, moment: RunMoment) -> Picture:
        """Return the graph that the run follows, with its tokens."""
        return picture_of_graph(machine.graph, machine.state, moment.taken)

    async def overview(self, service: RunService, row: RunRow) -> Picture | None:
        """Return the picture of the run."""
        return await self.picture(service, row)

    def dead_letters(self, machine: GraphMachine) -> Mapping[str, DeadLetter]:
        """Return the dead letters of a run, by token."""
        return machine.state.letters

    async def is_stored(self, service: RunService, row: RunRow) -> bool:
        """Return whether the store has the graph of a run. Every host can then read it."""
        return await service.store.definitions.get(row.workflow, row.version) is not None

    def version_advice(self, version: str) -> str:
        """Return advice for a run whose version no host offers."""
        return "Run the program that registers this version, or: weft serve app.py"

    async def check_live(self, run: LiveRun, machine: GraphMachine) -> LiveFinding:
        return await check_graph(run, machine)
