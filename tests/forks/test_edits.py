"""Forks that are edited: the input, results, state, facts and the version."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests import scale
from tests.code import timeless
from tests.code.hosted_store import Store
from tests.forks.programs import STARTS, build, play, start
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import ForkService
from weft.testing import SimRun, World

pytestmark = scale.MARKS


def played(name: str, seed: int = 0) -> tuple[World, Any, SimRun[Any]]:
    app, ledger = build()
    world = World(app, seed)
    run = start(app, world, name, "original")
    play(run)
    ledger.clear()
    return world, ledger, run


def run_ids(world: World) -> list[str]:
    async def ids() -> list[str]:
        return [row.id async for row in world.app.list()]

    return world.perform(ids)


def kinds(run: SimRun[Any]) -> list[str]:
    return [event.kind for event in run.events]


# --- code --------------------------------------------------------------------------------------------------------


def test_the_first_entry_that_does_not_fit_is_dropped_with_all_after_it() -> None:
    _, ledger, run = played("line")
    last = max(event.seq for event in run.events) - 1

    fork = run.fork(at=last, input={"n": 5})

    assert play(fork) == ("completed", {"n": 420})
    dropped = next(event for event in fork.events if event.kind == "entries_dropped")
    assert dropped.data["dropped"] == [2, 4, 6, 8]
    assert ledger.calls == {"plain": 1, "pay": 1, "calculate": 1}, "it was asked about, and approved"


@pytest.mark.parametrize("point", scale.sample(3, range(1, 10)))
def test_an_edited_fork_never_diverges_and_pays_once_for_each_amount(point: int) -> None:
    _, ledger, run = played("line")

    fork = run.fork(at=point, input={"n": 5})

    assert play(fork) == ("completed", {"n": 420})
    assert not [one for one in kinds(fork) if one == "run_held"]
    assert ledger.paid == {2: 1, 6: 1}


def test_what_is_equal_is_used_although_its_past_was_dropped() -> None:
    """The booking was undone, so it is made anew. The payment has the same input, at the same place."""
    _, ledger, run = played("failing")

    fork = run.fork(at=7, input={"n": 1}, set={"broken": {"n": 3}})

    assert play(fork) == ("completed", {"n": 3})
    assert ledger.calls == {"book": 1}


def test_a_result_that_is_set_leads_to_what_follows_from_it() -> None:
    _, ledger, run = played("line")

    fork = run.fork(after="plain", set={"plain": {"n": 2}, "calculate": {"n": 0}})

    assert play(fork) == ("completed", {"n": 0})
    assert not ledger.calls


def test_a_result_of_the_past_is_set() -> None:
    _, ledger, run = played("line")

    fork = run.fork(after="pay", set={"pay": {"n": 3}})

    assert play(fork) == ("completed", {"n": 21})
    assert ledger.calls == {"calculate": 1}


def test_a_fork_goes_on_with_another_version() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int) -> int:
        return n

    @app.workflow(name="flow", version="1")
    async def old(n: int) -> int:
        return await work(n)

    @app.workflow(name="flow", version="2")
    async def new(ctx: weft.Context, n: int) -> int:
        return await work(n) + await ctx.step("more", lambda: 10)

    world = World(app)
    run = world.start(old(1), id="o")
    assert run.result() == 1

    fork = run.fork(after="work", to="2")

    assert fork.result() == 11
    assert fork.events[0].data.get("version", "1") == "1"


def test_only_results_of_steps_can_be_set_in_code() -> None:
    _, _, run = played("line")

    with pytest.raises(weft.Refused) as refused:
        run.fork(at=8, set={"sleep": 1}, state={"x": 1}, given={"y": 2})

    assert refused.value.code == "fork.bad_edit"
    for part in ("no state to set", "no given to set", "sleep is a sleep"):
        assert part in refused.value.message


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"m": 5}, 'has no parameter "m"'),
        ({"n": "many"}, "n must be an integer"),
        ({"n": 5, "x": 1}, 'has no parameter "x"'),
    ],
)
def test_an_argument_that_the_workflow_does_not_take_is_refused(given: dict[str, Any], told: str) -> None:
    world, _, run = played("line")

    with pytest.raises(weft.BadValue) as refused:
        run.fork(input=given)

    assert refused.value.code == "value.wrong_type"
    assert told in refused.value.message
    assert run_ids(world) == ["original"], "nothing was written"


def test_the_parameters_are_those_of_the_version_that_the_fork_follows() -> None:
    app = weft.App("memory://")

    @app.workflow(name="flow", version="1")
    async def old(n: int) -> int:
        return n

    @app.workflow(name="flow", version="2")
    async def new(n: int, more: int = 0) -> int:
        return n + more

    world = World(app)
    run = world.start(old(1), id="o")
    assert run.result() == 1

    assert run.fork(to="2", input={"more": 5}).result() == 6
    with pytest.raises(weft.BadValue, match="more"):
        run.fork(input={"more": 5})


def test_an_inline_step_that_a_failed_run_has_not_reached_can_be_set() -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def fails(n: int) -> int:
        raise weft.Critical("no")

    async def ending(ctx: weft.Context) -> int:
        return await ctx.step("last", lambda: 1)

    @app.workflow
    async def flow(ctx: weft.Context, n: int) -> int:
        return await fails(n) + await ending(ctx)

    run = World(app).start(flow(1), id="o")
    with pytest.raises(weft.WeftError):
        run.result()

    assert run.fork(before="fails", set={"fails": 5, "last": 7}).result() == 12
    with pytest.raises(weft.Refused, match="never came to a step lsat"):
        run.fork(before="fails", set={"fails": 5, "lsat": 7})


@pytest.mark.parametrize(("name", "place"), [("line", "plain"), ("graph_line", "p"), ("delivery", "price")])
def test_a_result_of_another_type_is_refused_where_the_code_is(name: str, place: str) -> None:
    world, _, run = played(name)

    with pytest.raises(weft.BadValue, match=r"The result of [a-z]+ is"):
        run.fork(before=place, set={place: "text"})

    assert run_ids(world) == ["original"]


@pytest.mark.parametrize(
    ("name", "place", "told"),
    [
        ("line", "pya", "never came to a step pya"),
        ("graph_line", "zz", "no node zz"),
        ("delivery", "zz", "no step zz"),
    ],
)
def test_an_approval_of_work_that_is_not_there_is_refused(name: str, place: str, told: str) -> None:
    world, _, run = played(name)

    with pytest.raises(weft.Refused, match=told) as refused:
        run.fork(approved=[place])

    assert refused.value.code == "fork.bad_edit"
    assert run_ids(world) == ["original"]


def test_a_place_at_which_the_run_had_no_step_cannot_be_set() -> None:
    world, _, run = played("line")

    with pytest.raises(weft.Refused) as refused:
        run.fork(after="plain", set={"plian": {"n": 2}, "sleep": 1})

    assert refused.value.code == "fork.bad_edit"
    assert "never came to a step plian" in refused.value.message
    assert "never came to a step sleep" in refused.value.message
    assert "plain, pay, calculate" in refused.value.hint
    with pytest.raises(weft.Refused, match="never came to a step book"):
        run.fork(after="plain", set={"book": {"n": 2}})
    assert run_ids(world) == ["original"]


def test_a_fork_that_goes_another_way_may_come_to_other_steps() -> None:
    app = weft.App("memory://")

    @app.step
    async def small(n: int) -> int:
        return n

    @app.step
    async def big(n: int) -> int:
        return n

    @app.workflow
    async def choose(n: int) -> int:
        return await (big if n > 10 else small)(n)

    run = World(app).start(choose(1), id="o")
    assert run.result() == 1

    assert run.fork(input={"n": 20}, set={"big": 5}).result() == 5
    with pytest.raises(weft.Refused, match="never came to a step bgi"):
        run.fork(input={"n": 20}, set={"bgi": 5})
    with pytest.raises(weft.Refused, match="never came to a step big"):
        run.fork(set={"big": 5})


def test_a_step_to_which_only_the_fork_comes_is_looked_for_with_the_code() -> None:
    async def scene() -> None:
        store, app = Store(), weft.App("memory://")

        @app.step
        async def check(name: str) -> None:
            raise weft.Critical(f"no {name}")

        @app.workflow
        async def order(ctx: weft.Context, name: str) -> str:
            await check(name)
            return await ctx.step("note", lambda: "written")

        async with store.host(app):
            run = await app.start("order", {"name": "tea"}, id="o-1")
            with pytest.raises(weft.RunFailed):
                await run.result()
            elsewhere = store.without_host(app)
            order_of_fork = ForkOrder(set={"note": "given"}, input={"name": "cup"})
            assert (await ForkService(elsewhere).fork("o-1", order_of_fork)).status == "running"
            elsewhere.declared = None
            with pytest.raises(weft.Refused, match=r"known with the code: --app app\.py"):
                await ForkService(elsewhere).fork("o-1", order_of_fork)

    timeless.play(scene())


# --- graphs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", [{"before": "p"}, {"at": 4}, {"after": "a"}])
def test_the_result_of_a_node_that_is_not_routed_is_set(point: Any) -> None:
    _, ledger, run = played("graph_line")

    fork = run.fork(**point, set={"p": {"n": 6}})

    assert play(fork)[0] == "completed"
    assert ledger.calls == {"plain": 1}
    last = next(event for event in reversed(fork.events) if event.kind == "task_succeeded")
    assert last.data["output"] == {"n": 7}


def test_the_result_of_a_failed_node_is_set() -> None:
    _, ledger, run = played("graph_failing")

    fork = run.fork(failure=True, set={"b": {"n": 1}}, effects="none")

    assert play(fork)[0] == "completed"
    assert not ledger.calls


def test_a_result_that_is_set_wins_over_the_one_that_a_retry_kept() -> None:
    app, ledger = build()
    world = World(app)
    run = start(app, world, "graph_people", "original")
    world.settle()
    world.perform(lambda: app.get(run.id).retry(start="a"))
    world.settle()

    fork = run.fork(before="a", set={"a": {"n": 6}})
    world.settle()

    assert [event.data["output"] for event in fork.events if event.kind == "task_succeeded"] == [{"n": 10}, {"n": 6}]
    assert ledger.calls == {"pay": 1}
    found = world.perform(lambda: world.app.diff(run.id, fork.id))
    assert found.runs is not None
    changes = [one.changes for one in found.runs.changed if one.place.startswith("a") and one.aspect == "value"]
    assert [(change.a, change.b) for change in changes[0]] == [(10, 6)]


def test_a_result_that_is_set_is_not_asked_about_after_a_retry() -> None:
    app = weft.App("memory://")

    @app.step(effect="irreversible", retries=0)
    async def wire() -> int:
        raise weft.Critical("no answer")

    @app.workflow
    async def transfer() -> int:
        return await wire()

    world = World(app)
    run = world.start(transfer(), id="o")
    world.settle()
    world.perform(lambda: app.get(run.id).retry())
    world.settle()

    assert run.fork(before="wire", set={"wire": 3}).result() == 3


def test_what_a_graph_cannot_be_set_to_is_said_at_once() -> None:
    _, _, run = played("graph_people")

    with pytest.raises(weft.Refused) as refused:
        run.fork(at=9, set={"a": 1, "q": 2, "zz": 3}, state={"nope": 1}, given={"f": 1})

    assert refused.value.code == "fork.bad_edit"
    for part in ("a has been routed", "q performs no step", "no node zz", "no field nope", "no given facts"):
        assert part in refused.value.message


def test_the_nodes_whose_results_can_be_set_are_named() -> None:
    world, _, run = played("graph_line")

    with pytest.raises(weft.Refused) as refused:
        run.fork(before="b", set={"zz": 3})

    assert refused.value.code == "fork.bad_edit"
    assert "graph_line has no node zz" in refused.value.message
    assert refused.value.hint.startswith("Results that can be set at this point: p, b.")
    assert run_ids(world) == ["original"]


def test_a_token_that_a_graph_never_had_cannot_be_set() -> None:
    _, _, run = played("graph_line")

    with pytest.raises(weft.Refused, match="never came to a step p/nobody"):
        run.fork(before="a", set={"p/nobody": {"n": 1}})


def test_the_input_of_a_graph_is_checked_against_its_schema() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int = 0) -> dict[str, int]:
        return {"n": n}

    nodes = {"a": {"step": "work", "with": {"n": "${input.n}"}}}
    output = {"n": "${input.n}"}
    graph = app.graph({"name": "taking", "input": {"n": "integer"}, "nodes": nodes, "output": output})
    world = World(app)
    run = world.start(graph, {"n": 1}, id="o")
    run.world.settle()

    assert run.fork(input={"n": 7}).result() == {"n": 7}
    for given in ({"n": "seven"}, {"m": 7}):
        with pytest.raises(weft.BadValue, match=next(iter(given))) as refused:
            run.fork(input=given)
        assert refused.value.code == "value.wrong_type"
    assert len(run_ids(world)) == 2


def _broken_order() -> tuple[World, SimRun[Any], str]:
    """Return a run of a graph that has failed, and the version that mends it."""
    app = weft.App("memory://")

    @app.step
    async def pick() -> dict[str, int]:
        return {"n": 1}

    @app.step
    async def broken() -> dict[str, int]:
        raise weft.Critical("broken")

    graph = {"name": "order", "nodes": {"a": {"step": "pick", "next": "b"}, "b": {"step": "broken"}}}
    flow = app.graph(graph)
    world = World(app)
    run = world.start(flow, {}, id="o")
    assert run.status == "failed"
    mended = world.perform(
        lambda: app.workflows.patch("order", [{"op": "replace", "path": "/nodes/b/step", "value": "pick"}])
    )
    return world, run, mended.version


def test_a_fork_of_a_graph_goes_on_with_another_version() -> None:
    _, run, version = _broken_order()

    fork = run.fork(failure=True, to=version)

    assert play(fork)[0] == "completed"
    assert [one for one in kinds(fork) if one in ("run_forked", "run_patched")] == ["run_forked", "run_patched"]
    assert play(run.fork(failure=True, to="main"))[0] == "completed", "a tag names a version too"
    with pytest.raises(weft.NotFound):
        run.fork(failure=True, to="nothing")


def test_a_version_into_which_a_fork_does_not_fit_is_refused_with_all_reasons() -> None:
    world, run, _ = _broken_order()
    other = world.perform(
        lambda: world.app.workflows.patch(
            "order", [{"op": "replace", "path": "/nodes", "value": {"z": {"step": "pick"}}}]
        )
    )

    with pytest.raises(weft.PatchRefused) as refused:
        run.fork(failure=True, to=other.version)

    assert [one.code for one in refused.value.plan.refusals] == ["patch.node_removed"]
    assert run_ids(world) == ["o"], "nothing was written"


def test_the_state_of_a_graph_is_set() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int = 0) -> dict[str, int]:
        return {"n": n}

    graph = app.graph(
        {
            "name": "counting",
            "state": {"limit": "integer"},
            "nodes": {"a": {"step": "work", "next": "b"}, "b": {"step": "work", "with": {"n": "${state.limit}"}}},
            "output": {"n": "${state.limit}"},
        }
    )
    world = World(app)
    run = world.start(graph, {}, id="o")
    run.world.settle()

    fork = run.fork(after="a", state={"limit": 5})

    assert fork.result() == {"n": 5}
    with pytest.raises(weft.Refused, match=r"state\.limit"):
        run.fork(after="a", state={"limit": "five"})


def test_a_field_that_the_graph_only_writes_is_a_field() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(n: int = 0) -> dict[str, int]:
        return {"n": n}

    nodes = {
        "a": {"step": "work", "save": {"state.seen": "${output.n}"}, "next": "b"},
        "b": {"step": "work", "with": {"n": "${state.seen}"}},
    }
    run = World(app).start(app.graph({"name": "saving", "nodes": nodes, "output": {"n": "${state.seen}"}}), {}, id="o")
    run.world.settle()

    assert run.fork(before="b", state={"seen": 5}).result() == {"n": 5}
    with pytest.raises(weft.Refused, match="no field sene") as refused:
        run.fork(before="b", state={"sene": 5})
    assert refused.value.hint == "The fields of the state are seen."
    with pytest.raises(weft.Refused, match=r"a has ended at this point and saves state\.seen next"):
        run.fork(after="a", state={"seen": 5})


# --- goals -------------------------------------------------------------------------------------------------------


def test_facts_are_given_until_the_first_step_begins() -> None:
    _, ledger, run = played("delivery")

    fork = run.fork(given={"order": 10})

    assert play(fork)[1]["letter"] == 41
    assert ledger.paid == {1_006: 1, 1_020: 1}
    with pytest.raises(weft.PatchRefused) as read:
        run.fork(before="mail", given={"order": 10})
    assert read.value.code == "patch.fact_known"
    assert read.value.message.startswith(f"{run.id} cannot be forked at this point with these changes: order has")
    assert read.value.hint == f"Fork the run from its beginning: weft fork {run.id} --given order=VALUE"
    with pytest.raises(weft.UsageError, match="has no version"):
        run.fork(before="mail", to="7")
    with pytest.raises(weft.Refused, match="does not take"):
        run.fork(given={"price": 1})
    with pytest.raises(weft.Refused, match="does not take nothing"):
        run.fork(input={"nothing": 1})
    with pytest.raises(weft.Refused, match="wrong type"):
        run.fork(given={"order": "many"})


def test_the_result_of_a_step_of_a_goal_is_set() -> None:
    _, ledger, run = played("delivery")

    fork = run.fork(before="charge", set={"charge": 100})

    assert play(fork)[1]["letter"] == 106
    with pytest.raises(weft.Refused, match=r"never came to a step charge\[9\]"):
        run.fork(before="charge", set={"charge[9]": 100})
    assert ledger.calls == {"mail": 1}


def test_the_steps_of_a_goal_whose_results_can_be_set_and_its_facts_are_named() -> None:
    world, _, run = played("delivery")

    with pytest.raises(weft.Refused) as refused:
        run.fork(before="charge", set={"chrage": 100})
    assert "the plan has no step chrage" in refused.value.message
    assert refused.value.hint.startswith("Results that can be set at this point: ")
    assert "charge" in refused.value.hint.partition(".")[0]
    with pytest.raises(weft.Refused) as refused:
        run.fork(input={"odrer": 1})
    assert refused.value.hint == "The plan takes order."
    assert run_ids(world) == ["original"]


# --- what strangers type ------------------------------------------------------------------------------------------

LONG = "x" * 5_000


@pytest.mark.parametrize("edit", [{"set": {LONG: 1}}, {"input": {LONG: 1}}, {"given": {LONG: 1}}])
@pytest.mark.parametrize("name", ["line", "delivery"])
def test_long_names_are_cut_in_errors(name: str, edit: Any) -> None:
    _, _, run = played(name)

    with pytest.raises(weft.WeftError) as refused:
        run.fork(**edit)

    assert LONG[:61] not in f"{refused.value} {refused.value.context}"


def test_no_place_has_a_visit_that_is_not_a_number() -> None:
    """The run has failed, so it may still come to any step of a host, as often as it likes."""
    _, _, run = played("failing")

    assert play(run.fork(set={"broken": {"n": 3}, "plain#2": {"n": 1}}))[0] == "completed"
    with pytest.raises(weft.Refused, match="never came to a step plain#two"):
        run.fork(set={"plain#two": {"n": 1}})


# --- every point, with edits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scale.sample(2, list(STARTS)))
def test_edits_at_any_event_are_refused_or_the_fork_ends(name: str) -> None:
    edits: Any = {"given": {"order": 4}} if name == "delivery" else {"input": {"n": 2}}
    _, ledger, run = played(name)
    paid = dict(ledger.paid)
    last = max(event.seq for event in run.events)
    refused: list[str] = []
    for point in range(1, last + 1)[:: scale.scaled(4, 1)]:
        try:
            fork = run.fork(at=point, **edits)
        except weft.Refused as error:
            refused.append(error.code)
            continue
        assert play(fork)[0] in ("completed", "failed")
        assert all(ledger.paid[amount] == times for amount, times in paid.items()), f"{name} at {point}"
    assert set(refused) <= {"fork.bad_edit", "patch.fact_known", "fork.undone", "run.finished"}
