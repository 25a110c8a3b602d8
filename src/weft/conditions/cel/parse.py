"""Text to syntax tree, by cel-expr-python's parser; errors are told in a sentence with a position.

The parser bounds nesting at 32 levels. Two things it does not bound are refused before it sees the text: its length,
and `optMap`, which doubles the tree each time it is chained.
"""

from __future__ import annotations

import re
import threading
from functools import cache
from typing import Any, Final

from weft.conditions.cel.tree import read_tree
from weft.conditions.failures import BadExpression, ExpressionError, cut, refusal

CHARS_MAX: Final = 10_000
_DEPTH: Final = "too deeply nested; the limit is 32 levels."

_REPORT = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_TOKEN = re.compile(r"(?:input|at:?) '(.*)'(?: expecting.*)?$")
_DOUBLING = re.compile(r"\.\s*(opt(?:Flat)?Map)\s*\(")
_HINTS = {
    "and": "CEL writes `&&`.",
    "or": "CEL writes `||`.",
    "not": "CEL writes `!`.",
    "if": "CEL writes `condition ? a : b`.",
    "is": "CEL writes `==`.",
    "=": "To compare, write `==`.",
    "$": "This is CEL as it stands: write it without `${ }`.",
    ";": "An expression is one value; there are no statements.",
    "!in": "CEL writes `!(a in b)`.",
}
_lock = threading.Lock()


def parse(text: str) -> Any:
    """The syntax tree of an expression.

    Raises:
        BadExpression: it is not CEL, too long, or nested too deeply.
    """
    if len(text) > CHARS_MAX:
        raise _bad("too_long", f"the expression has {len(text):,} characters; the limit is {CHARS_MAX:,}.", cut(text))
    if not text.strip():
        raise _bad("syntax", "the expression is empty.", text)
    if doubling := _DOUBLING.search(text):
        hint = "Write `has(a.b) ? … : …`, or `a.?b.orValue(…)`."
        raise _bad("unsupported", f"`{doubling[1]}` is not supported.", text, doubling.start(1), hint)
    try:
        with _lock:
            serialized = _environment().compile(text, disable_check=True).serialize()
    except (RuntimeError, TypeError) as error:  # TypeError: a lone surrogate
        raise refusal([_error_from(str(error), text)]) from None
    return read_tree(serialized)


@cache
def _environment() -> Any:
    # 50 MB that `import weft` must not load; its stubs are not marked as such.
    from cel_expr_python import cel  # type: ignore[import-untyped]  # noqa: PLC0415
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional  # type: ignore[import-untyped]  # noqa: PLC0415

    extensions = [ext_bindings.ExtBindings(), ext_math.ExtMath(), ext_optional.ExtOptional()]
    return cel.NewEnv(extensions=extensions)


def _error_from(report: str, text: str) -> ExpressionError:
    """The parser's first complaint; those after it are about its recovery."""
    if "recursion" in report:
        return ExpressionError("expression.too_deep", f"the expression is {_DEPTH}", None, text)
    found = _REPORT.search(report)
    if found is None:
        return ExpressionError("expression.syntax", "the expression cannot be read.", None, text)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    line, column = int(found[1]), int(found[2])
    position = min(len(text), starts[min(line, len(starts)) - 1] + column - 1)
    message = found[3].removesuffix(" [INVALID_ARGUMENT]")
    if not message.startswith("Syntax error"):
        return ExpressionError("expression.syntax", f"{message.rstrip('.')}.", position, text)
    token = _TOKEN.search(message)
    if position >= len(text) or token is None:
        return ExpressionError("expression.syntax", "the expression ends too early.", position, text)
    return ExpressionError("expression.syntax", _unexpected(token[1]), position, text, hint=_hint(text, position))


def _unexpected(token: str) -> str:
    if token[:1] in "'\"":
        return "a string is not closed, or has an escape that CEL does not know."
    return f"`{token.strip()}` is unexpected here."


def _hint(text: str, position: int) -> str:
    before = re.search(r"(\w+)\s*$", text[:position])
    here = re.match(r"!in\b|\w+|\S", text[position:])
    word = here[0] if here else ""
    if before and before[1] in ("not", "if") and word not in _HINTS:
        word = before[1]
    return _HINTS.get(word, "")


def _bad(code: str, message: str, text: str, position: int | None = None, hint: str = "") -> BadExpression:
    return refusal([ExpressionError(f"expression.{code}", message, position, text, hint=hint)])
