"""Budgets of runs: calls are reserved before they are made, settled with their result, and refused when short."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import weft
from tests.agents.budget_kit import covered, elastic, tokens, tool
from weft.core.ledger import LedgerRow, account_of
from weft.testing import World, crash_everywhere

app = weft.App()


@app.step
async def ask_model(used: int) -> int:
    """A model call that reports what it used."""
    weft.task().spend(tokens=used)
    return weft.task().output_tokens


@app.workflow(budget=weft.Budget(tokens=100))
async def thrifty(ctx: weft.Context, used: list[int]) -> list[int]:
    return [await covered(ask_model, tokens(40), one) for one in used]


@app.workflow
async def free(ctx: weft.Context, used: list[int]) -> list[int]:
    return [await covered(ask_model, tokens(40), one) for one in used]


def ledger(world: World, run: Any) -> Mapping[str, LedgerRow]:
    """What the run and everything below it spent, by unit."""
    uid = world.perform(lambda: world.app.service.row(run.id)).uid
    rows = world.perform(lambda: world.app.service.store.budgets.read([uid]))
    return {row.unit: row for row in rows}


def test_calls_within_the_budget_are_made_and_counted() -> None:
    world = World(app)
    run = world.start(thrifty([10, 20]))

    assert run.result() == [0, 0]
    row = ledger(world, run)["tokens"]
    assert (row.limit, row.spent, row.reserved) == (100, 30, 0)
    assert ledger(world, run)["calls"].spent == 2


def test_a_call_that_is_not_covered_is_not_made() -> None:
    world = World(app)
    run = world.start(thrifty([40, 30, 30]))

    with pytest.raises(weft.RunFailed) as failed:
        run.result()

    assert failed.value.failure.code == "budget.exceeded"
    assert "100 tokens, has 30 tokens left" in failed.value.failure.message
    assert len(world.calls(ask_model)) == 2
    assert ledger(world, run)["tokens"].spent == 70


def test_code_catches_what_is_exceeded_and_goes_on() -> None:
    app = weft.App()

    @app.step
    async def ask(used: int) -> str:
        weft.task().spend(tokens=used)
        return "said"

    @app.step
    async def clean() -> str:
        return "clean"

    @app.workflow(budget=weft.Budget(tokens=50))
    async def careful(ctx: weft.Context) -> list[Any]:
        await covered(ask, tokens(40), 40)
        try:
            await covered(ask, tokens(40), 40)
        except weft.BudgetExceeded as short:
            return [short.unit, short.limit, short.spent, short.reserved, short.wanted, await clean()]
        return []

    assert World(app).run(careful()) == ["tokens", 50, 40, 0, 40, "clean"]


def test_a_call_that_reports_nothing_costs_at_most_its_cover() -> None:
    app = weft.App()

    @app.step
    async def quiet() -> str:
        return "said"

    @app.workflow(budget=weft.Budget(tokens=100))
    async def trusting(ctx: weft.Context) -> str:
        return str(await covered(quiet, tokens(40)))

    world = World(app)
    run = world.start(trusting())

    assert run.result() == "said"
    assert (ledger(world, run)["tokens"].spent, ledger(world, run)["tokens"].at_most) == (40, 40)


def test_the_output_of_a_call_is_lowered_to_what_is_left() -> None:
    app = weft.App()

    @app.step
    async def ask(used: int) -> int:
        weft.task().spend(tokens=used)
        return weft.task().output_tokens

    @app.workflow(budget=weft.Budget(tokens=3_000))
    async def long(ctx: weft.Context) -> list[int]:
        return [await covered(ask, elastic(1_000, 1_500), used) for used in (1_200, 1_800)]

    assert World(app).run(long()) == [1_500, 800]


def test_every_attempt_is_reserved_and_counted() -> None:
    app = weft.App()

    @app.step(retries=weft.Retry(3, "fixed", "1s"))
    async def flaky() -> str:
        raise ConnectionError("no answer")

    @app.workflow(budget=weft.Budget(calls=2))
    async def stubborn(ctx: weft.Context) -> str:
        try:
            return str(await covered(flaky, tokens(1)))
        except weft.BudgetExceeded as short:
            return short.unit

    world = World(app)
    run = world.start(stubborn())

    assert run.result() == "calls"
    assert len(world.calls(flaky)) == 2


def test_calls_of_one_tool_are_limited() -> None:
    app = weft.App()

    @app.step(effect="irreversible")
    async def refund(cents: int) -> str:
        return f"refunded {cents}"

    @app.workflow(budget=weft.Budget(tools=5, per_tool={"refund": 1}))
    async def generous(ctx: weft.Context) -> str:
        await covered(refund, tool("refund"), 1)
        try:
            return str(await covered(refund, tool("refund"), 2))
        except weft.BudgetExceeded as short:
            return short.unit

    world = World(app)

    assert world.run(generous()) == "tool:refund"
    assert len(world.calls(refund)) == 1


def test_parallel_calls_share_what_is_left() -> None:
    app = weft.App()

    @app.step
    async def ask(used: int) -> int:
        weft.task().spend(tokens=used)
        return used

    @app.workflow(budget=weft.Budget(tokens=100))
    async def wide(ctx: weft.Context) -> list[str]:
        async def one(number: int) -> str:
            try:
                await covered(ask, tokens(40), 40, place=f"ask{number}")
            except weft.BudgetExceeded:
                return "short"
            return "made"

        return list(await asyncio.gather(*(one(number) for number in range(5))))

    world = World(app)
    run = world.start(wide())

    assert sorted(run.result()) == ["made", "made", "short", "short", "short"]
    assert len(world.calls(ask)) == 2


def test_children_spend_from_all_budgets_above_them() -> None:
    app = weft.App()

    @app.step
    async def ask(used: int) -> int:
        weft.task().spend(tokens=used)
        return used

    @app.workflow
    async def child(ctx: weft.Context, calls: int) -> int:
        for _ in range(calls):
            await covered(ask, tokens(10), 10)
        return calls

    @app.workflow(budget=weft.Budget(tokens=50))
    async def parent(ctx: weft.Context) -> list[str]:
        found = []
        for calls in (2, 2, 2):
            try:
                await ctx.call(child(calls), budget=weft.Budget(tokens=25))
                found.append("done")
            except weft.BudgetExceeded as short:
                found.append(f"{short.limit}")
        return found

    world = World(app)
    run = world.start(parent())

    assert run.result() == ["done", "done", "50"]
    assert ledger(world, run)["tokens"].spent == 50


def test_a_child_is_held_to_its_own_budget_first() -> None:
    app = weft.App()

    @app.step
    async def ask(used: int) -> int:
        weft.task().spend(tokens=used)
        return used

    @app.workflow
    async def child(ctx: weft.Context) -> None:
        for _ in range(9):
            await covered(ask, tokens(10), 10)

    @app.workflow(budget=weft.Budget(tokens=500))
    async def parent(ctx: weft.Context) -> int:
        try:
            await ctx.call(child(), budget=weft.Budget(tokens=25))
        except weft.BudgetExceeded as short:
            return short.limit
        return 0

    assert World(app).run(parent()) == 25


def test_a_step_that_calls_a_model_itself_is_refused_once_its_usual_cost_is_not_left() -> None:
    app = weft.App()

    @app.step
    async def own_model(used: int) -> None:
        weft.task().spend(tokens=used, money="0.01 USD")

    @app.step
    async def tidy() -> str:
        return "tidy"

    @app.workflow(budget=weft.Budget(tokens=100))
    async def own(ctx: weft.Context) -> list[Any]:
        made = 0
        try:
            for _ in range(10):
                await own_model(30)
                made += 1
        except weft.BudgetExceeded as short:
            return [made, short.wanted, await tidy()]
        return []

    world = World(app)
    run = world.start(own())

    assert run.result() == [3, 30, "tidy"]
    assert ledger(world, run)["tokens"].spent == 90
    assert ledger(world, run)["money:USD"].spent == 30_000


def test_a_run_without_a_budget_counts_what_its_calls_spend() -> None:
    world = World(app)
    run = world.start(free([10, 20]))
    run.result()
    uid = world.perform(lambda: world.app.service.row(run.id)).uid
    rows = world.perform(lambda: world.app.service.store.budgets.read([account_of(uid)]))

    assert {row.unit: row.spent for row in rows} == {"tokens": 30, "calls": 2}


def outcome(run: Any) -> Any:
    """The result of a run, or the code of its failure."""
    try:
        return run.result()
    except weft.RunFailed as failed:
        return failed.failure.code


def scenario(world: World) -> None:
    run = world.start(thrifty([40, 20, 10]))
    assert outcome(run) in ([0, 0, 0], "budget.exceeded")
    row = ledger(world, run)["tokens"]
    assert row.spent <= 100
    assert row.reserved == 0
    assert row.spent >= sum(call.args["used"] for call in world.calls(ask_model))
    assert ledger(world, run)["calls"].spent >= len(world.calls(ask_model))


def test_a_budget_is_never_exceeded_whatever_crashes() -> None:
    assert crash_everywhere(app, scenario) >= 8


def test_a_fork_has_the_budget_of_its_original_and_has_spent_nothing() -> None:
    world = World(app)
    run = world.start(thrifty([40]))
    run.result()

    fork = world.perform(lambda: world.app.get(run.id).fork(id="forked"))

    row = ledger(world, fork)["tokens"]
    assert row.limit == 100
    assert row.spent <= 40
