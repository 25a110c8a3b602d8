"""What one attempt prints is cut into lines and bounded: the beginning is kept, the end, and how much was between."""

from __future__ import annotations

import os
import tracemalloc

import pytest

import weft
from weft.steps.attempt_log import (
    FIRST_CHARS,
    FIRST_LINES,
    LAST_CHARS,
    LAST_LINES,
    LINE_CHARS_MAX,
    AttemptLog,
    AttemptOutput,
    PrintedLine,
)


def printed(log: AttemptLog, *texts: str, source: str = "stdout") -> list[str]:
    return [line.text for text in texts for line in log.print(source, text, 1)]


def test_text_becomes_a_line_when_its_line_break_comes() -> None:
    log = AttemptLog()

    assert printed(log, "a", "b", "c\nd") == ["abc"]
    assert printed(log, "\n") == ["d"]
    assert printed(log, "x\ny\n\n") == ["x", "y", ""]
    assert log.finish(9) == []


def test_what_has_no_line_break_comes_at_the_end() -> None:
    log = AttemptLog()
    printed(log, "half")
    printed(log, "other", source="stderr")

    assert log.finish(9) == [PrintedLine(9, 20, "stdout", "half"), PrintedLine(9, 20, "stderr", "other")]


def test_a_record_keeps_its_level_and_its_line_breaks() -> None:
    assert AttemptLog().add(40, "shop", "broken\n  at line 3", 7) == PrintedLine(7, 40, "shop", "broken\n  at line 3")


def test_the_first_and_the_last_lines_are_kept_and_the_others_counted() -> None:
    log = AttemptLog()
    kept = printed(log, *(f"{n}\n" for n in range(5_000)))
    last = log.finish(9)

    assert kept == [f"{n}" for n in range(FIRST_LINES)]
    assert [line.text for line in last] == [f"{n}" for n in range(5_000 - LAST_LINES, 5_000)]
    assert [line.lost for line in last] == [5_000 - FIRST_LINES - LAST_LINES, *[0] * (LAST_LINES - 1)]


def test_a_line_without_end_is_cut_and_says_by_how_much() -> None:
    log = AttemptLog()

    (line,) = printed(log, *["x" * 1_000_000] * 10, "\n")

    assert line == "x" * LINE_CHARS_MAX + f"… ({10_000_000 - LINE_CHARS_MAX:,} more characters)"
    assert AttemptLog().add(20, "s", "y" * 9_000, 1) == PrintedLine(
        1, 20, "s", "y" * 8_000 + "… (1,000 more characters)"
    )


def test_the_memory_of_an_attempt_that_never_stops_printing_is_bounded() -> None:
    log = AttemptLog()
    text = "x" * 999 + "\n"
    tracemalloc.start()
    kept = sum(len(line) for _ in range(10_000) for line in printed(log, text))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept <= FIRST_CHARS
    assert size < 2 * (LAST_CHARS + FIRST_CHARS)
    assert sum(len(line.text) for line in log.finish(1)) <= LAST_CHARS


def test_what_no_store_can_hold_is_replaced() -> None:
    log = AttemptLog()

    assert printed(log, "a\0b\n", "\ud800c\n") == ["a\ufffdb", "?c"]


def test_a_revealed_secret_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTEMPT_LOG_KEY", "sk-very-secret-77")
    weft.Secret("env:ATTEMPT_LOG_KEY").reveal()

    assert printed(AttemptLog(), f"key={os.environ['ATTEMPT_LOG_KEY']}\n") == ["key=[secret env:ATTEMPT_LOG_KEY]"]


def test_output_of_another_process_says_what_it_left_out() -> None:
    output = AttemptOutput()
    output.note("stdout", "".join(f"{n}\n" for n in range(2_000)), None)
    output.note("shop", "done", 30)

    lines = output.lines()

    assert lines[FIRST_LINES] == ("stdout", "(901 lines were left out here)", 20)
    assert lines[-1] == ("shop", "done", 30)
