"""A step runs until it has succeeded or failed for good; what was recorded of it never runs again."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e


class Declined(Exception):
    """A business error with a body of its own."""

    def __init__(self, cents: int, why: str) -> None:
        super().__init__(cents, why)
        self.cents = cents
        self.why = why


def test_a_result_is_recorded_and_returned() -> None:
    app = weft.App("memory://")

    @app.step
    async def double(n: int) -> int:
        return n * 2

    @app.workflow
    async def flow(n: int) -> int:
        return await double(n) + await double(n + 1)

    desk = Desk(app)

    assert desk.run(flow(1)) == 6
    assert desk.kinds() == ["run_started", *["task_scheduled", "task_succeeded"] * 2, "run_completed"]
    assert desk.places() == ["double", "double#2"]


def test_a_recorded_step_does_not_run_again_after_a_crash() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    @app.step
    async def charge(cents: int) -> str:
        runs.append(cents)
        return f"r-{cents}"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        receipt = await charge(42)
        await ctx.receive("go")
        return receipt

    assert Desk(app).across_a_crash(flow()) == "r-42"
    assert runs == [42]


def test_a_step_that_returns_nothing_is_done_too() -> None:
    """None is a result: a void step must not be performed again on replay."""
    app = weft.App("memory://")
    runs: list[str] = []

    @app.step
    async def notify() -> None:
        runs.append("sent")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        found: Any = notify()
        assert await found is None
        await ctx.receive("go")

    assert Desk(app).across_a_crash(flow()) is None
    assert runs == ["sent"]


def test_a_failure_for_good_is_a_step_failed_that_says_what_happened() -> None:
    app = weft.App("memory://")

    @app.step(retries=1)
    async def broken(n: int) -> None:
        raise ZeroDivisionError(f"n was {n}")

    @app.workflow
    async def flow() -> dict[str, Any]:
        try:
            await broken(3)
        except weft.StepFailed as failed:
            failure = failed.failure
            return {"type": failure.type, "message": failure.message, "step": failure.step, "n": failure.attempts}
        return {}

    assert Desk(app).run(flow()) == {"type": "ZeroDivisionError", "message": "n was 3", "step": "broken", "n": 2}


def test_a_declared_exception_crosses_as_itself_live_and_on_replay() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []
    seen: list[tuple[type, int, str, tuple[Any, ...]]] = []

    @app.step(raises=[Declined])
    async def charge() -> None:
        attempts.append(1)
        raise Declined(4200, "no cover")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        try:
            await charge()
        except Declined as declined:
            seen.append((type(declined), declined.cents, declined.why, declined.args))
        await ctx.receive("go")
        return "done"

    assert Desk(app).across_a_crash(flow()) == "done"
    assert len(attempts) == 1
    assert seen == [(Declined, 4200, "no cover", (4200, "no cover"))] * 2


def test_a_failure_is_the_same_class_with_the_same_text_live_and_on_replay() -> None:
    app = weft.App("memory://")
    seen: list[tuple[type, str, weft.Failure]] = []

    @app.step(retries=0)
    async def broken() -> None:
        raise KeyError("missing")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await broken()
        except weft.StepFailed as failed:
            seen.append((type(failed), str(failed), failed.failure))
        await ctx.receive("go")

    Desk(app).across_a_crash(flow())
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_a_critical_error_is_not_tried_again_and_stays_what_it_was() -> None:
    """Caught, it must not turn into another attempt on replay."""
    app = weft.App("memory://")
    attempts: list[int] = []
    seen: list[str] = []

    @app.step(retries=5)
    async def check() -> None:
        attempts.append(weft.task().attempt)
        raise weft.Critical("never")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await check()
        except weft.StepFailed as failed:
            seen.append(failed.failure.type)
        await ctx.receive("go")

    Desk(app).across_a_crash(flow())
    assert attempts == [1]
    assert seen == ["Critical", "Critical"]


def test_an_attempt_that_takes_too_long_is_ended_and_tried_again() -> None:
    app = weft.App("memory://")
    log: list[str] = []

    @app.step(timeout="2s", retries=1)
    async def slow() -> str:
        log.append("begin")
        try:
            await asyncio.sleep(60 if len(log) == 1 else 1)
        except asyncio.CancelledError:
            log.append("ended")
            raise
        return "done"

    @app.workflow
    async def flow() -> str:
        return await slow()

    desk = Desk(app)
    assert desk.run(flow()) == "done"
    assert log == ["begin", "ended", "begin"]
    failed = [event for event in desk.log() if isinstance(event, e.TaskFailed)]
    assert [event.failure.code for event in failed] == ["step.timed_out"]


def test_a_step_that_times_out_for_good_raises_timed_out() -> None:
    app = weft.App("memory://")
    seen: list[str] = []

    @app.step(timeout="1s", retries=0)
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        try:
            await slow()
        except TimeoutError as late:
            failure = getattr(late, "failure", None)
            seen.append(f"{type(late).__name__} {failure.step if failure else '?'} {late}")
        await ctx.receive("go")

    Desk(app).across_a_crash(flow(), seconds=2)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0].startswith("StepTimedOut slow slow timed out")


@pytest.mark.parametrize("is_late", [False, True])
def test_a_timeout_error_that_a_body_raises_is_its_own_unless_its_time_is_up(is_late: bool) -> None:
    app = weft.App("memory://")

    @app.step(timeout="2s", effect="irreversible")
    async def ask_elsewhere() -> None:
        async with asyncio.timeout(3600 if is_late else 1):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if is_late:
                    raise TimeoutError from None
                raise

    @app.workflow
    async def flow() -> str:
        try:
            await ask_elsewhere()
        except weft.OutcomeUnknown as unknown:
            return f"unknown: {unknown.failure.message}"
        except weft.StepFailed as failed:
            return f"{failed.failure.type}: {failed.failure.message}"
        return "?"

    found = "unknown: ask_elsewhere took longer than 2000 ms" if is_late else "TimeoutError: "
    assert Desk(app).run(flow()) == found


def test_an_irreversible_step_that_fails_is_not_tried_again() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(effect="irreversible", retries=5)
    async def wire() -> None:
        attempts.append(1)
        raise OSError("refused")

    @app.workflow
    async def flow() -> None:
        await wire()

    failure = Desk(app).fail(flow())
    assert attempts == [1]
    assert failure.type == "StepFailed"


def test_an_irreversible_step_that_times_out_has_an_unknown_outcome() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(effect="irreversible", timeout="1s")
    async def wire() -> None:
        attempts.append(1)
        await asyncio.sleep(60)

    @app.workflow
    async def flow() -> str:
        try:
            await wire()
        except weft.OutcomeUnknown as unknown:
            return unknown.failure.code
        return "?"

    assert Desk(app).run(flow()) == "step.outcome_unknown"
    assert attempts == [1]


@pytest.mark.parametrize("result", [{1, 2}, "a\0b", "x" * 17_000_000], ids=["set", "nul", "large"])
def test_an_irreversible_step_whose_result_cannot_be_kept_has_an_unknown_outcome(result: object) -> None:
    app = weft.App("memory://")

    @app.step(effect="irreversible")
    async def wire() -> object:
        return result

    @app.workflow
    async def flow() -> str:
        try:
            await wire()
        except weft.OutcomeUnknown as unknown:
            return unknown.failure.message
        return "?"

    assert "wire returned" in Desk(app).run(flow())


def test_an_irreversible_step_whose_process_died_is_never_performed_twice() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(effect="irreversible")
    async def wire() -> None:
        attempts.append(1)
        await asyncio.sleep(3600)

    @app.workflow
    async def flow() -> str:
        try:
            await wire()
        except weft.OutcomeUnknown:
            return "unknown"
        return "?"

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    assert desk.play(end) == "unknown"
    assert attempts == [1]


def test_the_key_of_a_task_is_the_same_in_every_attempt_and_delivery_and_differs_between_calls() -> None:
    app = weft.App("memory://")
    keys: list[tuple[str, int]] = []

    @app.step(retries=weft.Retry(3, "fixed", "1ms"))
    async def charge(n: int) -> None:
        keys.append((weft.task().key, n))
        if len(keys) == 2:
            await asyncio.sleep(3600)
        if len(keys) < 4:
            raise OSError

    @app.workflow
    async def flow() -> None:
        await charge(1)
        await charge(2)

    async def begin() -> None:
        await app.start(flow(), id="run")
        await asyncio.sleep(1)

    async def end() -> None:
        await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    desk.play(end)
    first = {key for key, n in keys if n == 1}
    second = {key for key, n in keys if n == 2}
    assert len(keys) == 5
    assert len(first) == len(second) == 1
    assert first != second


def test_a_step_that_takes_its_process_down_each_time_is_given_up() -> None:
    app = weft.App("memory://")
    runs: list[int] = []

    @app.step
    async def poison() -> None:
        runs.append(1)
        await asyncio.sleep(10 * 3600)

    @app.workflow
    async def flow() -> str:
        try:
            await poison()
        except weft.WorkerLost as lost:
            return lost.failure.code
        return "?"

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def sit() -> None:
        await asyncio.sleep(120)

    async def end() -> Any:
        return await app.get("run").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    for _ in range(5):
        desk.play(sit, crash=True)
    assert desk.play(end) == "step.worker_lost"
    assert len(runs) == 6


def test_options_change_the_name_and_the_policy_of_one_call_only() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(retries=0)
    async def fetch(n: int) -> int:
        attempts.append(n)
        if len(attempts) < 3:
            raise OSError
        return n

    @app.workflow
    async def flow() -> int:
        return await fetch.options(name="first", retries=weft.Retry(5, "fixed", "1ms"))(1) + await fetch(2)

    desk = Desk(app)
    assert desk.run(flow()) == 3
    assert desk.places() == ["first", "fetch"]
    assert attempts == [1, 1, 1, 2]
    assert fetch.name == "fetch"


def test_options_keep_what_they_do_not_name() -> None:
    app = weft.App("memory://")

    @app.step(retries=weft.Retry(7, "linear", "2s", "9s"), timeout="3s", effect="pure", queue="gpu")
    async def fetch() -> None: ...

    changed = fetch.options(name="other")
    assert changed.policy == fetch.policy
    assert fetch.options(timeout="5s").policy.attempts_max == 7


def test_outside_a_workflow_a_step_is_the_plain_function() -> None:
    app = weft.App("memory://")

    @app.step(retries=3)
    async def double(n: int) -> int:
        return n * 2

    assert asyncio.run(double(4)) == 8


def test_a_plain_def_is_a_step_too() -> None:
    app = weft.App("memory://")

    @app.step
    def double(n: int) -> int:
        return n * 2

    @app.workflow
    async def flow() -> int:
        return await double(4)

    assert Desk(app).run(flow()) == 8


def test_a_result_of_another_type_than_declared_fails_the_step_without_a_retry() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step
    async def liar() -> int:
        attempts.append(1)
        return "seven"  # type: ignore[return-value]

    @app.workflow
    async def flow() -> int:
        return await liar()

    failure = Desk(app).fail(flow())
    assert attempts == [1]
    assert "liar returned" in failure.message


def test_wrong_arguments_fail_where_they_are_given_and_nothing_is_recorded() -> None:
    app = weft.App("memory://")

    @app.step
    async def double(n: int) -> int:
        return n * 2

    @app.workflow
    async def flow() -> str:
        try:
            double("4")  # type: ignore[arg-type, unused-coroutine]
        except weft.BadValue as wrong:
            return wrong.code
        return "?"

    desk = Desk(app)
    assert desk.run(flow()) == "value.wrong_type"
    assert "task_scheduled" not in desk.kinds()


def test_a_step_that_is_not_registered_here_waits_for_a_process_that_has_it() -> None:
    def build(*, whole: bool) -> weft.App:
        app = weft.App("memory://")
        tool = (app if whole else weft.Group()).step(name="tool")(slow)

        @app.workflow
        async def flow() -> int:
            return await tool()

        return app

    async def slow() -> int:
        runs.append(1)
        await asyncio.sleep(60)
        return 7

    async def sit() -> None:
        await asyncio.sleep(10)

    async def begin() -> None:
        await whole.start("flow", {}, id="run")
        await calm()

    async def end() -> Any:
        return await whole.get("run").result()

    runs: list[int] = []
    whole, without = build(whole=True), build(whole=False)
    desk = Desk(whole)
    desk.play(begin, crash=True)
    desk.play(sit, app=without, crash=True)
    assert desk.status() != "failed"
    assert len(runs) == 1
    assert desk.play(end) == 7


def test_nothing_is_handed_out_before_it_is_recorded() -> None:
    app = weft.App("memory://")
    recorded: list[list[str]] = []

    @app.step
    async def look() -> None:
        recorded.append(desk.kinds())

    @app.workflow
    async def flow() -> None:
        await look()

    desk = Desk(app)
    desk.run(flow())
    assert recorded == [["run_started", "task_scheduled"]]
