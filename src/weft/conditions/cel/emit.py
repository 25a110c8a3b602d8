"""Compile a syntax tree to closures: each node becomes a function of the evaluation.

This happens once per expression. What does not depend on values is resolved here: paths, functions, the slots of
local variables, and the cost of each round of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.conditions.budget import FAULT_STEPS, Evaluation, EvaluationFault, StepsUsedUp
from weft.conditions.cel.functions import FUNCTIONS, METHODS
from weft.conditions.cel.operators import BINARY, UNARY, divide_exactly, index_optional
from weft.conditions.cel.reads import fixed_path, is_function, qualified_function_name
from weft.conditions.cel.tree import BindNode, CallNode, ConstNode, IdentNode, ListNode, LoopNode, MapNode, SelectNode
from weft.conditions.cel.values import MISSING, NONE, TYPES, Optional, cel_type
from weft.conditions.paths import Path, path_text

Run = Callable[[Evaluation], Any]
_FIELDS_SHOWN = 8
_ROUND_STEPS = 2


class Emitter:
    """Compiles one expression. ``slots`` is the number of local variables that the expression needs."""

    def __init__(self, *, exact_division: bool = False) -> None:
        self.exact_division = exact_division
        self.slots = 0
        self.nodes = 0

    def emit(self, node: Any, scope: Mapping[str, Run]) -> Run:
        self.nodes += 1
        match node:
            case ConstNode(value=value):
                return lambda _frame: value
            case IdentNode(name=name) if name in scope:
                return scope[name]
            case IdentNode() | SelectNode() | CallNode(target=None, function="_[_]") if (
                path := bound_path(node, scope)
            ) is not None:
                return compile_path(path)
            case IdentNode(name=name):
                return _type_or_name(name)
            case SelectNode(operand=operand, field=field, tests=tests):
                return _select_field(self.emit(operand, scope), field, _text_of(node), tests=tests)
            case CallNode():
                return self._emit_call(node, scope)
            case ListNode(items=items, optional=optional):
                return _list([self.emit(item, scope) for item in items], optional)
            case MapNode(entries=entries):
                return _map([(self.emit(key, scope), self.emit(value, scope), may) for key, value, may in entries])
            case LoopNode():
                return self._emit_loop(node, scope)
            case BindNode():
                return self._emit_bind(node, scope)
        raise AssertionError(f"unexpected node {type(node).__name__} after the check")

    def _emit_call(self, node: CallNode, scope: Mapping[str, Run]) -> Run:
        names = frozenset(scope)
        name = qualified_function_name(node, names)
        match name:
            case "_&&_" | "_||_":
                return _logic_of_terms([self.emit(arg, scope) for arg in node.args], settles=name == "_||_")
            case "_?_:_":
                return _choice(*(self.emit(arg, scope) for arg in node.args))
            case "or" | "orValue" if not is_function(node, names):
                held, other = self.emit(node.target, scope), self.emit(node.args[0], scope)
                return _or_value(held, other, METHODS[name].run)
        if is_function(node, names):
            args = [self.emit(arg, scope) for arg in node.args]
            run = UNARY.get(name) or BINARY.get(name) or FUNCTIONS[name].run
        else:
            args = [self.emit(arg, scope) for arg in (node.target, *node.args)]
            run = METHODS[name].run
        if name == "_/_" and self.exact_division:
            run = divide_exactly
        operands = (node.target, *node.args) if node.target is not None else node.args
        where = next((text for operand in operands if (text := _text_of(operand))), "")
        return _apply_function(run, args, where)

    def _emit_loop(self, node: LoopNode, scope: Mapping[str, Run]) -> Run:
        source = self.emit(node.source, scope)
        slot = self._new_slot()
        inner = {**scope, node.var: _loop_variable(slot)}
        before = self.nodes
        test = None if node.test is None else _bool_test(node.kind, self.emit(node.test, inner))
        value = inner[node.var] if node.value is None else self.emit(node.value, inner)
        place = (slot, _ROUND_STEPS + self.nodes - before)
        if test is None:
            return _map_all(source, place, value)
        match node.kind:
            case "map" | "filter":
                return _map_some(source, place, test, value)
            case "exists_one":
                return _exists_one(source, place, test)
        return _quantify(source, place, test, settles=node.kind == "exists")

    def _emit_bind(self, node: BindNode, scope: Mapping[str, Run]) -> Run:
        value = self.emit(node.value, scope)
        slot = self._new_slot()
        return _bind(slot, value, self.emit(node.body, {**scope, node.var: _bound_variable(slot)}))

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1


def bound_path(node: Any, scope: Mapping[str, Run]) -> Path | None:
    """Return the path that a node reads if it has a bound name and fields only, else None.

    ``has``, ``.?``, types and local variables are not part of such a path.
    """
    path = fixed_path(node, frozenset(scope))
    if path is None or (len(path) == 1 and path[0] in TYPES):
        return None
    part = node
    while not isinstance(part, IdentNode):
        if isinstance(part, SelectNode) and not part.tests:
            part = part.operand
        elif isinstance(part, CallNode) and part.function == "_[_]":
            part = part.args[0]
        else:
            return None
    return path


def _text_of(node: Any) -> str:
    """Return the text of a path for messages. The path may begin with a local variable."""
    path = fixed_path(node, frozenset())
    return path_text(path) if path and path[0] not in TYPES else ""


def compile_path(path: Path) -> Run:
    """Compile a path of fields, starting at a bound name."""
    root, *fields = path

    def run(frame: Evaluation) -> Any:
        value: Any = frame.bindings
        try:
            value = value[root]
            for field in fields:
                value = value[field]
        except (KeyError, TypeError, IndexError):
            raise _path_fault(frame.bindings, path) from None
        return value

    return run


def _path_fault(bindings: Mapping[str, Any], path: Path) -> EvaluationFault:
    value: Any = bindings
    for at, field in enumerate(path):
        try:
            value = value[field]
        except (KeyError, TypeError, IndexError):
            text = path_text(path[: at + 1])
            if at == 0:
                return EvaluationFault(
                    f"there is no `{field}` here", path=text, hint=_field_names(bindings).replace("It has", "There is")
                )
            return _no_field(value, field, path_text(path[:at]), text)
    return EvaluationFault("the value changed while it was read", path=path_text(path))


def _no_field(value: Any, field: str, owner: str, text: str) -> EvaluationFault:
    if isinstance(value, Mapping):
        hint = _field_names(value)
        return EvaluationFault(
            f"`{owner}` has no field `{field}`" if owner else f"the value has no field `{field}`", path=text, hint=hint
        )
    subject = f"`{owner}`" if owner else "the value"
    return EvaluationFault(f"{subject} is {cel_type(value)}, so it has no field `{field}`", path=text)


def _field_names(value: Mapping[str, Any]) -> str:
    names = [str(name)[:40] for name, _ in zip(value, range(_FIELDS_SHOWN + 1), strict=False)]
    shown = ", ".join(f"`{name}`" for name in names[:_FIELDS_SHOWN])
    more = ", …" if len(names) > _FIELDS_SHOWN else ""
    return f"It has {shown}{more}." if names else "It is empty."


def _type_or_name(name: str) -> Run:
    """Compile a name like ``string`` or ``map``: the value bound to it, or else the type."""
    return lambda frame: frame.bindings.get(name, TYPES[name])


def _loop_variable(slot: int) -> Run:
    """Compile the variable of a loop."""
    return lambda frame: frame.slots[slot]


def _bound_variable(slot: int) -> Run:
    """Compile a variable of ``cel.bind``. Reading it raises the fault that evaluating its value raised."""

    def run(frame: Evaluation) -> Any:
        value = frame.slots[slot]
        if type(value) is EvaluationFault:
            raise value.with_traceback(None)  # a traceback would grow with every round of a loop
        return value

    return run


def _select_field(operand: Run, field: str, text: str, *, tests: bool) -> Run:
    owner = text.rpartition(".")[0]

    def run(frame: Evaluation) -> Any:
        value = operand(frame)
        if type(value) is Optional:
            found = index_optional(frame, value, field)
            return found is not NONE if tests else found
        if type(value) is dict or isinstance(value, Mapping):
            if tests:
                return field in value
            part = value.get(field, MISSING)
            if part is not MISSING:
                return part
        if tests and value is None:
            return False
        raise _no_field(value, field, owner, text)

    return run


def _apply_function(run: Callable[..., Any], args: list[Run], where: str) -> Run:
    def located(fault: EvaluationFault) -> EvaluationFault:
        fault.path = fault.path or where
        return fault

    def one(frame: Evaluation) -> Any:
        a = first(frame)
        try:
            return run(frame, a)
        except EvaluationFault as fault:
            raise located(fault) from None

    def two(frame: Evaluation) -> Any:
        a, b = first(frame), second(frame)
        try:
            return run(frame, a, b)
        except EvaluationFault as fault:
            raise located(fault) from None

    def many(frame: Evaluation) -> Any:
        values = [arg(frame) for arg in args]
        try:
            return run(frame, *values)
        except EvaluationFault as fault:
            raise located(fault) from None

    if len(args) == 1:
        (first,) = args
        return one
    if len(args) == 2:
        first, second = args
        return two
    return many


def _logic_of_terms(terms: list[Run], *, settles: bool) -> Run:
    """Compile ``||`` and ``&&``. A fault in one term is ignored if another term decides the result."""
    sign = "||" if settles else "&&"

    def run(frame: Evaluation) -> bool:
        fault: EvaluationFault | None = None
        for term in terms:
            try:
                value: object = term(frame)
                if value is settles:
                    return settles
                if type(value) is not bool:
                    fault = fault or EvaluationFault(f"`{sign}` takes bools, not {cel_type(value)}")
            except EvaluationFault as raised:
                frame.charge(FAULT_STEPS)
                fault = fault or raised
        if fault is not None:
            raise fault
        return not settles

    return run


def _choice(condition: Run, taken: Run, other: Run) -> Run:
    def run(frame: Evaluation) -> Any:
        value = condition(frame)
        if type(value) is not bool:
            raise EvaluationFault(f"`? :` takes a bool, not {cel_type(value)}")
        return taken(frame) if value else other(frame)

    return run


def _or_value(held: Run, other: Run, run: Callable[..., Any]) -> Run:
    """Compile ``or`` and ``orValue``, which evaluate the other value only if the first is missing."""

    def choose(frame: Evaluation) -> Any:
        value = held(frame)
        return run(frame, value, other(frame) if value is NONE else value)

    return choose


def _list(items: list[Run], optional: frozenset[int]) -> Run:
    if not optional:
        return lambda frame: [item(frame) for item in items]

    def run(frame: Evaluation) -> list[Any]:
        elements = []
        for at, item in enumerate(items):
            value = item(frame)
            if at in optional:
                value = _unwrap_optional(value)
            if value is not MISSING:
                elements.append(value)
        return elements

    return run


def _map(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Evaluation) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key_of, value_of, may_miss in entries:
            key, value = key_of(frame), value_of(frame)
            if type(key) is not str:
                raise EvaluationFault(f"the keys of a map are strings, not {cel_type(key)}")
            if key in fields:
                raise EvaluationFault(f"the map has the key `{key[:40]}` twice")
            if may_miss:
                value = _unwrap_optional(value)
            if value is not MISSING:
                fields[key] = value
        return fields

    return run


def _unwrap_optional(value: Any) -> Any:
    if type(value) is Optional:
        return value.value
    raise EvaluationFault(f"`?` takes an optional value like `a.?b`, not {cel_type(value)}")


def _bind(slot: int, value: Run, body: Run) -> Run:
    def run(frame: Evaluation) -> Any:
        try:
            frame.slots[slot] = value(frame)
        except EvaluationFault as fault:
            frame.slots[slot] = fault
        return body(frame)

    return run


def _elements_of(frame: Evaluation, source: Run) -> list[Any]:
    value = source(frame)
    if type(value) is list:
        return value
    if isinstance(value, Mapping):
        frame.charge(len(value) >> 2)
        return list(value)
    raise EvaluationFault(f"a loop takes a list or a map, not {cel_type(value)}")


def _bool_test(name: str, test: Run) -> Run:
    """Compile the test of a loop, which must yield a bool."""

    def run(frame: Evaluation) -> Any:
        value = test(frame)
        if type(value) is not bool:
            raise EvaluationFault(f"`{name}` takes a bool, not {cel_type(value)}")
        return value

    return run


# The slot of a loop's variable, and the steps that each round costs.
_Place = tuple[int, int]


def _map_all(source: Run, place: _Place, value: Run) -> Run:
    slot, steps = place

    def run(frame: Evaluation) -> list[Any]:
        results: list[Any] = []
        for item in _elements_of(frame, source):
            frame.left -= steps
            if frame.left < 0:
                raise StepsUsedUp
            frame.slots[slot] = item
            results.append(value(frame))
        return results

    return run


def _map_some(source: Run, place: _Place, test: Run, value: Run) -> Run:
    """Compile ``filter``, and ``map`` with a test."""
    slot, steps = place

    def run(frame: Evaluation) -> list[Any]:
        results: list[Any] = []
        for item in _elements_of(frame, source):
            frame.left -= steps
            if frame.left < 0:
                raise StepsUsedUp
            frame.slots[slot] = item
            if test(frame):
                results.append(value(frame))
        return results

    return run


def _exists_one(source: Run, place: _Place, test: Run) -> Run:
    slot, steps = place

    def run(frame: Evaluation) -> bool:
        count = 0
        for item in _elements_of(frame, source):
            frame.left -= steps
            if frame.left < 0:
                raise StepsUsedUp
            frame.slots[slot] = item
            count += test(frame)
        return count == 1

    return run


def _quantify(source: Run, place: _Place, test: Run, *, settles: bool) -> Run:
    """Compile ``exists`` and ``all``. A fault is raised at the end, unless a later element decides the result."""
    slot, steps = place

    def run(frame: Evaluation) -> bool:
        fault: EvaluationFault | None = None
        for item in _elements_of(frame, source):
            frame.left -= steps
            if frame.left < 0:
                raise StepsUsedUp
            frame.slots[slot] = item
            try:
                answer: object = test(frame)
                if answer is settles:
                    return settles
            except EvaluationFault as raised:
                frame.charge(FAULT_STEPS)
                fault = fault or raised
        if fault is not None:
            raise fault
        return not settles

    return run
