"""Compiled conditions of every kind: the names and paths they read, and their result for given bindings.

A condition yields true or false; anything else is an error. A composite evaluates its parts in order and stops as soon
as the result is known. An error in an evaluated part is an error of the composite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from weft.conditions import sandbox
from weft.conditions.budget import Evaluation, EvaluationFault, StepsUsedUp
from weft.conditions.cel.values import MISSING, cel_type
from weft.conditions.expressions import Expression
from weft.conditions.failures import EvaluationFailed, evaluation_failed, shorten, too_many_steps
from weft.conditions.jsonpaths import Query, value_at
from weft.conditions.operators import OPERATORS, UNARY, aggregate, single_match
from weft.conditions.paths import Path, field_text
from weft.conditions.previews import SEEN_MAX, preview, preview_paths
from weft.conditions.schemas import Schema
from weft.core.values import preview_text

Test = Callable[[Evaluation, dict[str, Any]], bool]
TEXT_MAX: Final = 1_000
_LAST_ERROR = ("state", "_last_error")


class ConditionResult(NamedTuple):
    """The result of a condition, and the values that it depends on, by path. Long values are shortened for logs."""

    value: bool
    seen: dict[str, Any]


class Condition:
    """A compiled condition.

    ``mentions_error`` says that the condition reads ``error`` or ``state._last_error``. ``needs_sandbox`` says that it
    runs a sandbox, which blocks for up to a second, so a pure decision must not evaluate it.
    """

    __slots__ = ("mentions_error", "names", "needs_sandbox", "paths", "test", "text")

    def __init__(self, text: str, test: Test, paths: Iterable[Path], *, needs_sandbox: bool = False) -> None:
        self.text = text
        self.test = test
        self.paths = frozenset(paths)
        self.names = frozenset(path[0] for path in self.paths)
        self.needs_sandbox = needs_sandbox
        self.mentions_error = "error" in self.names or any(path[:2] == _LAST_ERROR for path in self.paths)

    def evaluate(self, bindings: Mapping[str, Any]) -> ConditionResult:
        """Evaluate the condition.

        Raises:
            EvaluationFailed: a field is missing, a value has the wrong type, the result is not a bool, or the budget
                is exceeded.
        """
        seen: dict[str, Any] = {}
        return ConditionResult(self.test(Evaluation(bindings), seen), seen)

    def __repr__(self) -> str:
        return f"Condition({shorten(self.text)!r})"


def constant_condition(value: bool) -> Condition:  # noqa: FBT001  # the value is the condition
    """Make the condition ``when: true`` or ``when: false``."""
    return Condition("true" if value else "false", lambda _frame, _seen: value, ())


def from_expression(expression: Expression) -> Condition:
    """Make a condition from a CEL expression that yields a bool."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        value = expression.evaluate_in(frame)
        if type(value) is not bool:
            raise _no_bool(expression.text, value, preview_paths(frame.bindings, expression.paths))
        _note(seen, preview_paths(frame.bindings, expression.paths))
        return value

    return Condition(expression.text, test, expression.paths)


def from_comparison_text(expression: Expression) -> Condition:
    """Make a condition from the expression of a cross-node comparison: ``current.output`` is the node's own output."""
    inner = from_expression(expression)
    paths = [path[1:] or ("output",) if path[0] == "current" else path for path in expression.paths]

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        bindings = frame.bindings
        current = {"output": bindings["output"]} if "output" in bindings else {}
        frame.bindings = {**bindings, "current": current}
        try:
            return inner.test(frame, seen)
        finally:
            frame.bindings = bindings

    return Condition(expression.text, test, paths)


def from_schema(schema: Schema, *, valid: bool) -> Condition:
    """Make a condition that is true if the output is valid under a schema or, with ``valid=False``, if it is not."""
    text = f"{'schema' if valid else 'not_schema'}: {schema.text}"

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        value = _output_binding(frame)
        _note(seen, {"output": preview(value)})
        return schema.is_valid(frame, value) is valid

    return _make_condition(text, test, [("output",)])


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
        return operator if self.operator in UNARY and self.value is True else f"{operator} {preview_text(self.value)}"


