"""What is wrong with an expression or condition: all its errors at compile time, the values at run time.

    ExpressionError     one error as a value: code, message, position; a document loader collects many
    BadExpression       raised by `compile_*`, with every error of what was given in `.errors`
    EvaluationFailed    raised by `evaluate`: the expression, the path that failed, and the values it saw

A failure is told in the words of the document (`output.score`), with values cut to a size that a log can keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from weft.errors import BadValue, WeftError

_LINE_CHARS_MAX: Final = 100


class ExpressionError(msgspec.Struct, frozen=True):
    """One error. `position` counts characters of `text` from 0; `path` says where in the condition `text` stands."""

    code: str
    message: str
    position: int | None = None
    text: str = ""
    path: str = ""
    hint: str = ""

    @property
    def line(self) -> int:
        """Counted from 1, as editors do."""
        return self.text.count("\n", 0, self.position or 0) + 1

    @property
    def column(self) -> int:
        """Counted from 1, as editors do."""
        at = self.position or 0
        return at - (self.text.rfind("\n", 0, at) + 1) + 1

    def inside(self, path: str) -> ExpressionError:
        """The same error, seen from a document that holds the condition at `path`."""
        return msgspec.structs.replace(self, path=join_path(path, self.path))

    def __str__(self) -> str:
        said = f"{self.path}: {self.message}" if self.path else self.message
        if self.position is not None:
            said = f"{said}\n{self._caret()}"
        elif self.text:
            said = f"{said} (in `{cut(self.text)}`)"
        return f"{said}\n{self.hint}" if self.hint else said

    def _caret(self) -> str:
        line = self.text.split("\n")[self.line - 1]
        start = max(0, self.column - 1 - _LINE_CHARS_MAX // 2)
        shown = line[start : start + _LINE_CHARS_MAX].replace("\t", " ")
        return f"    {shown}\n    {' ' * (self.column - 1 - start)}^"


class BadExpression(BadValue):
    """An expression, template or condition that cannot be compiled; `errors` has all that is wrong with it."""

    code = "expression.invalid"

    def __init__(
        self,
        message: str,
        *,
        errors: Sequence[ExpressionError] = (),
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.errors = tuple(errors)


def refusal(errors: Sequence[ExpressionError]) -> BadExpression:
    """All the errors as one exception."""
    return BadExpression("\n".join(str(error) for error in errors), errors=errors)


class EvaluationFailed(WeftError):
    """A well-formed expression that these values do not fit, or that was too much work (`expression.limit`)."""

    code = "expression.failed"

    def __init__(
        self,
        message: str,
        *,
        expression: str = "",
        path: str = "",
        seen: Mapping[str, Any] | None = None,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.expression = expression
        self.path = path
        self.seen = dict(seen or {})


def cut(text: str, chars_max: int = 80) -> str:
    """The text on one line, never longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 3]}..."


def did_you_mean(word: str, words: Sequence[str]) -> str:
    """A hint for a misspelt word, or nothing."""
    lowered = {known.lower(): known for known in words}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"Did you mean `{lowered[close[0]]}`?" if close else ""


def join_path(outer: str, inner: str) -> str:
    """Two pieces of a document path as one: `all[1]`, `when.schema`."""
    if not outer or not inner:
        return outer or inner
    return f"{outer}{inner}" if inner.startswith("[") else f"{outer}.{inner}"
