"""Expressions in CEL, compiled once and evaluated on JSON.

A result may share parts with the bound values. Change neither in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from weft.conditions.budget import Evaluation, EvaluationFault, StepsUsedUp
from weft.conditions.cel.emit import Emitter, Run, bound_path
from weft.conditions.cel.parse import parse
from weft.conditions.cel.reads import ExpressionReads
from weft.conditions.cel.values import to_json
from weft.conditions.failures import combine_errors, evaluation_failed, shorten, too_many_steps
from weft.conditions.paths import Path

CACHED_MAX: Final = 4_096


class Expression:
    """A compiled expression: the names and paths it reads, and its value for given bindings."""

    __slots__ = ("_converts", "_run", "_slots", "names", "paths", "text")

    def __init__(self, text: str, tree: Any, paths: Iterable[Path], *, exact_division: bool = False) -> None:
        emitter = Emitter(exact_division=exact_division)
        self.text = text
        self.paths = frozenset(paths)
        self.names = frozenset(path[0] for path in self.paths)
        self._run: Run = emitter.emit(tree, {})
        self._slots = emitter.slots
        # The value at a path is JSON already.
        self._converts = bound_path(tree, {}) is None

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """Return the value as JSON.

        Raises:
            EvaluationFailed: a field is missing, a value has the wrong type, or the budget is exceeded.
        """
        return self.evaluate_in(Evaluation(bindings))

    def evaluate_in(self, frame: Evaluation) -> Any:
        """Return the value as JSON, within the remaining steps of an evaluation."""
        frame.slots = [None] * self._slots
        try:
            value = self._run(frame)
            return to_json(frame, value) if self._converts else value
        except EvaluationFault as fault:
            raise evaluation_failed(fault, self.text, frame.bindings, self.paths) from None
        except StepsUsedUp:
            raise too_many_steps(self.text, frame.bindings, self.paths) from None

    def __repr__(self) -> str:
        return f"Expression({shorten(self.text)!r})"


def compile_expression(text: str) -> Expression:
    """Compile a CEL expression. The same text is compiled once.

    Raises:
        BadExpression: lists every error in the text, with positions.
    """
    return _compiled(text, exact_division=False)


def compile_comparison(text: str) -> Expression:
    """Compile the expression of a cross-node comparison, where ``/`` between integers is exact."""
    return _compiled(text, exact_division=True)


@lru_cache(maxsize=CACHED_MAX)
def _compiled(text: str, *, exact_division: bool) -> Expression:
    tree = parse(text)
    reads = ExpressionReads(text)
    reads.visit(tree)
    if reads.errors:
        raise combine_errors(reads.errors)
    return Expression(text, tree, reads.paths, exact_division=exact_division)
