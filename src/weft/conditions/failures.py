"""Errors in expressions and conditions, at compilation and at evaluation.

    ExpressionError     one error as a value, with code, message and position; a document loader collects several
    BadExpression       raised by ``compile_*``, with all errors in ``.errors``
    EvaluationFailed    raised by ``evaluate``, with the expression, the path that failed, and the values that it read

Messages use paths as they are written in documents (``output.score``). Long values are shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.conditions.budget import STEPS_MAX, EvaluationFault
from weft.conditions.paths import Path
from weft.conditions.previews import preview_paths
from weft.errors import BadValue, WeftError

_LINE_CHARS_MAX: Final = 100


class ExpressionError(msgspec.Struct, frozen=True):
    """One error in a text. ``position`` counts characters from 0; ``path`` locates the text within the condition."""

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
        """Return the error with its path prefixed by ``path``, the location of the condition in a document."""
        return msgspec.structs.replace(self, path=join_path(path, self.path))

    def __str__(self) -> str:
        message = f"{self.path}: {self.message}" if self.path else self.message
        if self.position is not None:
            message = f"{message}\n{self._caret()}"
        elif self.text:
            message = f"{message} (in `{shorten(self.text)}`)"
        return f"{message}\n{self.hint}" if self.hint else message

    def _caret(self) -> str:
        line = self.text.split("\n")[self.line - 1]
        start = max(0, self.column - 1 - _LINE_CHARS_MAX // 2)
        excerpt = line[start : start + _LINE_CHARS_MAX].replace("\t", " ")
        return f"    {excerpt}\n    {' ' * (self.column - 1 - start)}^"


class BadExpression(BadValue):
    """An expression, template or condition that cannot be compiled. ``errors`` lists all of its errors."""

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


def combine_errors(errors: Sequence[ExpressionError]) -> BadExpression:
    """Combine errors into one exception."""
    return BadExpression("\n".join(str(error) for error in errors), errors=errors)


class EvaluationFailed(WeftError):
    """An expression cannot be evaluated with the bound values, or exceeds its budget (``expression.limit``)."""

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


def evaluation_failed(
    fault: EvaluationFault, text: str, bindings: Mapping[str, Any], paths: Iterable[Path]
) -> EvaluationFailed:
    """Make the error for a fault, with the expression and the values that it read."""
    message = f"`{shorten(text)}` failed: {fault.message}."
    seen = preview_paths(bindings, paths)
    return EvaluationFailed(message, expression=text, path=fault.path, seen=seen, hint=fault.hint)


def too_many_steps(text: str, bindings: Mapping[str, Any], paths: Iterable[Path]) -> EvaluationFailed:
    """Make the error for an exceeded budget."""
    return EvaluationFailed(
        f"`{shorten(text)}` failed: it needs more than {STEPS_MAX:,} steps.",
        expression=text,
        seen=preview_paths(bindings, paths),
        hint="Compute the value in a step of the workflow instead.",
        code="expression.limit",
    )


def shorten(text: str, chars_max: int = 80) -> str:
    """Return a text on one line, with at most ``chars_max`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 3]}..."


def join_path(outer: str, inner: str) -> str:
    """Join two parts of a document path: ``all[1]``, ``when.schema``."""
    if not outer or not inner:
        return outer or inner
    return f"{outer}{inner}" if inner.startswith("[") else f"{outer}.{inner}"
