"""The budget of one evaluation, and the two errors that stop it.

Loops charge steps for each round, and functions for the text and lists that they read or make. A step takes about a
tenth of a microsecond and at most 64 bytes, so no expression and no data can block the engine for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

STEPS_MAX: Final = 1_000_000
DEPTH_MAX: Final = 200
FAULT_STEPS: Final = 40  # the cost of raising and catching an ``EvaluationFault``


class EvaluationFault(Exception):
    """An expression cannot be evaluated with these values.

    ``||``, ``&&``, ``all`` and ``exists`` ignore the fault if another term decides the result.
    """

    def __init__(self, message: str, *, path: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint


class StepsUsedUp(Exception):
    """The budget is used up. No operator catches this exception."""


class Evaluation:
    """The bound names, local variables and remaining steps of one evaluation."""

    __slots__ = ("bindings", "left", "slots")

    def __init__(self, bindings: Mapping[str, Any], slots: int = 0) -> None:
        self.bindings = bindings
        self.left = STEPS_MAX
        self.slots: list[Any] = [None] * slots

    def charge(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise StepsUsedUp
