"""What is wrong with a document: all of it at once, each with a code, a place and a suggestion. Pure.

The compiler notes a `Problem` at a place in the source (`At`); who knows the file turns it into a `Finding` with a path
that people can read and a line. `refusal` is the error that carries them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from weft.errors import BadGraph

At = tuple[str | int, ...]
"""A place in the document as its author wrote it: keys and indexes from the top."""

Severity = Literal["error", "warning"]

PROBLEMS_MAX = 100
"""So many tell enough; a document of a thousand mistakes is one mistake made a thousand times."""


NEAR_MAX = 200


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One error or warning about a document. `str()` is the line that people read."""

    code: str
    message: str
    path: str = ""
    line: int = 0
    file: str = ""
    suggestion: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        head = " ".join(part for part in (place, self.path) if part)
        text = f"{self.message} {self.suggestion}" if self.suggestion else self.message
        return f"{head}: {text}" if head else text


class Problem(msgspec.Struct, frozen=True):
    """A finding whose place nobody has looked up yet."""

    code: str
    at: At
    message: str
    suggestion: str = ""
    severity: Severity = "error"


class Problems:
    """Collects what is wrong, so that one mistake does not hide the next."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self._seen: set[tuple[str, At, str]] = set()
        self._errors = 0

    def add(self, code: str, at: At, message: str, suggestion: str = "") -> None:
        """Note an error. The same one twice is one."""
        key = (code, at, message)
        if key in self._seen or self.full:
            return
        self._seen.add(key)
        self._errors += 1
        self.found.append(Problem(code if "." in code else f"graph.{code}", at, message, suggestion))

    def warn(self, code: str, at: At, message: str) -> None:
        """Note what is allowed but perhaps not meant."""
        if len(self.found) - self._errors < PROBLEMS_MAX:
            self.found.append(Problem(f"graph.{code}", at, message, severity="warning"))

    def near(self, name: str, known: Iterable[str]) -> str:
        """The closest known name as a question, if anybody would still read it: looking is dear."""
        return "" if self.full else did_you_mean(name, known)

    @property
    def refused(self) -> bool:
        return self._errors > 0

    @property
    def full(self) -> bool:
        """Whether more would not be told anyway, so that looking for more is waste."""
        return self._errors >= PROBLEMS_MAX


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The closest known name as a question; nothing if none is close."""
    return question(closest(name, known))


def question(name: str) -> str:
    """The suggestion of a name, if there is one."""
    return f'Did you mean "{name}"?' if name else ""


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or nothing."""
    near = [word for word in known if abs(len(word) - len(name)) <= 3]
    if len(near) > NEAR_MAX:
        # Comparing is dear. In a crowd, a slip leaves the beginning or the end as it was.
        near = [word for word in near if word[:2] == name[:2] or word[-3:] == name[-3:]][:NEAR_MAX]
    found = difflib.get_close_matches(name[:100], near, n=1)
    return found[0] if found else ""


def refusal(findings: Sequence[Finding], *, name: str) -> BadGraph:
    """The error for a graph that does not hold together; `context["findings"]` has them all."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if len(errors) == 1:
        message = str(errors[0])
    else:
        count = f"at least {len(errors)}" if len(errors) >= PROBLEMS_MAX else len(errors)
        message = f"{name} has {count} problems:" + "".join(f"\n  {each}" for each in errors)
    codes = {finding.code for finding in errors}
    code = errors[0].code if len(codes) == 1 else "graph.invalid"
    return BadGraph(message, code=code, findings=list(findings))
