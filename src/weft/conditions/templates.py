"""Templates: JSON whose strings are literal, except for ``${CEL}`` expressions.

A string that is exactly one ``${…}`` keeps the type of its value. Inside a longer text, a value becomes its JSON, and
a string has no quotes. ``$${`` is a literal ``${``. Keys, numbers and booleans are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from weft.conditions.budget import Evaluation, StepsUsedUp
from weft.conditions.expressions import CACHED_MAX, Expression, compile_expression
from weft.conditions.failures import (
    BadExpression,
    EvaluationFailed,
    ExpressionError,
    combine_errors,
    join_path,
    shorten,
    too_many_steps,
)
from weft.conditions.paths import Path
from weft.core.values import DEPTH_MAX, encode, encode_trusted
from weft.errors import WeftError

CHARS_MAX: Final = 100_000

Fill = Callable[[Evaluation], Any]


class Template:
    """A compiled template: the names and paths it reads, and its value for given bindings."""

    __slots__ = ("_fill", "names", "paths")

    def __init__(self, fill: Fill, expressions: list[Expression]) -> None:
        self._fill = fill
        self.paths = frozenset(path for expression in expressions for path in expression.paths)
        self.names = frozenset(path[0] for path in self.paths)

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """Fill the template. All its expressions share one budget.

        Raises:
            EvaluationFailed: an expression in the template failed.
        """
        return self._fill(Evaluation(bindings))


def compile_template(value: Any) -> Template:
    """Compile a template from any JSON value.

    Raises:
        BadExpression: lists all errors in all expressions; the ``path`` of each is its location in ``value``.
        BadValue: the value is not JSON.
    """
    if not isinstance(value, str):
        encode_trusted(value, what="a template holds")
    compiler = _Compiler()
    fill = compiler.compile(value, "", 0)
    if compiler.errors:
        raise combine_errors(compiler.errors)
    return Template(fill, compiler.expressions)


class _Compiler:
    def __init__(self) -> None:
        self.errors: list[ExpressionError] = []
        self.expressions: list[Expression] = []

    def compile(self, value: Any, path: str, depth: int) -> Fill:
        assert depth <= DEPTH_MAX, "encode refuses deeper values"
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, list | tuple):
            return _fill_list([self.compile(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(value)])
        if isinstance(value, Mapping):
            return _fill_object(
                {str(name): self.compile(part, join_path(path, str(name)), depth + 1) for name, part in value.items()}
            )
        return lambda _frame: value

    def _text(self, text: str, path: str) -> Fill:
        try:
            pieces = _pieces(text)
        except BadExpression as error:
            self.errors += [each.inside(path) for each in error.errors]
            return lambda _frame: None
        self.expressions += [piece for piece in pieces if isinstance(piece, Expression)]
        if len(pieces) == 1:
            return _fill_one(pieces[0])
        return _fill_text(text, pieces)


@lru_cache(maxsize=CACHED_MAX)
def _pieces(text: str) -> tuple[str | Expression, ...]:
    """Split a text into literal pieces and compiled expressions."""
    if len(text) > CHARS_MAX and "${" in text:
        message = f"the text has {len(text):,} characters; with `${{…}}` in it the limit is {CHARS_MAX:,}."
        raise combine_errors([ExpressionError("expression.too_long", message, None, shorten(text))])
    pieces: list[str | Expression] = []
    errors: list[ExpressionError] = []
    literal, at = "", 0
    while (start := text.find("${", at)) >= 0:
        if text.startswith("$", start - 1) and start > at:
            literal, at = f"{literal}{text[at:start]}{{", start + 2
            continue
        end = _closing(text, start + 2)
        if end < 0:
            errors.append(ExpressionError("expression.unclosed", "`${` is not closed.", start, text, hint=_ESCAPE))
            break
        literal += text[at:start]
        if literal:
            pieces.append(literal)
        literal, at = "", end + 1
        try:
            pieces.append(compile_expression(text[start + 2 : end]))
        except BadExpression as error:
            errors += error.errors
    if errors:
        raise combine_errors(errors)
    literal += text[at:]
    return (*pieces, literal) if literal or not pieces else tuple(pieces)


_ESCAPE = "Write `$${` for a literal `${`."


def _closing(text: str, at: int) -> int:
    """Return the position of the ``}`` that closes a ``${``, or -1. Skips those in maps and strings."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char in "'\"":
            at = _string_end(text, at)
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return -1


def _string_end(text: str, start: int) -> int:
    """Return the position after a CEL string, which may be raw (without escapes) or triple-quoted."""
    quote = text[start] * 3 if text.startswith(text[start] * 3, start) else text[start]
    raw = start > 0 and text[start - 1] in "rR"
    at = start + len(quote)
    while at < len(text):
        if text[at] == "\\" and not raw:
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return at


def _fill_one(piece: str | Expression) -> Fill:
    if isinstance(piece, Expression):
        return piece.evaluate_in
    return lambda _frame: piece


def _fill_text(text: str, pieces: tuple[str | Expression, ...]) -> Fill:
    def fill(frame: Evaluation) -> str:
        texts = [piece if isinstance(piece, str) else _as_text(piece, piece.evaluate_in(frame)) for piece in pieces]
        try:
            frame.charge(sum(map(len, texts)) >> 4)
        except StepsUsedUp:
            raise too_many_steps(text, frame.bindings, _paths(pieces)) from None
        return "".join(texts)

    return fill


def _paths(pieces: tuple[str | Expression, ...]) -> list[Path]:
    return [path for piece in pieces if isinstance(piece, Expression) for path in piece.paths]


def _as_text(piece: Expression, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode(value, what=f"`{shorten(piece.text)}` yields").decode()
    except WeftError as error:
        raise EvaluationFailed(error.message, expression=piece.text, hint=error.hint) from None


def _fill_list(parts: list[Fill]) -> Fill:
    return lambda frame: [part(frame) for part in parts]


def _fill_object(parts: dict[str, Fill]) -> Fill:
    return lambda frame: {name: part(frame) for name, part in parts.items()}
