"""Compiled conditions of every kind: the names and paths they read, and their result for given bindings.

A condition yields true or false; anything else is an error. A composite evaluates its parts in order and stops as soon
as the result is known. An error in an evaluated part is an error of the composite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from weft.conditions import sandbox
from weft.conditions.budget import BudgetExceeded, Evaluation, EvaluationFault
from weft.conditions.cel.survey import Path
from weft.conditions.cel.values import MISSING, kind
from weft.conditions.comparisons import OPERATORS, UNARY, aggregate, only
from weft.conditions.expressions import Expression, failure, too_much
from weft.conditions.failures import EvaluationFailed, cut
from weft.conditions.jsonpaths import Query, follow
from weft.conditions.schemas import Schema
from weft.conditions.seen import SEEN_MAX, bounded, field_text, look
from weft.core.values import shown

Judge = Callable[[Evaluation, dict[str, Any]], bool]
TEXT_MAX: Final = 1_000
_LAST_ERROR = ("state", "_last_error")


class ConditionResult(NamedTuple):
    """The result of a condition, and the values that it depends on, by path. Long values are shortened for logs."""

    value: bool
    seen: dict[str, Any]


class Condition:
    """A compiled condition.

    `mentions_error`: the condition reads `error` or `state._last_error`. `needs_shell`: the condition runs a sandbox,
    which blocks for up to a second, so a pure decision must not evaluate it.
    """

    __slots__ = ("judge", "mentions_error", "names", "needs_shell", "paths", "text")

    def __init__(self, text: str, judge: Judge, paths: Iterable[Path], *, needs_shell: bool = False) -> None:
        self.text = text
        self.judge = judge
        self.paths = frozenset(paths)
        self.names = frozenset(path[0] for path in self.paths)
        self.needs_shell = needs_shell
        self.mentions_error = "error" in self.names or any(path[:2] == _LAST_ERROR for path in self.paths)

    def evaluate(self, bindings: Mapping[str, Any]) -> ConditionResult:
        """Evaluate the condition.

        Raises:
            EvaluationFailed: a field is missing, types do not fit, the result is not a bool, or the budget is exceeded.
        """
        seen: dict[str, Any] = {}
        return ConditionResult(self.judge(Evaluation(bindings), seen), seen)

    def __repr__(self) -> str:
        return f"Condition({cut(self.text)!r})"


def constant(value: bool) -> Condition:  # noqa: FBT001  # the value is the condition
    """Make the condition `when: true` or `when: false`."""
    return Condition("true" if value else "false", lambda _frame, _seen: value, ())


def from_expression(expression: Expression) -> Condition:
    """Make a condition from CEL, which must yield a bool."""

    def judge(frame: Evaluation, seen: dict[str, Any]) -> bool:
        value = expression.evaluate_in(frame)
        if type(value) is not bool:
            raise _no_bool(expression.text, value, look(frame.bindings, expression.paths))
        _note(seen, look(frame.bindings, expression.paths))
        return value

    return Condition(expression.text, judge, expression.paths)


def from_comparison_text(expression: Expression) -> Condition:
    """Make a condition from the expression of a cross-node comparison: `current.output` is the node's own output."""
    inner = from_expression(expression)
    paths = [path[1:] or ("output",) if path[0] == "current" else path for path in expression.paths]

    def judge(frame: Evaluation, seen: dict[str, Any]) -> bool:
        bindings = frame.bindings
        here = {"output": bindings["output"]} if "output" in bindings else {}
        frame.bindings = {**bindings, "current": here}
        try:
            return inner.judge(frame, seen)
        finally:
            frame.bindings = bindings

    return Condition(expression.text, judge, paths)


def from_schema(schema: Schema, *, fits: bool) -> Condition:
    """Make a condition that checks whether the output fits a schema, or does not."""
    text = f"{'schema' if fits else 'not_schema'}: {schema.text}"

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        value = _output(frame)
        _note(seen, {"output": bounded(value)})
        return schema.fits(frame, value) is fits

    return _guarded(text, test, [("output",)])


class Comparison(NamedTuple):
    """An operator, its aggregate if it has one, and the value to compare with."""

    aggregate: str
    operator: str
    value: Any

    def holds(self, frame: Evaluation, found: Any) -> bool:
        if self.aggregate:
            found = aggregate(frame, self.aggregate, found)
        return OPERATORS[self.operator](frame, found, self.value)

    def __str__(self) -> str:
        operator = f"{self.aggregate} {self.operator}" if self.aggregate else self.operator
        return operator if self.operator in UNARY and self.value is True else f"{operator} {shown(self.value)}"


def from_query(query: Query, comparison: Comparison) -> Condition:
    """Make a condition that compares the matches of a JSONPath in the output."""
    takes_list = comparison.aggregate or query.single or query.length or comparison.operator == "contains"
    takes_list = takes_list or (comparison.operator in ("==", "!=") and type(comparison.value) is list)

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        found = query.find(frame, _output(frame))
        if found is not MISSING:
            _note(seen, {query.text: bounded(found)})
        if not takes_list:
            # `exists` and `empty` test all matches; other operators take one value.
            several = comparison.operator in UNARY and len(found) > 1
            found = found if several else only(found, comparison.operator)
        return comparison.holds(frame, found)

    return _guarded(f"{query.text} {comparison}", test, [("output", *_until_index(query.plain or ()))])


