"""Code that changes under a run: it begins with the old code and goes on with the new."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.test_divergence import weft_settings
from tests.code.timeless import calm

Build = Callable[[weft.App, list[str]], None]


def make_step(app: weft.App, acts: list[str], name: str, **options: Any) -> Any:
    async def act(n: int = 0) -> str:
        acts.append(name)
        return name

    return app.step(name=name, **options)(act)


def code(body: Callable[[weft.Context, Any], Any], **policies: dict[str, Any]) -> Build:
    """An app with the steps that the body uses (``s.charge``), each of which notes that it acted."""

    def build(app: weft.App, acts: list[str]) -> None:
        made: dict[str, Any] = {}

        class Steps:
            def __getattr__(self, name: str) -> Any:
                return made[name]

        for name in ("look", "charge", "charge_card", "check", "ship"):
            made[name] = make_step(app, acts, name, **policies.get(name, {}))

        @app.workflow
        async def flow(ctx: weft.Context) -> Any:
            return await body(ctx, Steps())

    return build


class Changed:
    """A run that the old code brought to its wait for "go", and that the new code then took over."""

    def __init__(self, old: Build, new: Build, *, replay: Any = "checked") -> None:
        self.acts: list[str] = []
        self.old, self.new = weft.App("memory://", replay=replay), weft.App("memory://", replay=replay)
        old(self.old, self.acts)
        new(self.new, self.acts)
        self.desk = Desk(self.old)
        self.desk.settings = weft_settings(self.desk, tolerant=replay == "tolerant")
        self.desk.play(self._begin, crash=True)
        self.before = list(self.acts)
        self.outcome = self.desk.play(self._go_on, app=self.new)

    async def _begin(self) -> None:
        await self.old.start("flow", {}, id="run")
        await calm()

    async def _go_on(self) -> str:
        run = self.new.get("run")
        await calm()
        if await run.status() == "running":
            await run.send("go")
            await asyncio.sleep(10)
        return await run.status()

    @property
    def anew(self) -> list[str]:
        """What the new code performed."""
        return self.acts[len(self.before) :]

    def held(self) -> str:
        held = self.desk.state().held
        return held.message if held is not None else ""

    def resumed(self, build: Build) -> list[str]:
        """What is performed when the held run is resumed with this code, which must bring it to its end."""
        app = weft.App("memory://")
        build(app, self.acts)
        past = len(self.acts)

        async def end() -> None:
            run = app.get("run")
            await run.resume()
            await run.send("go")
            await run.result()

        self.desk.play(end, app=app)
        return self.acts[past:]


async def plain(ctx: weft.Context, s: Any) -> Any:
    await s.look(1)
    await s.charge(2)
    await ctx.receive("go")
    await s.ship(3)


async def renamed(ctx: weft.Context, s: Any) -> Any:
    await s.look(1)
    await s.charge_card(2)
    await ctx.receive("go")
    await s.ship(3)


# --- a renamed step ----------------------------------------------------------------------------------------------


def test_a_renamed_step_does_not_act_twice_and_the_message_names_the_ways_out() -> None:
    run = Changed(code(plain), code(renamed))
    assert run.outcome == "held"
    assert run.anew == []
    for part in (
        "`charge_card`",
        "`charge`",
        '@app.step(name="charge")',
        'await ctx.removed("charge", "step")',
        "ctx.version(",
        "weft resume run",
    ):
        assert part in run.held()


def test_a_renamed_step_goes_on_under_its_old_name() -> None:
    def named(app: weft.App, acts: list[str]) -> None:
        look, ship = make_step(app, acts, "look"), make_step(app, acts, "ship")

        @app.step(name="charge")
        async def charge_card(n: int = 0) -> str:
            acts.append("charge_card")
            return "charge"

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await look(1)
            await charge_card(2)
            await ctx.receive("go")
            await ship(3)

    assert Changed(code(plain), code(renamed)).resumed(named) == ["ship"]


def test_a_removed_step_is_said_and_the_new_one_is_performed() -> None:
    async def said(ctx: weft.Context, s: Any) -> Any:
        await s.look(1)
        await ctx.removed("charge", "step")
        await s.charge_card(2)
        await ctx.receive("go")
        await s.ship(3)

    assert Changed(code(plain), code(renamed)).resumed(code(said)) == ["charge_card", "ship"]


def test_an_inserted_step_behind_a_version_leaves_old_runs_alone() -> None:
    async def inserted(ctx: weft.Context, s: Any) -> Any:
        await s.look(1)
        await s.check(9)
        await s.charge(2)
        await ctx.receive("go")
        await s.ship(3)

    async def said(ctx: weft.Context, s: Any) -> Any:
        await s.look(1)
        if await ctx.version("check", 2) >= 2:
            await s.check(9)
        await s.charge(2)
        await ctx.receive("go")
        await s.ship(3)

    run = Changed(code(plain), code(inserted))
    assert run.outcome == "held"
    assert run.resumed(code(said)) == ["ship"]


def test_tolerant_only_reports(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "weft"):
        run = Changed(code(plain), code(renamed), replay="tolerant")
    assert run.outcome == "completed"
    assert run.anew == ["charge_card", "ship"]
    assert any("`charge_card`" in message and "`charge`" in message for message in caplog.messages)


def test_a_step_that_was_in_flight_counts_as_recorded() -> None:
    def build(name: str) -> Build:
        def make(app: weft.App, acts: list[str]) -> None:
            async def act() -> None:
                acts.append(name)
                await asyncio.sleep(1000)

            step = app.step(name=name)(act)

            @app.workflow
            async def flow(ctx: weft.Context) -> None:
                await step()

        return make

    run = Changed(build("charge"), build("charge_card"))
    assert run.outcome == "held"
    assert "charge_card" not in run.acts


def test_unchanged_code_that_takes_another_way_after_a_retry_is_not_held() -> None:
    """The first step fails, is caught, and its replacement acts; after the retry it succeeds and the way is another."""
    app = weft.App("memory://")
    acts: list[str] = []
    broken = [True]

    @app.step(retries=0)
    async def first() -> None:
        if broken[0]:
            raise ValueError("broken")
        acts.append("first")

    @app.step
    async def instead() -> None:
        acts.append("instead")

    @app.step(retries=0)
    async def last() -> None:
        if broken[0]:
            raise ValueError("broken")
        acts.append("last")

    @app.step
    async def other() -> None:
        acts.append("other")

    @app.workflow
    async def flow() -> None:
        try:
            await first()
        except Exception:
            await instead()
        else:
            await other()
        await last()

    desk = Desk(app)
    desk.fail(flow())
    broken[0] = False

    async def again() -> None:
        await app.get("run").retry()
        await app.get("run").result()

    desk.play(again)
    assert acts == ["instead", "first", "other", "last"]


@pytest.mark.parametrize("keep", [0, 2])
def test_kept_rounds_of_a_loop_are_not_missed(keep: int) -> None:
    async def body(ctx: weft.Context, s: Any) -> Any:
        async def turn(n: int) -> weft.Turn[int, None]:
            await s.charge(n)
            if n == 5:
                await ctx.receive("go")
            return weft.done(None) if n == 7 else weft.again(n + 1)

        await ctx.loop("rounds", turn, state=0, keep=keep)
        await s.ship(3)

    run = Changed(code(body), code(body))
    assert run.outcome == "completed"
    assert run.anew == ["charge", "charge", "ship"]
