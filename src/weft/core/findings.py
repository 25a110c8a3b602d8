"""Errors and warnings about a document, collected in one pass, and suggestions for misspelt names. Pure.

A compiler reports a ``Problem`` at a place in the source (``At``). ``weft.documents.source`` turns the problem into a
``Finding`` with a readable path and a line. ``document_error`` makes the error that carries the findings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Literal

import msgspec

from weft.core.plurals import shortened
from weft.errors import BadGraph, WeftError

At = tuple[str | int, ...]
"""A place in the document: the keys and indexes that lead to it from the top."""

Severity = Literal["error", "warning"]

PROBLEMS_MAX = 100
"""The largest number of errors reported for one document."""

NEAR_MAX = 200
"""The largest number of names that a misspelt one is compared with."""


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
    """A finding before its path and line are looked up."""

    code: str
    at: At
    message: str
    suggestion: str = ""
    severity: Severity = "error"


class Problems:
    """Collects the problems of one document. ``area`` is the first word of their codes."""

    def __init__(self, area: str = "graph") -> None:
        self._area = area
        self.entries: list[Problem] = []
        self._seen: set[tuple[str, At, str]] = set()
        self._errors = 0

    def add(self, code: str, at: At, message: str, suggestion: str = "") -> None:
        """Add an error, unless the same error was added before or the limit is reached."""
        key = (code, at, message)
        if key in self._seen or self.full:
            return
        self._seen.add(key)
        self._errors += 1
        self.entries.append(Problem(code if "." in code else f"{self._area}.{code}", at, message, suggestion))

    def warn(self, code: str, at: At, message: str) -> None:
        """Add a warning about something that is allowed but probably a mistake."""
        if len(self.entries) - self._errors < PROBLEMS_MAX:
            self.entries.append(Problem(f"{self._area}.{code}", at, message, severity="warning"))

    def near(self, name: str, known: Iterable[str]) -> str:
        """Suggest the closest known name.

        Returns an empty string once the limit of errors is reached, as this is slow.
        """
        return "" if self.full else did_you_mean(name, known)

    @property
    def has_errors(self) -> bool:
        return self._errors > 0

    @property
    def full(self) -> bool:
        """Return whether the limit of errors is reached."""
        return self._errors >= PROBLEMS_MAX


def did_you_mean(name: str, known: Iterable[str], *, quote: str = '"') -> str:
    """Suggest the closest known name. Returns an empty string if none is close."""
    return suggestion_text(closest(name, known), quote=quote)


def suggestion_text(name: str, *, quote: str = '"') -> str:
    """Return "Did you mean ...?" for a name, or an empty string for an empty name."""
    return f"Did you mean {quote}{name}{quote}?" if name else ""


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar, ignoring case, or an empty string if none is."""
    wanted = name[:100].lower()
    near = {word.lower(): word for word in known if abs(len(word) - len(name)) <= 3}
    if len(near) > NEAR_MAX:
        # Comparing is slow. If there are many names, compare only those with the same beginning or end.
        alike = (word for word in near if word[:2] == wanted[:2] or word[-3:] == wanted[-3:])
        near = {word: near[word] for word in islice(alike, NEAR_MAX)}
    found = difflib.get_close_matches(wanted, near, n=1)
    return near[found[0]] if found else ""


def document_error(findings: Sequence[Finding], *, name: str, error: type[WeftError] = BadGraph) -> WeftError:
    """Make the error for an invalid document. ``context["findings"]`` has all findings, including warnings."""
    name = shortened(name)
    errors = [finding for finding in findings if finding.severity == "error"]
    if len(errors) == 1:
        # An app has several graphs, and its file does not say which of them is meant.
        message = f"{name}: {errors[0]}" if error is BadGraph and not errors[0].file else str(errors[0])
    else:
        count = f"at least {len(errors)}" if len(errors) >= PROBLEMS_MAX else len(errors)
        message = f"{name} has {count} problems:" + "".join(f"\n  {each}" for each in errors)
    codes = {finding.code for finding in errors}
    return error(message, code=errors[0].code if len(codes) == 1 else error.code, findings=list(findings))
