"""Convert numbers to text, and evaluate ``format`` from CEL's string extension."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from weft.conditions.budget import DEPTH_MAX, Evaluation, EvaluationFault
from weft.conditions.cel.values import TypeName, cel_type, duration_text, timestamp_text

_PRECISION_MAX: Final = 1_000
_DIGITS_MAX: Final = 1_000
_TOO_BIG: Final = 10**_DIGITS_MAX
_PLACEHOLDER = re.compile(r"%(?:\.([0-9]{1,9}))?(.?)", re.DOTALL)
_RADIX = {"x": "x", "X": "X", "o": "o", "b": "b"}


def number_text(value: float) -> str:
    """Return a number as text: doubles as short as possible, and without a decimal point if they are whole."""
    if type(value) is int:
        if abs(value) >= _TOO_BIG:
            raise EvaluationFault(f"the integer has more than {_DIGITS_MAX:,} digits")
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def format_text(frame: Evaluation, template: Any, args: Any) -> str:
    """Evaluate ``"%s is %.2f".format([name, price])``, with ``%s %d %f %e %x %X %o %b %%``."""
    if type(template) is not str or type(args) is not list:
        raise EvaluationFault(f"`format` takes a list of values, not {cel_type(args)}")
    frame.charge(len(template))
    rest = iter(args)

    def fill(placeholder: re.Match[str]) -> str:
        if placeholder[2] == "%":
            return "%"
        try:
            value = next(rest)
        except StopIteration:
            raise EvaluationFault(f"`format` has too few values for `{placeholder[0]}`") from None
        text = _format_value(frame, value, placeholder[2], placeholder[1])
        frame.charge(1 + (len(text) >> 4))
        return text

    return _PLACEHOLDER.sub(fill, template)


def _format_value(frame: Evaluation, value: Any, letter: str, precision: str | None) -> str:
    digits = int(precision) if precision else 6
    if digits > _PRECISION_MAX:
        raise EvaluationFault(f"`format` writes at most {_PRECISION_MAX} digits")
    number = type(value) in (int, float)
    if letter == "s":
        return _as_text(frame, value, 0)
    if letter == "d" and number:
        return number_text(value)
    if letter in ("f", "e") and letter and number:
        try:
            return f"{float(value):.{digits}{letter}}"
        except OverflowError:
            raise EvaluationFault("the number is too large for a double") from None
    if letter in _RADIX and letter and type(value) is int and abs(value) < _TOO_BIG:
        return f"{value:{_RADIX[letter]}}"
    raise EvaluationFault(f"`format` cannot write {cel_type(value)} as `%{letter}`")


def _as_text(frame: Evaluation, value: Any, depth: int) -> str:
    frame.charge(10)
    if depth > DEPTH_MAX:
        raise EvaluationFault(f"the values are nested deeper than {DEPTH_MAX} levels")
    match value:
        case None:
            return "null"
        case str():
            frame.charge(len(value) >> 4)
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_text(value)
        case list():
            return f"[{', '.join(_as_text(frame, part, depth + 1) for part in value)}]"
        case Mapping():
            pairs = sorted((str(key), _as_text(frame, part, depth + 1)) for key, part in value.items())
            return f"{{{', '.join(f'{key}: {part}' for key, part in pairs)}}}"
        case datetime():
            return timestamp_text(value)
        case timedelta():
            return duration_text(value)
        case TypeName():
            return value.name
    raise EvaluationFault(f"`format` cannot write {cel_type(value)}")
