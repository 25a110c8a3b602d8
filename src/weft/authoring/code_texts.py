"""Find the texts in the code of a function: the names of inline steps are among them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def texts_of(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the texts in a function, and in the functions of the same package to which it refers."""
    waiting: list[Any] = [inspect.unwrap(function)]
    package, _, _ = waiting[0].__module__.partition(".")
    seen = set[FunctionType]()
    while waiting:
        found = waiting.pop()
        if not isinstance(found, FunctionType) or found in seen or found.__module__.partition(".")[0] != package:
            continue
        seen.add(found)
        for code in _codes(found.__code__):
            yield from (constant for constant in code.co_consts if isinstance(constant, str))
            waiting += [found.__globals__[name] for name in code.co_names if name in found.__globals__]
        waiting += [cell.cell_contents for cell in found.__closure__ or () if _is_filled(cell)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the name is bound later, or never
        return False
