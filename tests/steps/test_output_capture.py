"""Output goes where it went before, and to the task of the step that is running."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from weft.steps.output_capture import CapturedStream, capture_output
from weft.steps.task import CURRENT_TASK, Task

Noted = list[tuple[str, str, int | None]]


@contextlib.contextmanager
def in_step() -> Iterator[Noted]:
    """Capture output in a step, and give what was noted. Not a fixture: pytest replaces the streams after fixtures."""
    noted: Noted = []
    end = capture_output()
    token = CURRENT_TASK.set(partial(Task, key="k", attempt=1, run_id="r", step="s", note=note_in(noted)))
    try:
        yield noted
    finally:
        CURRENT_TASK.reset(token)
        end()


def note_in(noted: Noted) -> Callable[[str, str, int | None], None]:
    return lambda source, text, level: noted.append((source, text, level))


def test_what_is_printed_is_noted_and_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with in_step() as noted:
        print("hello")
        print("oh", file=sys.stderr)

        assert noted == [
            ("stdout", "hello", None),
            ("stdout", "\n", None),
            ("stderr", "oh", None),
            ("stderr", "\n", None),
        ]
        assert capsys.readouterr() == ("hello\n", "oh\n")


def test_nothing_is_noted_outside_a_step() -> None:
    with in_step() as noted:
        token = CURRENT_TASK.set(None)  # type: ignore[arg-type]
        print("hello")
        CURRENT_TASK.reset(token)

        assert noted == []


def test_a_record_is_noted_once_even_if_its_handler_prints_it() -> None:
    with in_step() as noted:
        logger = logging.getLogger("shop.capture")
        handler = logging.StreamHandler(sys.stdout)
        logger.addHandler(handler)
        try:
            logger.warning("stock of %s is low", "tea")
        finally:
            logger.removeHandler(handler)

        assert noted == [("shop.capture", "stock of tea is low", 30)]


def test_a_record_below_the_level_of_its_logger_is_not_noted() -> None:
    with in_step() as noted:
        logger = logging.getLogger("shop.quiet")
        logger.setLevel(logging.ERROR)
        logger.warning("unheard")

        assert noted == []


def test_a_traceback_belongs_to_its_record() -> None:
    with in_step() as noted:
        try:
            raise ValueError("odd")
        except ValueError:
            logging.getLogger("shop").exception("it broke")

        ((source, text, level),) = noted
        assert (source, level) == ("shop", 40)
        assert text.startswith("it broke\nTraceback (most recent call last):")
        assert text.endswith("ValueError: odd")


def test_a_filter_that_redacts_a_record_redacts_what_is_noted() -> None:
    with in_step() as noted:

        def redact(record: logging.LogRecord) -> bool:
            record.msg, record.args = "card ****", None
            return True

        handler = logging.StreamHandler(io.StringIO())
        handler.addFilter(redact)
        logger = logging.getLogger("shop.cards")
        logger.addHandler(handler)
        logger.warning("card %s", "4242")

        assert noted == [("shop.cards", "card ****", 30)]


def test_arguments_that_do_not_fit_break_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_step() as noted:
        monkeypatch.setattr(logging, "raiseExceptions", False)
        logging.getLogger("shop").warning("%d", "x")

        assert noted == [("shop", "%d", 30)]


def test_lines_of_weft_itself_are_not_output_of_a_step() -> None:
    with in_step() as noted:
        logging.getLogger("weft").warning("a commit failed")
        logging.getLogger("weft.api").warning("a request failed")

        assert noted == []


def test_handlers_of_nobody_still_get_the_last_resort(capsys: pytest.CaptureFixture[str]) -> None:
    """Capturing adds no handler: ``logging.basicConfig`` and the default output of warnings stay as they are."""
    with in_step():
        assert not any("weft" in type(handler).__module__ for handler in logging.getLogger().handlers)


def test_the_task_follows_async_code_and_its_threads() -> None:
    with in_step() as noted:

        async def work() -> None:
            await asyncio.gather(asyncio.to_thread(print, "thread", end=""), say("task"))

        async def say(text: str) -> None:
            await asyncio.sleep(0)
            print(text, end="")

        asyncio.run(work())

        assert sorted(noted) == [("stdout", "task", None), ("stdout", "thread", None)]


def test_several_hosts_note_a_line_once_and_the_last_one_puts_everything_back() -> None:
    before: list[Any] = [sys.stdout, sys.stderr, logging.Logger.callHandlers]
    first, second = capture_output(), capture_output()
    assert isinstance(sys.stdout, CapturedStream)
    assert not isinstance(sys.stdout.stream, CapturedStream)

    first()
    assert isinstance(sys.stdout, CapturedStream)
    second()

    assert [sys.stdout, sys.stderr, logging.Logger.callHandlers] == before


def test_a_stream_that_somebody_replaced_meanwhile_is_theirs() -> None:
    end = capture_output()
    with contextlib.redirect_stdout(io.StringIO()) as theirs:
        end()
        assert sys.stdout is theirs
    sys.stdout = sys.stdout.stream if isinstance(sys.stdout, CapturedStream) else sys.stdout


def test_a_captured_stream_is_still_a_stream() -> None:
    with in_step() as noted:
        sys.stdout.writelines(["a", "b"])
        sys.stdout.flush()

        assert noted == [("stdout", "a", None), ("stdout", "b", None)]
        assert sys.stdout.encoding.lower() == "utf-8"
        assert sys.stdout.writable()
