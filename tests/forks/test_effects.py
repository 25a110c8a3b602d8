"""What a fork does with effects and with what was open: contracts, questions, children, timers."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests import scale
from tests.forks.programs import build, play, start
from tests.forks.test_edits import kinds, played
from weft.core.ids import RunId
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import ForkService
from weft.testing import SimRun, World, crash_everywhere

pytestmark = scale.MARKS


def asked(run: SimRun[Any]) -> list[str]:
    return [one.location for one in run.waiting_for() if one.kind == "ask"]


def test_irreversible_work_without_a_result_asks_and_is_performed_when_approved() -> None:
    _, ledger, run = played("line")
    fork = run.fork(input={"n": 5})
    fork.world.settle()

    assert asked(fork) == ["pay"]
    assert ledger.calls == {"plain": 1}
    fork.answer("pay", by="ann")
    assert play(fork) == ("completed", {"n": 420})
    assert ledger.paid == {2: 1, 6: 1}


def test_irreversible_work_that_is_rejected_fails() -> None:
    _, ledger, run = played("line")
    fork = run.fork(input={"n": 5})
    fork.world.settle()

    fork.answer("pay", approved=False, by="ann", reason="no")

    assert play(fork)[0] == "failed"
    assert ledger.paid == {2: 1}


def test_a_question_may_be_answered_beforehand() -> None:
    _, ledger, run = played("line")

    fork = run.fork(input={"n": 5}, approved=["pay"])

    fork.world.advance("3h")
    assert "perform_asked" not in kinds(fork)
    assert [event.data["approved"] for event in fork.events if event.kind == "task_released"] == ["pay"]
    assert fork.result() == {"n": 420}
    assert ledger.paid == {2: 1, 6: 1}


@pytest.mark.parametrize("name", ["line", "graph_line", "delivery"])
def test_a_fork_without_effects_stops_where_it_would_have_one(name: str) -> None:
    edits: Any = {"given": {"order": 10}} if name == "delivery" else {"input": {"n": 5}}
    _, ledger, run = played(name)
    fork = run.fork(effects="none", **edits)

    fork.world.advance("3h")

    assert fork.status == "held"
    held = next(event for event in fork.events if event.kind == "run_held")
    assert held.data["code"] == "fork.would_perform"
    assert "Give it one: weft set " in held.data["message"]
    assert not ledger.calls


@pytest.mark.parametrize("name", ["line", "graph_line", "delivery"])
def test_a_fork_without_effects_ends_if_the_original_has_all_results(name: str) -> None:
    _, ledger, run = played(name)

    assert play(run.fork(effects="none"))[0] == "completed"
    assert set(ledger.calls) <= {"calculate"}, "pure steps are performed"


def test_children_that_were_open_begin_anew() -> None:
    _, ledger, run = played("people")
    opened = next(event.seq for event in run.events if event.kind == "child_started")

    fork = run.fork(at=opened)

    assert play(fork)[0] == "completed"
    assert ledger.calls == {"plain": 1}
    restarted = next(event for event in fork.events if event.kind == "run_forked")
    assert restarted.data["children"][0]["run_id"] == f"{fork.id}.child"


def test_children_that_were_open_give_the_end_they_had() -> None:
    _, ledger, run = played("people")
    opened = next(event.seq for event in run.events if event.kind == "child_started")

    fork = run.fork(at=opened, effects="reuse")

    assert play(fork)[0] == "completed"
    assert not ledger.calls


def test_questions_are_asked_anew_and_timers_keep_their_time() -> None:
    app, _ = build()
    world = World(app)
    run = start(app, world, "people", "original")
    play(run)
    opened = next(event.seq for event in run.events if event.kind == "ask_opened")
    fork = run.fork(at=opened)
    fork.world.settle()
    assert asked(fork) == ["go"]

    line = start(app, world, "line", "line")
    line.world.settle()
    sleeping = line.fork(at=max(event.seq for event in line.events))
    world.advance("61m")
    assert sleeping.status == "completed"


def test_a_fork_has_no_parent_and_tells_nobody() -> None:
    _, _, run = played("people")
    child = SimRun(run.world, "original.child", lambda: run.world.app.get("original.child"))

    fork = child.fork()

    fork.world.advance("3h")
    assert fork.status == "completed"
    assert "parent" not in fork.events[0].data


def test_the_deadline_begins_anew() -> None:
    app = weft.App("memory://")

    @app.workflow(timeout="2h")
    async def slow(ctx: weft.Context) -> str:
        await ctx.receive("go")
        return "done"

    world = World(app)
    run = world.start(slow(), id="o")
    world.advance("90m")
    fork = run.fork(at=2)
    world.advance("60m")
    assert (run.status, fork.status) == ("failed", "running")
    fork.send("go")
    assert fork.result() == "done"


def test_later_mail_is_not_copied() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def listens(ctx: weft.Context) -> list[str]:
        return [await ctx.receive("a", str), await ctx.receive("a", str)]

    world = World(app)
    run = world.start(listens(), id="o")
    run.send("a", "one")
    run.send("a", "two")
    assert run.result() == ["one", "two"]
    taken = next(event.seq for event in run.events if event.kind == "message_received")

    fork = run.fork(at=taken)

    assert fork.status == "running"
    fork.send("a", "other")
    assert fork.result() == ["one", "other"]


@pytest.mark.parametrize("name", scale.first(1, ["delivery", "people", "graph_people", "line"]))
def test_a_fork_is_made_once_whatever_write_its_host_dies_at(name: str) -> None:
    """Before and after every write: of the original, of the fork itself, and of what follows."""
    app, ledger = build()
    edits: Any = {"given": {"order": 10}} if name == "delivery" else {"input": {"n": 5}}

    def scenario(world: World) -> None:
        ledger.paid.clear()
        run = start(app, world, name, "original")
        play(run)
        fork = run.fork(id="fork", **edits)
        assert play(fork)[0] in ("completed", "failed"), "irreversible work that was lost has failed"
        assert max(ledger.paid.values(), default=0) <= 1
        assert [one.id for one in world.perform(lambda: listed(app))] == ["fork"]

    async def listed(app: weft.App) -> list[Any]:
        row = await app.service.row(RunId("original"))
        return list(await ForkService(app.service).forks(row))

    assert crash_everywhere(app, scenario) > 20


@pytest.mark.parametrize("name", ["people", "graph_people"])
def test_a_fork_without_effects_starts_no_child(name: str) -> None:
    world, ledger, run = played(name)
    opened = next(event.seq for event in run.events if event.kind == "child_started")
    fork = run.fork(at=opened - 1, effects="none")

    world.advance("3h")

    assert fork.status in ("failed", "held")
    assert not ledger.calls
    unended = start(world.app, world, name, "other")
    for _ in range(3):
        unended.world.advance("1m")
        for waiting in unended.waiting_for():
            if waiting.kind == "ask":
                unended.answer(waiting.location, by="ann")
            elif waiting.kind == "message":
                unended.send("word", "hello")
    assert "child_ended" not in kinds(unended)
    with pytest.raises(weft.Refused) as refused:
        unended.fork(at=max(event.seq for event in unended.events), effects="none")
    assert refused.value.code == "fork.would_perform"


def test_a_child_with_an_id_of_its_own_gets_another_in_a_fork() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def child() -> str:
        return "done"

    @app.workflow
    async def parent(ctx: weft.Context) -> str:
        return await ctx.call(child(), id="the-child")

    world = World(app)
    run = world.start(parent(), id="o")
    assert run.result() == "done"

    fork = run.fork()

    assert fork.result() == "done"
    started = next(event for event in fork.events if event.kind == "child_started")
    assert started.data["run_id"].startswith("the-child~")


def test_who_forks_a_run_cannot_answer_its_questions_with_four_eyes() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def asks(ctx: weft.Context) -> bool:
        return (await ctx.ask("go", title="Go?", four_eyes=True)).approved

    world = World(app)
    world.start(asks(), id="o")
    world.settle()
    world.perform(lambda: ForkService(app.service).fork("o", ForkOrder(at=2, id="f"), by="ann"))
    fork = SimRun(world, "f", lambda: app.get("f"))

    with pytest.raises(weft.NotAllowed):
        fork.answer("go", by="ann")
    fork.answer("go", by="bob")
    assert fork.result() is True


def test_a_run_whose_values_are_gone_cannot_be_forked_past_them() -> None:
    app = weft.App("memory://")

    @app.step
    async def large() -> str:
        return "x" * 100_000

    @app.workflow
    async def flow() -> int:
        return len(await large())

    world = World(app)
    run = world.start(flow(), id="o")
    assert run.result() == 100_000
    copy = run.fork(at=3)
    world._store.blobs._content.blobs.clear()

    with pytest.raises(weft.Refused) as refused:
        run.fork(at=3)
    assert refused.value.code == "fork.values_gone"
    assert run.fork(at=2).result() == 100_000
    assert copy.id != run.id


def test_a_retry_in_a_fork_asks_once_and_pays_once() -> None:
    """The contract of a retry counts for work that the fork itself has dispatched before."""
    app = weft.App("memory://")
    paid: list[int] = []
    broken = [True]

    @app.step(effect="irreversible")
    async def pay(n: int) -> int:
        paid.append(n)
        return n

    @app.step(retries=0)
    async def check(n: int) -> int:
        if broken[0]:
            raise ValueError
        return n

    @app.workflow
    async def flow(n: int) -> int:
        return await check(await pay(n))

    world = World(app)
    run = world.start(flow(1), id="o")
    world.settle()
    assert run.status == "failed"
    fork = run.fork(input={"n": 2}, approved=["pay"])
    world.settle()
    assert (fork.status, paid) == ("failed", [1, 2])
    broken[0] = False
    world.perform(lambda: app.get(fork.id).retry())

    assert fork.result() == 2
    assert paid == [1, 2]
