"""Errors in expressions and conditions, at compilation and at evaluation.

    ExpressionError     one error as a value: code, message, position; a document loader collects several
    BadExpression       raised by `compile_*`, with all errors in `.errors`
    EvaluationFailed    raised by `evaluate`: the expression, the path that failed, and the values that it read

Messages use paths as they are written in documents (`output.score`). Long values are shortened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.errors import BadValue, WeftError

_LINE_CHARS_MAX: Final = 100


class ExpressionError(msgspec.Struct, frozen=True):
    """One error. `position` counts characters in `text`, from 0. `path` is the location of `text` in the condition."""

    code: str
    message: str
    position: int | None = None
    text: str = ""
    path: str = ""
    hint: str = ""

    @property
    def line(self) -> int:
        """Return the line number, from 1."""
        return self.text.count("\n", 0, self.position or 0) + 1

    @property
    def column(self) -> int:
        """Return the column within the line, from 1."""
        at = self.position or 0
        return at - (self.text.rfind("\n", 0, at) + 1) + 1

    def inside(self, path: str) -> ExpressionError:
        """Return the error with its path prefixed by `path`, the location of the condition in a document."""
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
    """An expression, template or condition that cannot be compiled. `errors` lists everything wrong with it."""

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
    """Combine all errors into one exception."""
    return BadExpression("\n".join(str(error) for error in errors), errors=errors)


class EvaluationFailed(WeftError):
    """An expression failed: the values do not fit it, or it exceeded its budget (`expression.limit`)."""

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
    """Return the text on one line, cut to a length."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 3]}..."


def join_path(outer: str, inner: str) -> str:
    """Join two pieces of a document path: `all[1]`, `when.schema`."""
    if not outer or not inner:
        return outer or inner
    return f"{outer}{inner}" if inner.startswith("[") else f"{outer}.{inner}"
