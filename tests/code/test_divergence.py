"""Replay asks for what the log does not hold: the run stops for a person, names the place, and undoes nothing."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm

Body = Callable[[weft.Context, Any], Any]


class Steps:
    """Steps a, b, c that take a number and give it back, with undos that are counted."""

    def __init__(self, app: weft.App) -> None:
        self.performed: list[str] = []
        self.undone: list[str] = []
        self.a, self.b, self.c = (self._make(app, name) for name in "abc")

    def _make(self, app: weft.App, name: str) -> Any:
        async def perform(n: int = 0) -> int:
            self.performed.append(f"{name}{n}")
            return n

        async def undo(n: int = 0) -> None:
            self.undone.append(f"{name}{n}")

        step = app.step(name=name)(perform)
        undo.__name__ = f"undo_{name}"
        step.undo(undo)
        return step


def build(body: Body, **options: Any) -> tuple[weft.App, Steps]:
    app = weft.App("memory://", **options)
    steps = Steps(app)

    @app.workflow
    async def flow(ctx: weft.Context) -> Any:
        return await body(ctx, steps)

    return app, steps


class Edited:
    """A run that began with one code and was taken up by another."""

    def __init__(self, old: Body, new: Body, **options: Any) -> None:
        self.first, self.before = build(old, **options)
        self.second, self.after = build(new, **options)
        self.desk = Desk(self.first)
        self.status = self._play()

    def _play(self) -> str:
        async def begin() -> None:
            await self.first.start("flow", {}, id="run")
            await calm()

        async def look() -> str:
            await calm()
            return await self.second.get("run").status()

        self.desk.settings = weft_settings(self.desk, tolerant=self.second.is_tolerant)
        self.desk.play(begin, crash=True)
        return self.desk.play(look, app=self.second, crash=True)

    def finish(self, app: weft.App, *, resume: bool = False) -> Any:
        async def end() -> Any:
            run = app.get("run")
            if resume:
                await run.resume()
            await run.send("go")
            return await run.result()

        return self.desk.play(end, app=app)


def weft_settings(desk: Desk, *, tolerant: bool) -> Any:
    import msgspec

    return msgspec.structs.replace(desk.settings, tolerant=tolerant)


async def plain(ctx: weft.Context, s: Steps) -> Any:
    found = [await s.a(1), await s.b(2)]
    await ctx.receive("go")
    return found


def test_other_arguments_are_divergence_that_names_place_recorded_and_asked() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        await s.a(9)
        await s.b(2)
        await ctx.receive("go")

    edited = Edited(plain, new)
    held = edited.desk.state().held
    assert edited.status == "held"
    assert held is not None
    assert held.code == "code.diverged"
    assert held.location == "a"
    assert "`a`" in held.message
    assert "weft resume run" in held.message
    assert edited.after.performed == []


def test_nothing_is_undone_and_nothing_is_lost() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        await s.a(9)

    edited = Edited(plain, new)
    assert edited.before.undone == edited.after.undone == []
    assert edited.desk.kinds()[-1] == "run_held"


def test_the_run_goes_on_after_the_code_was_put_back() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        await s.a(9)

    edited = Edited(plain, new)
    assert edited.finish(edited.first, resume=True) == [1, 2]
    assert edited.before.performed == ["a1", "b2"]


def test_another_kind_of_thing_under_the_same_name_is_divergence() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        await ctx.sleep("1s", name="a")

    edited = Edited(plain, new)
    held = edited.desk.state().held
    assert held is not None
    assert "a step" in held.message
    assert "a sleep" in held.message


def test_calls_of_different_names_may_change_places() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.b(2), await s.a(1)]
        await ctx.receive("go")
        return found

    edited = Edited(plain, new)
    assert edited.status == "running"
    assert edited.finish(edited.second) == [2, 1]
    assert edited.after.performed == []


def test_calls_of_one_name_that_changed_places_are_found_by_their_arguments() -> None:
    async def old(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.a(2), await s.a(3)]
        await ctx.receive("go")
        return found

    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(3), await s.a(1), await s.a(2)]
        await ctx.receive("go")
        return found

    edited = Edited(old, new)
    assert edited.status == "running"
    assert edited.finish(edited.second) == [3, 1, 2]
    assert edited.after.performed == []


def test_a_call_put_between_calls_of_the_same_name_is_performed_and_the_others_are_found() -> None:
    async def old(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.a(2)]
        await ctx.receive("go")
        return found

    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.a(9), await s.a(2)]
        await ctx.receive("go")
        return found

    edited = Edited(old, new)
    assert edited.status in {"held", "running"}
    if edited.status == "running":
        assert edited.finish(edited.second) == [1, 9, 2]
        assert edited.after.performed == ["a9"]


def test_two_calls_with_equal_arguments_keep_their_own_results() -> None:
    count = [0]

    def make(app: weft.App) -> Any:
        async def draw(n: int) -> int:
            count[0] += 1
            return count[0]

        return app.step(name="draw")(draw)

    first, second = weft.App("memory://"), weft.App("memory://")
    for app, order in ((first, [1, 1, 2]), (second, [2, 1, 1])):
        draw = make(app)

        @app.workflow
        async def flow(ctx: weft.Context, draw: Any = draw, order: Any = tuple(order)) -> list[int]:
            found = [await draw(n) for n in order]
            await ctx.receive("go")
            return found

    desk = Desk(first)
    found = desk.across_a_crash(first.registered.workflow_named("flow")(), app=second)
    assert found[0] == 3
    assert sorted(found) == [1, 2, 3]
    assert count == [3]


def test_one_record_answers_one_call() -> None:
    async def old(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.a(2)]
        await ctx.receive("go")
        return found

    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(2), await s.a(2)]
        await ctx.receive("go")
        return found

    edited = Edited(old, new)
    held = edited.desk.state().held
    assert edited.status == "held"
    assert held is not None
    assert held.code == "code.diverged"


def test_a_step_that_is_no_longer_called_is_reported_and_not_fatal(caplog: pytest.LogCaptureFixture) -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.b(2)]
        await ctx.receive("go")
        return found

    with caplog.at_level(logging.WARNING, "weft"):
        edited = Edited(plain, new)
        assert edited.status == "running"
        assert caplog.messages == []
        assert edited.finish(edited.second) == [2]
    assert caplog.messages == ["weft: run ends, and replay no longer reaches the recorded a"]


def test_a_step_added_in_the_past_holds_the_run() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.c(3), await s.b(2)]
        await ctx.receive("go")
        return found

    edited = Edited(plain, new)
    assert edited.status == "held"
    assert edited.after.performed == []


def test_tolerant_replay_uses_what_was_recorded_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(9), await s.b(2)]
        await ctx.receive("go")
        return found

    with caplog.at_level(logging.WARNING, "weft"):
        edited = Edited(plain, new, replay="tolerant")
    assert edited.status == "running"
    assert edited.finish(edited.second) == [1, 2]
    assert any("other arguments" in record.getMessage() for record in caplog.records)


def test_a_recorded_deadline_and_message_are_used_and_not_what_is_passed_again() -> None:
    async def old(ctx: weft.Context, s: Steps) -> Any:
        await ctx.receive("go", timeout="10h", default=None)
        return "x"

    async def new(ctx: weft.Context, s: Steps) -> Any:
        return await ctx.receive("go", timeout="1ms", default="late")

    edited = Edited(old, new)
    assert edited.status == "running"
    assert edited.finish(edited.second) is None


def test_divergence_cannot_be_swallowed_by_the_code() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        try:
            await s.a(9)
        except Exception:
            return "swallowed"
        except BaseException:
            await s.c(3)
            return "swallowed too"

    edited = Edited(plain, new)
    assert edited.status == "held"
    assert edited.after.performed == []
    assert edited.desk.kinds()[-1] == "run_held"


@pytest.mark.parametrize("style", ["gather", "join", "group"])
def test_divergence_in_a_branch_holds_the_run_and_nothing_else_is_begun(style: str) -> None:
    def code(n: int) -> Body:
        async def body(ctx: weft.Context, s: Steps) -> Any:
            if style == "gather":
                await asyncio.gather(s.a(n), s.b(2))
            elif style == "join":
                await ctx.join("two", s.a(n), s.b(2))
            else:
                async with asyncio.TaskGroup() as group:
                    group.create_task(s.a(n))
                    group.create_task(s.b(2))
            await s.c(3)
            await ctx.receive("go")

        return body

    edited = Edited(code(1), code(9))
    assert edited.status == "held"
    assert edited.after.performed == []


def test_messages_to_a_held_run_are_kept_for_later() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        await s.a(9)

    edited = Edited(plain, new)

    async def send() -> None:
        await edited.second.get("run").send("go")

    async def back() -> Any:
        run = edited.first.get("run")
        await run.resume()
        return await run.result()

    edited.desk.play(send, app=edited.second)
    assert edited.desk.play(back, app=edited.first) == [1, 2]


def test_a_result_that_no_longer_fits_its_type_holds_the_run() -> None:
    """The log is right and the code has changed: that is for a person, and nothing may be undone for it."""

    def typed(kind: type) -> weft.App:
        app = weft.App("memory://")

        async def give() -> Any:
            return "text"

        give.__annotations__["return"] = kind
        step = app.step(name="give")(give)

        async def take_back() -> None:
            undone.append(1)

        step.undo(take_back)

        @app.workflow
        async def flow(ctx: weft.Context) -> Any:
            found = await step()
            await ctx.receive("go")
            return found

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def look() -> str:
        await calm()
        return await second.get("run").status()

    async def end() -> Any:
        run = first.get("run")
        await run.resume()
        await run.send("go")
        return await run.result()

    undone: list[int] = []
    first, second = typed(str), typed(int)
    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(look, app=second, crash=True) == "held"
    assert undone == []
    assert desk.play(end, app=first) == "text"


@pytest.mark.parametrize("change", ["another name", "another type", "one more"])
def test_an_input_that_no_longer_fits_the_workflow_holds_the_run(change: str) -> None:
    def typed(changed: str) -> weft.App:
        app = weft.App("memory://")

        async def same(ctx: weft.Context, n: int) -> int:
            await ctx.receive("go")
            return n

        async def renamed(ctx: weft.Context, m: int) -> int:
            return m

        async def retyped(ctx: weft.Context, n: str) -> str:
            return n

        async def longer(ctx: weft.Context, n: int, m: int) -> int:
            return m

        found: Any = {"": same, "another name": renamed, "another type": retyped, "one more": longer}[changed]
        app.registered.add_workflow(found, name="flow")
        return app

    async def begin() -> None:
        await first.start("flow", {"n": 1}, id="run")
        await calm()

    async def look() -> str:
        await calm()
        return await second.get("run").status()

    async def end() -> Any:
        run = first.get("run")
        await run.resume()
        await run.send("go")
        return await run.result()

    first, second = typed(""), typed(change)
    desk = Desk(first)
    desk.play(begin, crash=True)
    assert desk.play(look, app=second, crash=True) == "held"
    assert desk.play(end, app=first) == 1


def test_a_name_used_for_two_kinds_is_a_mistake_and_not_divergence() -> None:
    async def code(ctx: weft.Context, s: Steps) -> Any:
        await s.a(1)
        await ctx.sleep("1s", name="a")

    app, steps = build(code)
    assert Desk(app).fail(app.registered.workflow_named("flow")()).type == "NameTaken"
    assert steps.undone == ["a1"]


def test_retry_from_a_place_gives_a_held_run_another_way_on() -> None:
    async def new(ctx: weft.Context, s: Steps) -> Any:
        found = [await s.a(1), await s.b(9)]
        await ctx.receive("go")
        return found

    edited = Edited(plain, new)
    assert edited.status == "held"

    async def end() -> Any:
        run = edited.second.get("run")
        await run.retry(start="b")
        await run.send("go")
        return await run.result()

    assert edited.desk.play(end, app=edited.second) == [1, 9]
    assert edited.after.performed == ["b9"]
