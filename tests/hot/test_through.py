"""Which appends the engine lets wait for the durable store: whatever somebody outside relies on."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

import weft
from tests.code.timeless import calm
from tests.hot.hot_desk import END, HotDesk
from tests.runtime.flaky import FlakyStore, Script
from weft.core import commands as c
from weft.core.ids import Epoch, RunId
from weft.runtime.run.draft import PendingCommand


def played(*, undoable: bool = False, **options: Any) -> tuple[list[str], list[str]]:
    """Run a step with these options between plain ones.

    Returns what the store has of the run while the step is performed, and while the next one is.
    """
    app = weft.App()
    seen: list[list[str]] = []

    @app.step
    async def plain() -> None:
        """Do nothing."""

    async def take_back() -> None:
        """Undo it."""

    @app.step(**options)
    async def act() -> None:
        seen.append(desk.kinds())

    if undoable:
        act.undo(take_back)

    @app.step
    async def look() -> None:
        seen.append(desk.kinds())

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await plain()
        await act()
        await look()

    desk = HotDesk(app, policy=END)
    desk.run(flow())
    return seen[0], seen[1]


def test_of_plain_steps_the_store_has_nothing_while_they_are_performed() -> None:
    while_acting, after = played()
    assert while_acting == after
    assert while_acting.count("task_scheduled") == 1


def test_irreversible_work_is_in_the_store_before_it_begins_and_its_outcome_before_anything_follows() -> None:
    while_acting, after = played(effect="irreversible")
    assert while_acting.count("task_scheduled") == 2
    assert after.count("task_succeeded") == 2


def test_a_step_that_can_be_undone_is_in_the_store_before_it_begins() -> None:
    while_acting, _ = played(undoable=True)
    assert while_acting.count("task_scheduled") == 2


def waiting() -> tuple[weft.App, Any, asyncio.Event]:
    """A workflow that performs plain steps and receives messages meanwhile."""
    app = weft.App()
    gate = asyncio.Event()

    @app.step
    async def plain(n: int) -> int:
        if n == 2:
            await gate.wait()
        return n

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        return sum([await plain(n) for n in range(4)]) + await ctx.receive("n", int)

    return app, flow, gate


def test_a_command_is_in_the_store_when_it_is_answered() -> None:
    app, flow, gate = waiting()

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        assert desk.kinds().count("task_succeeded") == 0
        await run.send("n", 1)
        assert desk.kinds().count("task_succeeded") == 2
        assert "message_received" in desk.kinds()
        gate.set()
        assert await run.result() == 7

    desk = HotDesk(app, policy=END)
    desk.play(scene)


def test_an_answer_without_an_append_waits_until_what_it_was_decided_on_is_in_the_store() -> None:
    app, flow, gate = waiting()

    async def scene() -> None:
        run = await app.start(flow(), id="run")
        await calm()
        assert desk.kinds().count("task_succeeded") == 0
        actor = desk.host.runs.by_id[RunId("run")]
        await PendingCommand(c.ResumeRun()).decide_with(actor.post)  # it is not paused, so there is nothing to write
        assert desk.kinds().count("task_succeeded") == 2
        gate.set()
        await run.cancel()

    desk = HotDesk(app, policy=END)
    desk.play(scene)


def test_subscribers_are_told_of_a_commit_when_it_is_drained() -> None:
    app, flow, gate = waiting()

    async def scene() -> None:
        told: list[int] = []
        await app.start(flow(), id="run")
        desk.host.commits.watch(lambda _uid, seq, _status: told.append(seq))
        await calm()
        assert desk.hot.hot_lane.last == 2
        assert told == []
        await desk.hot.through_lane.flush()
        assert told == [4, 6]
        gate.set()

    desk = HotDesk(app, policy=END)
    desk.play(scene)


def test_subscribers_never_hear_of_what_is_lost() -> None:
    app, flow, gate = waiting()

    async def scene() -> None:
        told: list[int] = []
        await app.start(flow(), id="run")
        desk.host.commits.watch(lambda _uid, seq, _status: told.append(seq))
        await calm()
        uid = desk.store.content.ids["run"]  # type: ignore[index]
        desk.store.content.runs[uid].epoch = Epoch(9)
        desk.store.content.runs[uid].owner = None
        await desk.hot.through_lane.flush()
        await calm()
        assert told == []
        assert desk.host.runs.actors == {}, "it is another host's"
        gate.set()

    desk = HotDesk(app, policy=END)
    desk.play(scene, crash=True)


def test_hops_go_on_while_a_transaction_is_under_way() -> None:
    app, flow, gate = waiting()
    script = Script()
    desk = HotDesk(app, policy=END, store=FlakyStore(script))

    async def scene() -> None:
        first = await app.start(flow(), id="run")
        await app.start(flow(), id="other")
        await calm()
        before = desk.hot.hot_lane.last
        script.gate = asyncio.Event()
        actor = desk.host.runs.by_id[RunId("run")]
        message = PendingCommand(c.DeliverMessage("m1", "n", Raw(b"1")))
        sending = asyncio.create_task(message.decide_with(actor.post))
        await calm()
        assert script.batches[-1] == [actor.uid]
        gate.set()
        await calm()
        assert desk.hot.hot_lane.last > before
        assert not sending.done()
        script.gate.set()
        await sending
        assert await first.result() == 7

    desk.play(scene)


def test_a_crash_loses_no_hop_and_no_step_is_repeated() -> None:
    app, flow, gate = waiting()

    async def before() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def after() -> int:
        gate.set()
        run: weft.Handle[int] = app.get("run")
        await run.send("n", 1)
        return await run.result()

    desk = HotDesk(app, policy=END)
    desk.play(before, crash=True)
    assert desk.kinds().count("task_succeeded") == 0
    assert desk.play(after) == 7
    assert desk.kinds().count("task_lost") == 1
    assert desk.kinds().count("task_succeeded") == 4
