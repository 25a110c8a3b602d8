"""Tracebacks as they are kept: the user's frames, the causes, no more than 16 KiB, no secrets."""

import asyncio
import json
import time

import pytest

import weft
from weft.errors import BranchesFailed, Failure, RecordedTraceback, StepFailed
from weft.steps.failures import failure_of_run, rebuild_error
from weft.steps.secrets import Secret
from weft.steps.tracebacks import BYTES_MAX, traceback_of


def caught(fn: object, *arguments: object) -> BaseException:
    try:
        fn(*arguments)  # type: ignore[operator]
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def divide() -> float:
    return 1 / 0


def wrapped() -> None:
    try:
        divide()
    except ZeroDivisionError as error:
        raise ValueError("no price") from error


def test_it_is_what_python_would_print() -> None:
    text = traceback_of(caught(divide))

    assert text.startswith("Traceback (most recent call last):\n")
    assert 'test_tracebacks.py", line ' in text
    assert "return 1 / 0" in text
    assert text.endswith("ZeroDivisionError: division by zero")


def test_causes_come_first() -> None:
    text = traceback_of(caught(wrapped))

    assert text.index("ZeroDivisionError") < text.index("The above exception was the direct cause")
    assert text.endswith("ValueError: no price")


def test_wefts_own_frames_are_left_out_and_those_of_libraries_stay() -> None:
    app = weft.App("memory://")

    @app.step(retries=0)
    def parse(text: str) -> object:
        return json.loads(text)

    @app.workflow
    async def flow() -> object:
        return await parse("{")

    with pytest.raises(weft.RunFailed) as failed:
        app.run(flow())

    text = failed.value.failure.traceback
    assert "in parse\n" in text
    assert "json/decoder.py" in text
    assert "concurrent/futures" not in text
    assert "weft/runtime" not in text
    assert "weft/steps" not in text
    assert "in flow\n" in text
    assert text.index("in parse\n") < text.index("in flow\n")
    assert "RecordedTraceback" not in text


def test_the_cause_of_run_failed_is_the_recorded_traceback() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> None:
        wrapped()

    with pytest.raises(weft.RunFailed) as failed:
        app.run(flow())

    assert isinstance(failed.value.__cause__, RecordedTraceback)
    assert "return 1 / 0" in str(failed.value.__cause__)
    assert "ValueError: no price" in str(failed.value.__cause__)


def test_a_step_in_another_process_keeps_its_traceback() -> None:
    from tests.steps import stepped_elsewhere

    with pytest.raises(weft.RunFailed) as failed:
        stepped_elsewhere.app.run(stepped_elsewhere.flow())

    assert "in fails\n" in failed.value.failure.traceback
    assert "LookupError: no such price" in failed.value.failure.traceback


def recursive(depth: int) -> None:
    if depth:
        recursive(depth - 1)
    raise ValueError("x" * 100_000)


def test_what_is_too_long_loses_its_middle() -> None:
    text = traceback_of(caught(recursive, 50))

    assert len(text.encode()) <= BYTES_MAX
    assert text.startswith("Traceback")
    assert "in recursive\n" in text
    assert "bytes omitted" in text
    assert text.endswith("x" * 100)


def test_frames_of_libraries_go_before_frames_of_the_user() -> None:
    deep = "[" * 2_000
    error = caught(lambda: [json.loads(deep) for _ in range(1)])

    text = traceback_of(error)

    assert len(text.encode()) <= BYTES_MAX
    assert "test_tracebacks.py" in text


def test_secrets_are_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACED_KEY", "sk-live-traceback-1")

    def call() -> None:
        raise RuntimeError(f"refused {Secret('env:TRACED_KEY').reveal()}")

    text = traceback_of(caught(call))

    assert "sk-live-traceback-1" not in text
    assert "RuntimeError: refused [secret env:TRACED_KEY]" in text


def test_nothing_in_it_steers_a_terminal() -> None:
    def call() -> None:
        raise RuntimeError("\x1b[31mred\0\x9b")

    assert traceback_of(caught(call)).endswith("RuntimeError: \\x1b[31mred\\x00\\x9b")


class Broken(Exception):
    def __str__(self) -> str:
        raise KeyError("no text")


def test_an_exception_that_cannot_be_shown_has_a_traceback_all_the_same() -> None:
    def call() -> None:
        raise Broken

    assert "Broken" in traceback_of(caught(call))


def test_a_group_has_those_of_its_branches() -> None:
    step = Failure("Declined", "o-1", step="charge", traceback="Traceback (recorded):\nDeclined: o-1")
    group = BranchesFailed("pay: 1 of 1 branches failed", {"card": rebuild_error(step)})

    def call() -> None:
        raise group

    text = traceback_of(caught(call))

    assert "Traceback (recorded):" in text
    assert "Declined: o-1" in text
    assert "RecordedTraceback" not in text


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one

    assert "ValueError: 1" in traceback_of(one)
    assert failure_of_run(one).step == ""


def test_a_rebuilt_failure_shows_its_traceback_as_its_cause() -> None:
    error = rebuild_error(Failure("Declined", "o-1", step="charge", traceback="Traceback (recorded)"))

    assert isinstance(error, StepFailed)
    assert "Traceback (recorded)" in str(error.__cause__)


def test_an_attempt_that_takes_too_long_shows_where_it_hung() -> None:
    app = weft.App("memory://")

    @app.step(retries=0, timeout="10ms")
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def flow() -> str:
        try:
            await slow()
        except weft.StepFailed as error:
            return error.failure.traceback
        return "?"

    assert "in slow\n    await asyncio.sleep(60)" in app.run(flow())


def test_an_exception_raised_by_weft_itself_keeps_its_frames() -> None:
    text = traceback_of(caught(weft.App("memory://").workflow, divide))

    assert "NotAsync" in text
    assert 'File "' in text


def test_a_long_message_with_control_characters_costs_as_little_as_any_other() -> None:
    def cost(message: str) -> float:
        begin = time.process_time()
        shown = traceback_of(raised(message))
        assert len(shown.encode()) <= BYTES_MAX
        assert "\0" not in shown
        return time.process_time() - begin

    plain = max(cost("y" * 4_000_000), 0.05)
    assert cost("\0\x1b" + "y" * 4_000_000) < 8 * plain
    assert cost("\ud800" + "y" * 4_000_000) < 8 * plain


def raised(message: str) -> Exception:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error
