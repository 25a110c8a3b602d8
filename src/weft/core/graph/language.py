"""What the compiler must know of an expression: that it parses, and what it looks at. Pure.

Expressions have a language of their own (the `conditions` package); the compiler is given it as a `Language`, so that
the core depends on none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import msgspec

from weft.core.findings import At


class Uses(Protocol):
    """What one expression looks at."""

    @property
    def names(self) -> Collection[str]:
        """The free names in it: `output`, `state`, an `as` name."""
        ...

    @property
    def paths(self) -> Collection[tuple[str, ...]]:
        """What it follows from each name, as far as that is written out: ("nodes", "score", "output")."""
        ...

    @property
    def mentions_error(self) -> bool:
        """Whether it names `error` or `state._last_error`."""
        ...


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with an expression; `at`: where inside it, if it is a JSON value."""

    code: str
    message: str
    at: At = ()
    hint: str = ""


class Unreadable(Exception):
    """An expression that does not parse, with everything that is wrong with it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


class ExpressionLanguage(Protocol):
    """Reads expressions without evaluating them. Each method raises `Unreadable` for what does not parse."""

    def condition(self, source: Any, /) -> Uses:
        """CEL text or a condition object."""
        ...

    def expression(self, source: str, /) -> Uses:
        """One CEL expression, without `${}`."""
        ...

    def template(self, source: Any, /) -> Uses:
        """A JSON value in which strings may hold `${CEL}`."""
        ...
