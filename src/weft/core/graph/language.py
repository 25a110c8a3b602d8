"""The interface with which the compiler parses expressions and finds the names that they use. Pure.

Expressions have their own language (the ``conditions`` package). The compiler receives it as an ``ExpressionLanguage``,
so that the core does not depend on it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import msgspec

from weft.core.findings import At


class Uses(Protocol):
    """The names and paths that one expression uses."""

    @property
    def names(self) -> Collection[str]:
        """The free names: ``output``, ``state``, an ``as`` name."""
        ...

    @property
    def paths(self) -> Collection[tuple[str, ...]]:
        """The paths from each name, as far as they are literal: ("nodes", "score", "output")."""
        ...

    @property
    def mentions_error(self) -> bool:
        """Whether the expression names ``error`` or ``state._last_error``."""
        ...


class Fault(msgspec.Struct, frozen=True):
    """One error in an expression. ``at``: the place inside it, if it is a JSON value."""

    code: str
    message: str
    at: At = ()
    hint: str = ""


class Unreadable(Exception):
    """An expression does not parse. ``faults`` lists its errors."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


class ExpressionLanguage(Protocol):
    """Parses expressions without evaluating them. Each method raises ``Unreadable`` if the source does not parse."""

    def condition(self, source: Any, /) -> Uses:
        """Read CEL text or a condition object."""
        ...

    def expression(self, source: str, /) -> Uses:
        """Read one CEL expression, without ``${}``."""
        ...

    def template(self, source: Any, /) -> Uses:
        """Read a JSON value in which strings may contain ``${CEL}``."""
        ...
