"""A graph in a world, its steps answered by the test. A step that no test speaks for answers with its own name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import weft
from weft.core.graph.model import GraphModel, StepWork
from weft.testing import SimRun, World

Document = Mapping[str, Any]
CONFIG = b"{}"
CONFIG_REF = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"


class Bench:
    """One graph among steps that take anything and answer as they are told.

    ``answers``: per step what to give, or a list of such, one for each attempt, the last for all that follow. A
    function is called with what the node is given; an exception is raised.
    """

    def __init__(self, source: Document | Path, answers: Mapping[str, Any] | None = None) -> None:
        self.app = weft.App("memory://")
        self.graph = self.app.graph(source if isinstance(source, Path) else _with_blobs(source))
        self._answers = dict(answers or {})
        self._world: World | None = None
        for name in step_names(self.graph.loaded.graph):
            self.add_step(name)

    def add_step(self, name: str) -> None:
        """A step that does nothing; what it answers is the world's."""
        if self.app.registered.find_step(name) is not None:
            return

        @self.app.step(name=name)
        async def answered(input: Any) -> Any:
            return name

    def add_graph(self, source: Document | Path) -> None:
        """Another graph beside it, to be called by name."""
        for name in step_names(self.app.graph(source).loaded.graph):
            self.add_step(name)

    @property
    def world(self) -> World:
        """Made when it is first needed: everything is registered by then."""
        if self._world is None:
            self._world = World(self.app)
            self._world.perform(lambda: self.app.service.store.blobs.put(CONFIG))
            self.speak(self._world)
        return self._world

    def speak(self, world: World) -> None:
        """Let the steps answer there as they do here."""
        for name, answer in self._answers.items():
            answers = answer if isinstance(answer, list) else [answer]
            world.fake(name, *(_called(one) if callable(one) else one for one in answers))

    def start(self, **given: Any) -> SimRun[dict[str, Any]]:
        return self.world.start(self.graph, given)

    def run(self, **given: Any) -> dict[str, Any]:
        return self.start(**given).result()

    def given(self, step: str) -> list[Any]:
        """What the step was given, attempt by attempt."""
        return [call.args["input"] for call in self.world.calls(step)]

    def times(self, step: str) -> int:
        return len(self.world.calls(step))


def _with_blobs(part: Any) -> Any:
    """A document whose made-up references lead to a blob that is there: an empty configuration."""
    if isinstance(part, Mapping):
        return {key: _referred(value) if key == "config_ref" else _with_blobs(value) for key, value in part.items()}
    return [_with_blobs(value) for value in part] if isinstance(part, list) else part


def _referred(reference: Any) -> Any:
    return CONFIG_REF if isinstance(reference, str) else {**reference, "cas_ref": CONFIG_REF}


def step_names(graph: GraphModel) -> Iterator[str]:
    """Every step that a graph performs, or takes something back with."""
    for node in graph.nodes.values():
        if isinstance(node.work, StepWork):
            yield node.work.step
        if node.undo is not None:
            yield node.undo.step


def went(run: SimRun[Any]) -> list[str]:
    """The nodes that a run has gone through, in the order in which they were left."""
    return [event.data["node"] for event in run.events if event.kind == "node_routed" and "node" in event.data]


def elapsed(run: SimRun[Any]) -> float:
    """How long a run took, or is under way, in seconds of its world."""
    events = run.events
    return (events[-1].at - events[0].at).total_seconds()


def _called(answer: Callable[[Any], Any]) -> Any:
    return lambda **arguments: answer(arguments["input"])


def same(given: Any) -> Any:
    """The answer of a step that gives what it was given."""
    return given


def after(seconds: float | Callable[[Any], float], answer: Any) -> Callable[[Any], Any]:
    """The answer of a step that takes so long, in the time of the world."""

    async def slowly(given: Any) -> Any:
        await asyncio.sleep(seconds(given) if callable(seconds) else seconds)
        return answer(given) if callable(answer) else answer

    return slowly


DOCUMENTS = Path(__file__).parent / "documents"
PROGRAMS = Path(__file__).parent / "programs"


def pattern(number: int, answers: Mapping[str, Any] | None = None) -> Bench:
    """The graph of a pattern."""
    [path] = DOCUMENTS.glob(f"{number:02}-*.yaml")
    return Bench(path, answers)


class Gauge:
    """Work that takes time; how much of it went on at once is seen here."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.order: list[Any] = []

    def taking(self, seconds: float) -> Any:
        async def work(*values: Any, **named: Any) -> Any:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            self.now -= 1
            [value] = [*values, *named.values()]
            self.order.append(value)
            return value

        return work
