"""The isolated replay of a run against other code says what a host with that code would do, and touches nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.test_changed_code import Build, code
from tests.code.test_changed_table import ROWS, of, typed, waiting
from tests.code.timeless import calm, play
from weft.runtime.replays import replay_run
from weft.runtime.run.replay import Replayed
from weft.runtime.service import RunService

BIG = "x" * 500_000


def new_app(build: Build) -> weft.App:
    app = weft.App("memory://")
    build(app, [])
    return app


def recorded(old: Build, act: Callable[[weft.Handle[Any]], Any] | None = None) -> Desk:
    """A store with a run that the old code brought to its wait, and whose process is gone."""
    app = new_app(old)
    desk = Desk(app)

    async def begin() -> None:
        run = await app.start("flow", {}, id="run")
        await calm()
        if act is not None:
            await act(run)
            await calm()

    desk.play(begin, crash=True)
    return desk


def replayed(desk: Desk, build: Build, **options: Any) -> Replayed:
    program = new_app(build).registered.find_program("flow", "1")
    assert program is not None
    content = desk.store.content
    before = {uid: copy.deepcopy((run.status, run.epoch, run.events)) for uid, run in content.runs.items()}

    async def read() -> Replayed:
        service = RunService(desk.store.share(), desk.clock, desk.ids)
        row = await service.row("run")  # type: ignore[arg-type]
        return await replay_run(service, row, program, **options)

    found = play(read())
    assert {uid: (run.status, run.epoch, run.events) for uid, run in content.runs.items()} == before
    return found


def in_reality(desk: Desk, build: Build) -> str:
    """The status of the run after a host with the new code has loaded it."""
    app = new_app(build)

    async def go_on() -> str:
        await calm()
        return await app.get("run").status()

    return desk.play(go_on, app=app)


@pytest.mark.parametrize("change", [row for row in ROWS if "version" not in row])
def test_it_says_what_a_host_would_do(change: str) -> None:
    old, new, *_ = ROWS[change]
    desk = recorded(old)

    found = replayed(desk, new)

    stops = in_reality(desk, new) in ("held", "failed")
    assert (found.verdict != "fits") == stops, found


def test_the_same_code_fits() -> None:
    desk = recorded(of("look", "charge"))
    assert replayed(desk, of("look", "charge")) == Replayed(verdict="fits", unvisited=[])


def test_a_divergence_has_its_place_and_both_sides() -> None:
    found = replayed(recorded(of("charge")), of("check", "charge"))

    assert (found.verdict, found.location, found.asked) == ("diverges", "charge", "check")
    assert found.recorded == "the step `charge`"


def test_other_arguments_are_named() -> None:
    async def old(ctx: weft.Context, s: Any) -> None:
        await s.charge(1)
        await ctx.receive("go")

    async def new(ctx: weft.Context, s: Any) -> None:
        await s.charge(7)
        await ctx.receive("go")

    desk = recorded(code(old))
    found = replayed(desk, code(new))

    assert (found.verdict, found.location) == ("diverges", "charge")
    assert (found.recorded, found.asked) == ("a recorded result for (n=1)", "(n=7)")
    assert replayed(desk, code(new), tolerant=True).verdict == "fits"


def test_a_value_of_another_type_is_one() -> None:
    found = replayed(recorded(typed(str, "seven")), typed(int, 7))

    assert (found.verdict, found.location) == ("value", "look")


def test_an_input_that_no_longer_fits_is_a_value() -> None:
    old, new, *_ = ROWS["add a parameter without a default to a workflow"]
    assert replayed(recorded(old), new).verdict == "value"


def test_code_that_raises_says_what() -> None:
    new = waiting("await charge(); raise ValueError('no')")
    found = replayed(recorded(waiting("await charge(); await ctx.receive('go')")), new)

    assert (found.verdict, found.message, found.unvisited) == ("raises", "ValueError: no", ["go"])


def test_entries_that_the_code_no_longer_comes_to_are_a_note() -> None:
    found = replayed(recorded(of("look", "charge", after=())), of("charge", after=()))

    assert (found.verdict, found.unvisited) == ("fits", ["look"])


def test_large_values_are_read() -> None:
    def build(app: weft.App, acts: list[str]) -> None:
        @app.step
        async def load() -> str:
            return BIG

        @app.workflow
        async def flow(ctx: weft.Context) -> int:
            text = await load()
            await ctx.receive("go")
            return len(text)

    assert replayed(recorded(build), build).verdict == "fits"


@pytest.mark.parametrize("act", [lambda run: run.pause(), lambda run: run.cancel("no")])
def test_paused_and_cancelled_runs_are_replayed_too(act: Callable[[weft.Handle[Any]], Any]) -> None:
    async def body(ctx: weft.Context, s: Any) -> None:
        try:
            await s.charge()
            await ctx.receive("go")
        finally:
            await ctx.receive("cleaned")

    async def renamed(ctx: weft.Context, s: Any) -> None:
        try:
            await s.charge_card()
            await ctx.receive("go")
        finally:
            await ctx.receive("cleaned")

    desk = recorded(code(body), act)

    assert replayed(desk, code(body)).verdict == "fits"
    assert replayed(desk, code(renamed)).verdict == "diverges"


def test_a_held_run_fits_again_with_the_code_that_it_had() -> None:
    desk = recorded(of("charge"))
    assert in_reality(desk, of("check", "charge")) == "held"

    assert replayed(desk, of("charge")).verdict == "fits"
    assert replayed(desk, of("check", "charge")).verdict == "diverges"


def test_code_that_asks_for_ever_is_left_when_it_has_passed_the_log() -> None:
    new = waiting("await charge()\n    while True: await ctx.now()")
    found = replayed(recorded(waiting("await charge(); await ctx.receive('go')")), new)

    assert (found.verdict, found.unvisited) == ("fits", ["go"])