class Side(NamedTuple):
    """One side of a cross-node comparison: a literal, or a path from a bound name."""

    path: tuple[str | int, ...] = ()
    value: Any = None

    def read(self, frame: Evaluation, seen: dict[str, Any]) -> Any:
        if not self.path:
            return self.value
        root, *rest = self.path
        bindings = frame.bindings
        start = bindings.get(str(root), bindings.get("ctx") if root == "nodes" else None)
        found = follow(start, rest)
        if found is not MISSING:
            _note(seen, {self.text: bounded(found)})
        return found

    @property
    def text(self) -> str:
        if not self.path:
            return shown(self.value)
        root, *rest = self.path
        return str(root) + "".join(f"[{piece}]" if isinstance(piece, int) else field_text(piece) for piece in rest)


def from_sides(left: Side, operator: str, right: Side) -> Condition:
    """Make a condition that compares two values. A missing value is an error, except for `exists` and `empty`."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        a, b = left.read(frame, seen), right.read(frame, seen)
        for side, value in ((left, a), (right, b)):
            if value is MISSING and operator not in UNARY:
                raise EvaluationFault(f"there is no `{side.text}`", path=side.text)
        return OPERATORS[operator](frame, a, b)

    paths = [tuple(_until_index(side.path)) for side in (left, right) if side.path]
    return _guarded(f"{left.text} {operator} {right.text}", test, paths)


def from_code(code: sandbox.Code, limits: sandbox.SandboxLimits) -> Condition:
    """Make a condition from sandboxed Python. `context` maps names of other nodes to their outputs."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        output = _output(frame)
        context = frame.bindings.get("nodes", frame.bindings.get("ctx", {}))
        value = sandbox.run_code(code.text, output, context, limits)
        if type(value) is not bool:
            raise EvaluationFault(f"`evaluate` returned {kind(value)}, not true or false")
        _note(seen, {"output": bounded(output)})
        return value

    return _guarded("python", test, code.paths, needs_shell=True)


def all_of(parts: list[Condition]) -> Condition:
    """Make a condition that is true if all parts are. Evaluates them in order, up to the first that is false."""

    def judge(frame: Evaluation, seen: dict[str, Any]) -> bool:
        return all(part.judge(frame, seen) for part in parts)

    return _composite("all", parts, judge)


def any_of(parts: list[Condition]) -> Condition:
    """Make a condition that is true if any part is. Evaluates them in order, up to the first that is true."""

    def judge(frame: Evaluation, seen: dict[str, Any]) -> bool:
        return any(part.judge(frame, seen) for part in parts)

    return _composite("any", parts, judge)


def inverse(part: Condition) -> Condition:
    """Make a condition that is true if the given one is false."""
    return _composite("not", [part], lambda frame, seen: not part.judge(frame, seen))


def _composite(word: str, parts: list[Condition], judge: Judge) -> Condition:
    text = cut(f"{word}({', '.join(cut(part.text, TEXT_MAX // 4) for part in parts[:SEEN_MAX])})", TEXT_MAX)
    paths = [path for part in parts for path in part.paths]
    return Condition(text, judge, paths, needs_shell=any(part.needs_shell for part in parts))


def _guarded(text: str, test: Judge, paths: Iterable[Path], *, needs_shell: bool = False) -> Condition:
    """Wrap a test so that its faults are reported with the text of the condition and the values it read."""
    reads = frozenset(paths)

    def judge(frame: Evaluation, seen: dict[str, Any]) -> bool:
        try:
            return test(frame, seen)
        except EvaluationFault as fault:
            raise failure(fault, text, frame.bindings, reads) from None
        except BudgetExceeded:
            raise too_much(text, frame.bindings, reads) from None

    return Condition(text, judge, reads, needs_shell=needs_shell)


def _output(frame: Evaluation) -> Any:
    try:
        return frame.bindings["output"]
    except KeyError:
        raise EvaluationFault("there is no `output` here", path="output") from None


def _no_bool(text: str, value: Any, seen: dict[str, Any]) -> EvaluationFailed:
    return EvaluationFailed(
        f"`{cut(text)}` yielded {kind(value)} {shown(bounded(value))}, and a condition yields true or false.",
        expression=text,
        seen=seen,
        hint="Compare it: `x != null`, `x != 0`, `size(x) > 0`.",
    )


def _note(seen: dict[str, Any], more: dict[str, Any]) -> None:
    if len(seen) < SEEN_MAX:
        seen.update(more)


def _until_index(path: Iterable[str | int]) -> Iterable[str]:
    for piece in path:
        if isinstance(piece, int):
            return
        yield piece
