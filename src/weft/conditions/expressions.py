"""Expressions: CEL text, compiled once, evaluated on JSON.

Results share parts with the bound values, so neither may be changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from weft.conditions.budget import STEPS_MAX, BudgetExceeded, Evaluation, EvaluationFault
from weft.conditions.cel.emit import Emitter, Run, plain_path
from weft.conditions.cel.parse import parse
from weft.conditions.cel.survey import Path, Survey
from weft.conditions.cel.values import to_json
from weft.conditions.failures import EvaluationFailed, cut, refusal
from weft.conditions.seen import look

CACHED_MAX: Final = 4_096
NODE_ROOTS: Final = frozenset({"nodes", "ctx"})


class Expression:
    """A compiled expression: the names and paths it reads, and its value for given bindings."""

    __slots__ = ("_copies", "_run", "_slots", "names", "paths", "text")

    def __init__(self, text: str, tree: Any, paths: Iterable[Path], *, exact_division: bool = False) -> None:
        emitter = Emitter(exact_division=exact_division)
        self.text = text
        self.paths = frozenset(paths)
        self.names = frozenset(path[0] for path in self.paths)
        self._run: Run = emitter.emit(tree, {})
        self._slots = emitter.slots
        # The value at a path is already JSON.
        self._copies = plain_path(tree, {}) is None

    def evaluate(self, bindings: Mapping[str, Any]) -> Any:
        """Return the value as JSON.

        Raises:
            EvaluationFailed: a field is missing, types do not fit, or the budget is exceeded.
        """
        return self.evaluate_in(Evaluation(bindings))

    def evaluate_in(self, frame: Evaluation) -> Any:
        """Return the value as JSON, within the remaining steps of an evaluation."""
        frame.slots = [None] * self._slots
        try:
            value = self._run(frame)
            return to_json(frame, value) if self._copies else value
        except EvaluationFault as fault:
            raise failure(fault, self.text, frame.bindings, self.paths) from None
        except BudgetExceeded:
            raise too_much(self.text, frame.bindings, self.paths) from None

    def __repr__(self) -> str:
        return f"Expression({cut(self.text)!r})"


def compile_expression(text: str) -> Expression:
    """Compile a CEL expression. The same text is compiled once.

    Raises:
        BadExpression: lists every error in the text, with positions.
    """
    return _compiled(text, exact_division=False)


def compile_comparison(text: str) -> Expression:
    """Compile the expression of a cross-node comparison, where `/` between integers is exact."""
    return _compiled(text, exact_division=True)


@lru_cache(maxsize=CACHED_MAX)
def _compiled(text: str, *, exact_division: bool) -> Expression:
    tree = parse(text)
    survey = Survey(text)
    survey.visit(tree)
    if survey.errors:
        raise refusal(survey.errors)
    return Expression(text, tree, survey.paths, exact_division=exact_division)


def nodes_read(paths: Iterable[Path]) -> frozenset[str] | None:
    """Return the nodes whose outputs these paths read, or None if they may read the output of any node."""
    names: set[str] = set()
    for path in paths:
        if path[0] in NODE_ROOTS:
            if len(path) == 1:
                return None
            names.add(path[1])
    return frozenset(names)


def failure(fault: EvaluationFault, text: str, bindings: Mapping[str, Any], paths: Iterable[Path]) -> EvaluationFailed:
    """Make the error for a fault, with the expression and the values that it read."""
    message = f"`{cut(text)}` failed: {fault.message}."
    seen = look(bindings, paths)
    return EvaluationFailed(message, expression=text, path=fault.path, seen=seen, hint=fault.hint)


def too_much(text: str, bindings: Mapping[str, Any], paths: Iterable[Path]) -> EvaluationFailed:
    """Make the error for an exceeded budget."""
    return EvaluationFailed(
        f"`{cut(text)}` failed: it needs more than {STEPS_MAX:,} steps.",
        expression=text,
        seen=look(bindings, paths),
        hint="Do it in a step instead.",
        code="expression.limit",
    )
