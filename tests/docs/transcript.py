"""Play a page: write the files that it shows, type the commands that it shows, and compare what one sees.

A block whose first line is a comment with a file name is a file. ``# app.py`` is the whole file, ``# app.py, at the
end`` is appended to it, and ``# app.py, in place of order`` takes the place of the function ``order``.

A block of the language ``console`` is a transcript: lines after ``$`` are typed into one shell, the others are what one
sees. ``…`` stands for anything, times and durations for any time and duration, and a duration below ten milliseconds
also for none, because nothing is shown for what takes less than one. A command may end with ``&``: then what
it prints is looked for among the lines that follow. While such a command runs, lines may come in any order, a command
that only looks is typed again if it shows something else, as a reader does who looks too early, and what ``weft run``
says about a run that takes long may be there or not.
"""

from __future__ import annotations

import ast
import queue
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# ([\w.-]+\.\w+)(?:, (at the end|in place of \w+))?$")
BRIEF = re.compile(r" \d ?ms\b")
ANY_TIME = re.compile(r"\b\d\d:\d\d(?::\d\d)?\b|\b\d{4}-\d\d-\d\d\b|\b\d+(?:\.\d+)? ?(?:ms|s|m|seconds?|minutes?)\b")
ANY_DURATION = r"\S+(?: ?\w+)?"
ANY_MOMENT = re.compile(r"\bjust now\b|\b\d+ (?:seconds?|minutes?) ago\b")
PATIENCE_SECONDS = 60.0
DONE = "\x1e done"
LOOKS = ("weft inbox", "weft list", "weft explain", "weft show")
"""Commands that a reader types again if they were too early."""
PROGRESS = re.compile(r"weft: \S+ (?:running|pending): .*")
"""What ``weft run`` prints if it takes long: on a slow machine it does so where the page shows nothing."""
OF_THE_SHELL = re.compile(r"bash: line \d+: +\d+ (?:Killed|Terminated)|\[\d+\]")


class File(NamedTuple):
    """A file that the page shows, or a part of one."""

    name: str
    place: str
    text: str

    def write(self, folder: Path) -> None:
        path = folder / self.name
        if not self.place:
            path.write_text(self.text)
        elif self.place == "at the end":
            path.write_text(f"{path.read_text()}\n\n{self.text}")
        else:
            path.write_text(with_function(path.read_text(), self.place.removeprefix("in place of "), self.text))


def with_function(source: str, name: str, text: str) -> str:
    """The source with a text instead of a function, its decorators included."""
    (function,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    assert function.end_lineno is not None
    lines = source.splitlines(keepends=True)
    first = min(node.lineno for node in (function, *function.decorator_list))
    return "".join([*lines[: first - 1], text, *lines[function.end_lineno :]])


class Command(NamedTuple):
    """A line that is typed, and the lines that are seen then."""

    typed: str
    seen: tuple[str, ...]


def parts(page: str) -> Iterator[File | Command]:
    """Return files and commands in the order of the page."""
    for language, text in FENCE.findall(page):
        first, _, rest = text.partition("\n")
        if language == "console":
            yield from commands(text)
        elif (named := NAMED.match(first)) is not None:
            yield File(named[1], named[2] or "", rest)


def commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, _, seen = part.partition("\n")
        yield Command(typed, tuple(line for line in seen.splitlines() if line.strip()))


def fits(expected: str, line: str) -> bool:
    """Whether a line is the one on the page, apart from times and what the page leaves out."""
    text = ANY_TIME.sub("\0", BRIEF.sub("\2", ANY_MOMENT.sub("\1", " ".join(expected.split()))))
    pattern = re.escape(text).replace("\0", ANY_DURATION).replace("\1", f"(?:{ANY_MOMENT.pattern})")
    pattern = pattern.replace("\2", f"(?: {ANY_DURATION})?")
    return re.fullmatch(pattern.replace("…", ".*"), " ".join(line.split())) is not None


class Shell:
    """One shell in which the commands of a page are typed."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._jobs = 0
        self._say("set -m")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() and not OF_THE_SHELL.match(line):
                self._lines.put(line.rstrip("\n"))

    def _say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def type(self, command: Command) -> list[str]:
        """Type a command and return what was seen. Raises AssertionError if it is not what the page shows."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        if command.typed.endswith("&"):
            self._jobs += 1
            self._say(command.typed)
            return self._look(command, [], deadline)
        is_alone = not self._jobs
        while True:
            self._say(f'{command.typed}\necho; echo "{DONE} $(jobs -pr | wc -l)"')
            seen = list(self._until_done(command, deadline))
            # What is all on the page may have more lines to come; anything else was looked at too early.
            is_too_early = self._jobs and command.typed.startswith(LOOKS) and not is_part(seen, command.seen)
            if not is_too_early or time.monotonic() > deadline:
                return self._look(command, seen, deadline, is_alone=is_alone)

    def _until_done(self, command: Command, deadline: float) -> Iterator[str]:
        seen: list[str] = []
        while not (line := self._next(deadline)).startswith(DONE):
            assert line, "\n".join([f"$ {command.typed}", *seen, "It did not end in time."])
            seen += apart(line, command.seen) if self._jobs else [line]
        yield from seen
        self._jobs = int(line.removeprefix(DONE))

    def _next(self, deadline: float) -> str:
        """Return the next line, or an empty text if there is none in time."""
        try:
            return self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
        except queue.Empty:
            return ""

    def _look(self, command: Command, seen: list[str], deadline: float, *, is_alone: bool = False) -> list[str]:
        """Read on until as many lines were seen as the page shows, and compare."""
        while len(seen) < len(command.seen) and (line := self._next(deadline)):
            seen += apart(line, command.seen)
        shown = "\n".join(seen)
        is_same = same(command.seen, seen) or (not is_alone and is_part(seen, command.seen, whole=True))
        assert is_same, f"$ {command.typed}\n{shown}\n\nThe page has:\n" + "\n".join(command.seen)
        return seen

    def close(self) -> None:
        """Kill what still runs, and the shell."""
        self._say("kill -9 $(jobs -p) 2>/dev/null; exit")
        self._process.wait(timeout=30)
        self._reader.join(timeout=30)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def same(expected: Sequence[str], seen: Sequence[str]) -> bool:
    return len(expected) == len(seen) and all(fits(one, line) for one, line in zip(expected, seen, strict=True))


def apart(line: str, expected: Sequence[str]) -> list[str]:
    """Return the lines of two programs that wrote into one line at the same time; none if it only says progress."""
    if any(fits(one, line) for one in expected):
        return [line]
    if PROGRESS.fullmatch(line):
        return []
    for at in range(1, len(line)):
        if all(any(fits(one, part) for one in expected) for part in (line[:at], line[at:])):
            return [line[:at], line[at:]]
    return [line]


def is_part(seen: Sequence[str], expected: Sequence[str], *, whole: bool = False) -> bool:
    """Whether every line that was seen is one of the page, in any order; with ``whole``, whether all were seen."""
    left = list(expected)
    for line in seen:
        found = next((one for one in left if fits(one, line)), None)
        if found is None:
            return False
        left.remove(found)
    return not (whole and left)
