"""Errors and warnings in a document, all collected in one pass. Each has a code, a place and a suggestion. Pure.

The compiler reports a ``Problem`` at a place in the source (``At``). ``weft.documents.source`` turns it into a
``Finding`` with a readable path and a line. ``refusal`` makes the error that carries the findings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

import msgspec

from weft.errors import BadGraph, WeftError

At = tuple[str | int, ...]
"""A place in the document: the keys and indexes that lead to it from the top."""

Severity = Literal["error", "warning"]

PROBLEMS_MAX = 100
"""The most errors reported for one document. A thousand errors are usually one mistake, repeated."""

NEAR_MAX = 200
"""The most names to compare with a misspelt one."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One error or warning about a document. ``str()`` returns the line to print."""

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
    """A finding whose path and line have not been looked up yet."""

    code: str
    at: At
    message: str
    suggestion: str = ""
    severity: Severity = "error"


class Problems:
    """A collection of problems, so that one mistake does not hide the next. ``area`` begins their codes."""

    def __init__(self, area: str = "graph") -> None:
        self._area = area
        self.found: list[Problem] = []
        self._seen: set[tuple[str, At, str]] = set()
        self._errors = 0

    def add(self, code: str, at: At, message: str, suggestion: str = "") -> None:
        """Add an error, unless the same one is there already."""
        key = (code, at, message)
        if key in self._seen or self.full:
            return
        self._seen.add(key)
        self._errors += 1
        self.found.append(Problem(code if "." in code else f"{self._area}.{code}", at, message, suggestion))

    def warn(self, code: str, at: At, message: str) -> None:
        """Add a warning: this is allowed, but probably not what the author meant."""
        if len(self.found) - self._errors < PROBLEMS_MAX:
            self.found.append(Problem(f"{self._area}.{code}", at, message, severity="warning"))

    def near(self, name: str, known: Iterable[str]) -> str:
        """Suggest the closest known name. Skipped once enough errors are collected, because the search is slow."""
        return "" if self.full else did_you_mean(name, known)

    @property
    def refused(self) -> bool:
        return self._errors > 0

    @property
    def full(self) -> bool:
        """Whether the limit of errors is reached, so that the search can stop."""
        return self._errors >= PROBLEMS_MAX


def did_you_mean(name: str, known: Iterable[str], *, quote: str = '"') -> str:
    """Suggest the closest known name. Returns an empty string if none is close."""
    return question(closest(name, known), quote=quote)


def question(name: str, *, quote: str = '"') -> str:
    """Phrase a suggested name as a question. Returns an empty string for an empty name."""
    return f"Did you mean {quote}{name}{quote}?" if name else ""


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant, or an empty string. Ignores case."""
    wanted = name[:100].lower()
    near = {word.lower(): word for word in known if abs(len(word) - len(name)) <= 3}
    if len(near) > NEAR_MAX:
        # Comparing is slow. Among many names, compare those that share the beginning or the end.
        alike = (word for word in near if word[:2] == wanted[:2] or word[-3:] == wanted[-3:])
        near = {word: near[word] for word in islice(alike, NEAR_MAX)}
    found = difflib.get_close_matches(wanted, near, n=1)
    return near[found[0]] if found else ""


def refusal(findings: Sequence[Finding], *, name: str, error: type[WeftError] = BadGraph) -> WeftError:
    """Make the error for a refused document; ``context["findings"]`` has all findings, warnings included."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if len(errors) == 1:
        message = str(errors[0])
    else:
        count = f"at least {len(errors)}" if len(errors) >= PROBLEMS_MAX else len(errors)
        message = f"{name} has {count} problems:" + "".join(f"\n  {each}" for each in errors)
    codes = {finding.code for finding in errors}
    return error(message, code=errors[0].code if len(codes) == 1 else error.code, findings=list(findings))