def from_query(query: Query, comparison: Comparison) -> Condition:
    """Make a condition that compares the matches of a JSONPath in the output."""
    takes_list = comparison.aggregate or query.single or query.length or comparison.operator == "contains"
    takes_list = takes_list or (comparison.operator in ("==", "!=") and type(comparison.value) is list)

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        found = query.find(frame, _output_binding(frame))
        if found is not MISSING:
            _note(seen, {query.text: preview(found)})
        if not takes_list:
            # ``exists`` and ``empty`` test all matches; other operators take one value.
            several = comparison.operator in UNARY and len(found) > 1
            found = found if several else single_match(found, comparison.operator)
        return comparison.holds(frame, found)

    return _make_condition(f"{query.text} {comparison}", test, [("output", *_until_index(query.pieces or ()))])


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
        found = value_at(start, rest)
        if found is not MISSING:
            _note(seen, {self.text: preview(found)})
        return found

    @property
    def text(self) -> str:
        if not self.path:
            return preview_text(self.value)
        root, *rest = self.path
        return str(root) + "".join(f"[{piece}]" if isinstance(piece, int) else field_text(piece) for piece in rest)


def from_sides(left: Side, operator: str, right: Side) -> Condition:
    """Make a condition that compares two values. A missing value is an error, except for ``exists`` and ``empty``."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        a, b = left.read(frame, seen), right.read(frame, seen)
        for side, value in ((left, a), (right, b)):
            if value is MISSING and operator not in UNARY:
                raise EvaluationFault(f"there is no `{side.text}`", path=side.text)
        return OPERATORS[operator](frame, a, b)

    paths = [tuple(_until_index(side.path)) for side in (left, right) if side.path]
    return _make_condition(f"{left.text} {operator} {right.text}", test, paths)


def from_code(code: sandbox.Code, limits: sandbox.SandboxLimits) -> Condition:
    """Make a condition from sandboxed Python. Its ``context`` maps the names of other nodes to their outputs."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        output = _output_binding(frame)
        context = frame.bindings.get("nodes", frame.bindings.get("ctx", {}))
        value = sandbox.run_code(code.text, output, context, limits)
        if type(value) is not bool:
            raise EvaluationFault(f"`evaluate` returned {cel_type(value)}, not true or false")
        _note(seen, {"output": preview(output)})
        return value

    return _make_condition("python", test, code.paths, needs_sandbox=True)


def all_of(parts: list[Condition]) -> Condition:
    """Make a condition that is true if all parts are. Evaluates them in order, up to the first that is false."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        return all(part.test(frame, seen) for part in parts)

    return _composite("all", parts, test)


def any_of(parts: list[Condition]) -> Condition:
    """Make a condition that is true if any part is. Evaluates them in order, up to the first that is true."""

    def test(frame: Evaluation, seen: dict[str, Any]) -> bool:
        return any(part.test(frame, seen) for part in parts)

    return _composite("any", parts, test)


def negate(part: Condition) -> Condition:
    """Make a condition that is true if ``part`` is false."""
    return _composite("not", [part], lambda frame, seen: not part.test(frame, seen))


def _composite(word: str, parts: list[Condition], test: Test) -> Condition:
    text = shorten(f"{word}({', '.join(shorten(part.text, TEXT_MAX // 4) for part in parts[:SEEN_MAX])})", TEXT_MAX)
    paths = [path for part in parts for path in part.paths]
    return Condition(text, test, paths, needs_sandbox=any(part.needs_sandbox for part in parts))


def _make_condition(text: str, test: Test, paths: Iterable[Path], *, needs_sandbox: bool = False) -> Condition:
    """Make a condition from a test whose faults are reported with the condition's text and the values it read."""
    reads = frozenset(paths)

    def guarded(frame: Evaluation, seen: dict[str, Any]) -> bool:
        try:
            return test(frame, seen)
        except EvaluationFault as fault:
            raise evaluation_failed(fault, text, frame.bindings, reads) from None
        except StepsUsedUp:
            raise too_many_steps(text, frame.bindings, reads) from None

    return Condition(text, guarded, reads, needs_sandbox=needs_sandbox)


def _output_binding(frame: Evaluation) -> Any:
    try:
        return frame.bindings["output"]
    except KeyError:
        raise EvaluationFault("there is no `output` here", path="output") from None


def _no_bool(text: str, value: Any, seen: dict[str, Any]) -> EvaluationFailed:
    return EvaluationFailed(
        f"`{shorten(text)}` yielded {cel_type(value)} {preview_text(preview(value))} instead of true or false.",
        expression=text,
        seen=seen,
        hint="Compare the value: `x != null`, `x != 0`, `size(x) > 0`.",
    )


def _note(seen: dict[str, Any], more: dict[str, Any]) -> None:
    if len(seen) < SEEN_MAX:
        seen.update(more)


def _until_index(path: Iterable[str | int]) -> Iterable[str]:
    for piece in path:
        if isinstance(piece, int):
            return
        yield piece
