"""Parse the text of an Ale script into forms with line numbers.

A form is a list in parentheses, a vector in brackets, an object in braces, a ``'quoted`` form, a string, an integer
(also with ``0x``, ``0b`` or ``0o``), a decimal, a ratio, a boolean, null, a ``:keyword`` or a symbol. A comment begins
with ``;``, or is enclosed in ``#|`` and ``|#``, which nest.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Final, NamedTuple

from weft.scripts.ale.values import INT_BITS_MAX, Keyword
from weft.scripts.failures import BadScript, bad_script

NESTING_MAX: Final = 60
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_TOKEN: Final = re.compile(r'\s+|;[^\n]*|#\||[()\[\]{}\']|"|[^\s()\[\]{}";]+')
_BLOCK: Final = re.compile(r"#\||\|#")
_STRING: Final = re.compile(r'([^"\\]*)("|\\.)', re.DOTALL)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "s": " "}
_WORDS: Final = {"true": True, "#t": True, "false": False, "#f": False, "null": None}
_BEGINS_NUMBER: Final = re.compile(r"[+-]?\.?[0-9]")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_PREFIXED: Final = re.compile(r"[+-]?0(?:[xX][0-9a-fA-F]+|[bB][01]+|[oO][0-7]+)")
_RATIO: Final = re.compile(r"([+-]?\d+)/(\d+)")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_DIGITS_MAX: Final = INT_BITS_MAX * 3 // 10


class Symbol(NamedTuple):
    """A name in the text."""

    name: str
    line: int


class Literal(NamedTuple):
    """A literal value."""

    value: Any
    line: int


class GroupForm(NamedTuple):
    """Forms in brackets, or a quoted form. ``kind`` is the opening bracket or ``'``."""

    kind: str
    forms: tuple[Form, ...]
    line: int


Form = Symbol | Literal | GroupForm


class _OpenGroup:
    """A group that is not closed yet."""

    def __init__(self, kind: str, line: int) -> None:
        self.kind = kind
        self.line = line
        self.forms: list[Form] = []


def read_forms(text: str) -> list[Form]:
    """Return all forms of a script.

    Raises:
        BadScript: brackets or quotes do not match, a number is malformed, or the forms are nested too deeply.
    """
    return _AleReader(text).read()


class _AleReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.stack = [_OpenGroup("", 1)]

    def read(self) -> list[Form]:
        while self.at < len(self.text):
            token = _TOKEN.match(self.text, self.at)
            assert token is not None  # every character begins a token
            self._advance(token.end())
            self._take(token[0])
        last = self.stack[-1]
        if last.kind:
            quote = last.kind == "'"
            raise script_error("nothing follows a quote" if quote else f"`{last.kind}` is never closed", last.line)
        return last.forms

    def _advance(self, at: int) -> None:
        self.line += self.text.count("\n", self.at, at)
        self.at = at

    def _take(self, token: str) -> None:
        first = token[0]
        if first.isspace() or first == ";":
            return
        if token == "#|":  # noqa: S105  # the beginning of a comment
            self._skip_block()
        elif first in "([{'":
            if len(self.stack) > NESTING_MAX:
                raise script_error(f"the script is nested deeper than {NESTING_MAX} levels", self.line)
            self.stack.append(_OpenGroup(first, self.line))
        elif first in ")]}":
            self._close(first)
        elif first == '"':
            self._add(Literal(self._read_string(), self.line))
        else:
            self._add(_atom(token, self.line))

    def _skip_block(self) -> None:
        start_line, depth = self.line, 1
        while depth:
            mark = _BLOCK.search(self.text, self.at)
            if mark is None:
                raise script_error("a comment is never closed", start_line)
            self._advance(mark.end())
            depth += 1 if mark[0] == "#|" else -1

    def _close(self, closing: str) -> None:
        group = self.stack[-1]
        if _CLOSING.get(group.kind) != closing:
            expected = f"; `{_CLOSING[group.kind]}` is expected" if group.kind in _CLOSING else ""
            raise script_error(f"`{closing}` has no opening bracket{expected}", self.line)
        self.stack.pop()
        self._add(GroupForm(group.kind, tuple(group.forms), group.line))

    def _add(self, form: Form) -> None:
        while self.stack[-1].kind == "'":
            form = GroupForm("'", (form,), self.stack.pop().line)
        self.stack[-1].forms.append(form)

    def _read_string(self) -> str:
        start_line, parts = self.line, []
        while True:
            part = _STRING.match(self.text, self.at)
            if part is None:
                raise script_error("a string is never closed", start_line)
            self._advance(part.end())
            parts.append(part[1])
            if part[2] == '"':
                return "".join(parts)
            parts.append(_ESCAPES.get(part[2][1], part[2][1]))


def _atom(token: str, line: int) -> Form:
    if token in _WORDS:
        return Literal(_WORDS[token], line)
    if token[0] == ":" and len(token) > 1:
        return Literal(Keyword(token[1:]), line)
    if _BEGINS_NUMBER.match(token):
        return Literal(_ale_number(token, line), line)
    return Symbol(token, line)


def _ale_number(token: str, line: int) -> int | float | Fraction:
    if len(token) > _DIGITS_MAX:
        raise script_error("a number has too many digits", line)
    if not token.isascii():
        raise script_error(f"{token!r} is not a number", line)
    if _INTEGER.fullmatch(token):
        return int(token)
    if _PREFIXED.fullmatch(token):
        return int(token, 0)
    ratio = _RATIO.fullmatch(token)
    if ratio and int(ratio[2]):
        whole = Fraction(int(ratio[1]), int(ratio[2]))
        return whole.numerator if whole.denominator == 1 else whole
    if _DECIMAL.fullmatch(token):
        number = float(token)
        if number not in (float("inf"), float("-inf")):
            return number
    raise script_error(f"{token!r} is not a number", line)


def script_error(reason: str, line: int, hint: str = "") -> BadScript:
    """Make the error for a script that cannot be read or compiled."""
    return bad_script("ale", reason, line=line, hint=hint)
