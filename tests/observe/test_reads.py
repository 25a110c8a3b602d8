"""Looking at a run costs what is to be seen, not the length of its log."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core.ids import RunId
from weft.observe.dead_letters import all_dead_letters
from weft.observe.explain import explain
from weft.observe.questions import all_open, open_in
from weft.observe.usage import usage_of
from weft.runtime.service import RunService
from weft.testing.faults import StoreCall, WiredStore

STEPS = 600


def asking() -> weft.App:
    app = weft.App("memory://")

    @app.step
    def pack(n: int) -> str:
        return f"{n:0100}"

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        for n in range(STEPS):
            await pack(n)
        return (await ctx.ask("ship", title="Ship?")).by

    return app


def sinking() -> weft.App:
    """A graph that packs many things one after another; then something fails that no edge takes."""
    app = weft.App("memory://")

    @app.step
    def pack(n: int) -> int:
        return n + 1

    @app.step
    def sink() -> None:
        raise ValueError("too heavy")

    again = {"while": f"state.n < {STEPS}", "at_most": STEPS, "back_to": "pack"}
    pack_node = {
        "step": "pack",
        "with": {"n": "${state.n}"},
        "save": {"state.n": "${output}"},
        "repeat": again,
        "next": "sink",
    }
    begin = {"pass": True, "save": {"state.n": 0}, "next": "pack"}
    nodes = {"begin": begin, "pack": pack_node, "sink": {"step": "sink"}}
    app.graph({"weft": "graph/1", "name": "flow", "nodes": nodes})
    return app


class Counted:
    """A second way to the store of a desk, which counts what is read through it."""

    def __init__(self, desk: Desk, *, beside_the_engine: bool) -> None:
        self.calls: Counter[str] = Counter()
        self.events = 0
        self.log_length = 0
        store: Any = WiredStore(desk.store.share(), self._carry)
        self.service = RunService(store, desk.clock, desk.ids, desk.app.service if beside_the_engine else None)

    async def _carry(self, call: StoreCall) -> Any:
        found = call.apply()
        self.calls[call.what] += 1
        if call.what == "log.load":
            self.events += len(found.events)
            self.log_length = found.row.seq
        elif call.what == "log.events":
            self.events += len(found)
        return found

    def reads_of_the_log(self) -> int:
        return self.calls["log.load"] + self.calls["log.events"]

    def read_from_a_snapshot(self) -> bool:
        """Whether the log was read once, and only what stands behind a snapshot."""
        return self.reads_of_the_log() == 1 and self.events < self.log_length / 2


async def started(app: weft.App) -> weft.Handle[Any]:
    run = await app.start("flow", {}, id="run")
    await calm()
    return run


def test_a_question_of_a_run_in_memory_is_shown_without_reading_its_log() -> None:
    app = asking()
    desk = Desk(app)

    async def scene() -> Counted:
        await started(app)
        counted = Counted(desk, beside_the_engine=True)
        (item,) = [found async for found in all_open(counted.service)]
        assert (item.id, item.question.title) == ("run:ship", "Ship?")
        await explain(counted.service, item.row)
        return counted

    assert desk.play(scene).reads_of_the_log() == 0


def test_the_usage_of_a_run_in_memory_is_shown_without_reading_its_log() -> None:
    app = asking()
    desk = Desk(app)

    async def scene() -> Counted:
        await started(app)
        counted = Counted(desk, beside_the_engine=True)
        await usage_of(counted.service, await counted.service.row(RunId("run")))
        return counted

    assert desk.play(scene).reads_of_the_log() == 0


def test_a_question_of_a_run_elsewhere_is_read_from_its_snapshot() -> None:
    app = asking()
    desk = Desk(app)

    async def scene() -> Counted:
        await started(app)
        counted = Counted(desk, beside_the_engine=False)
        row = await counted.service.row(RunId("run"))
        assert row.seq > 2 * STEPS
        (item,) = await open_in(counted.service, row)
        assert item.place == "ship"
        return counted

    assert desk.play(scene).read_from_a_snapshot()


def test_explaining_a_run_elsewhere_reads_it_once() -> None:
    app = asking()
    desk = Desk(app)

    async def scene() -> Counted:
        await started(app)
        counted = Counted(desk, beside_the_engine=False)
        told = await explain(counted.service, await counted.service.row(RunId("run")))
        assert [item.kind for item in told.waiting] == ["ask"]
        return counted

    assert desk.play(scene).read_from_a_snapshot()


def test_dead_letters_of_a_run_that_is_over_are_read_from_its_snapshot() -> None:
    app = sinking()
    desk = Desk(app)

    async def scene() -> Counted:
        with pytest.raises(weft.RunFailed):
            await (await started(app)).result()
        counted = Counted(desk, beside_the_engine=True)
        (found,) = [letter async for letter in all_dead_letters(counted.service)]
        assert found.letter.node == "sink", found.letter.failure.message
        assert found.row.seq > 3 * STEPS
        return counted

    assert desk.play(scene).read_from_a_snapshot()
