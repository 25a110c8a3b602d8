"""Collects what one attempt of a step prints and logs, and bounds it.

The first lines of an attempt are kept, and the last ones; those between are only counted. So a step that prints in an
endless loop costs a fixed amount of memory, and why it failed can still be read.
"""

from __future__ import annotations

import threading
from collections import deque

import msgspec

from weft.steps.secrets import REVEALED, replace_secrets

LINE_CHARS_MAX = 8_000
"""A longer line is cut."""
FIRST_LINES = 1_000
FIRST_CHARS = 256 * 1024
LAST_LINES = 100
LAST_CHARS = 32 * 1024
SOURCE_CHARS_MAX = 200

INFO = 20


class PrintedLine(msgspec.Struct, frozen=True):
    """A line that a step printed or logged."""

    at: int
    level: int
    source: str
    text: str
    lost: int = 0
    """How many lines of the attempt before this one were left out."""


class AttemptLog:
    """What one attempt prints. The caller makes sure that one thread uses it at a time."""

    def __init__(self) -> None:
        self._lines = 0
        self._chars = 0
        self._begun: dict[str, str] = {}
        """Text without a line break at its end, by source."""
        self._cut: dict[str, int] = {}
        """How many characters of it were left out."""
        self._last: deque[PrintedLine] = deque()
        self._last_chars = 0
        self._lost = 0

    def print(self, source: str, text: str, at: int) -> list[PrintedLine]:
        """Add text that was written to a stream. Returns the lines to store now."""
        *ended, rest = text.split("\n")
        kept: list[PrintedLine] = []
        for part in ended:
            line = self._end_line(source, part)
            added = self.add(INFO, source, line, at)
            if added is not None:
                kept.append(added)
        if rest:
            self._begin_line(source, rest)
        return kept

    def add(self, level: int, source: str, text: str, at: int) -> PrintedLine | None:
        """Add a line, which may contain line breaks. Returns it if it is to be stored now."""
        line = PrintedLine(at, level, _clean_text(source)[:SOURCE_CHARS_MAX], _clean_text(_shorten(text)))
        if not self._last and self._lines < FIRST_LINES and self._chars + len(line.text) <= FIRST_CHARS:
            self._lines += 1
            self._chars += len(line.text)
            return line
        self._keep_last(line)
        return None

    def finish(self, at: int) -> list[PrintedLine]:
        """Return the lines that are left to store at the end of the attempt."""
        kept = [
            line
            for source in list(self._begun)
            if (line := self.add(INFO, source, self._end_line(source, ""), at)) is not None
        ]
        if self._last:
            self._last[0] = msgspec.structs.replace(self._last[0], lost=self._lost)
            kept += self._last
            self._last.clear()
            self._last_chars = self._lost = 0
        return kept

    def _begin_line(self, source: str, text: str) -> None:
        begun = self._begun.get(source, "")
        room = max(0, LINE_CHARS_MAX - len(begun))
        self._begun[source] = begun + text[:room]
        if len(text) > room:
            self._cut[source] = self._cut.get(source, 0) + len(text) - room

    def _end_line(self, source: str, text: str) -> str:
        if source not in self._begun:
            return text
        self._begin_line(source, text)
        line, cut = self._begun.pop(source), self._cut.pop(source, 0)
        return f"{line}{_more_text(cut)}" if cut else line

    def _keep_last(self, line: PrintedLine) -> None:
        self._last.append(line)
        self._last_chars += len(line.text)
        while len(self._last) > LAST_LINES or (self._last_chars > LAST_CHARS and len(self._last) > 1):
            self._last_chars -= len(self._last.popleft().text)
            self._lost += 1


class AttemptOutput:
    """Collects what an attempt prints in a process of its own, until its end."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log = AttemptLog()
        self._lines: list[PrintedLine] = []

    def note(self, source: str, text: str, level: int | None) -> None:
        """Add what was printed or, with a ``level``, logged. From any thread."""
        with self._lock:
            if level is None:
                self._lines += self._log.print(source, text, 0)
            elif (line := self._log.add(level, source, text, 0)) is not None:
                self._lines.append(line)

    def lines(self) -> list[tuple[str, str, int]]:
        """Return source, text and level of each line. A line says how many were left out."""
        with self._lock:
            self._lines += self._log.finish(0)
            lines = []
            for line in self._lines:
                if line.lost:
                    lines.append((line.source, f"({line.lost:,} lines were left out here)", line.level))
                lines.append((line.source, line.text, line.level))
            return lines


def _shorten(text: str) -> str:
    over = len(text) - LINE_CHARS_MAX
    # A little more is allowed for a line that was cut already and says so.
    return f"{text[:LINE_CHARS_MAX]}{_more_text(over)}" if over > len(_more_text(10**9)) else text


def _more_text(chars: int) -> str:
    return f"… ({chars:,} more characters)"


def _clean_text(text: str) -> str:
    """Replace secrets that this process has revealed, and characters that a store cannot hold."""
    if REVEALED:
        text = replace_secrets(text)
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text
