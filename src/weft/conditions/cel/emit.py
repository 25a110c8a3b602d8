"""Syntax tree to closures: each node becomes a function of the frame.

Built once per expression; what can be settled from the text is: where a path leads, which function is meant, which
local variable has which slot, what a round of a loop costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.conditions.budget import FAULT_STEPS, Exhausted, Fault, Frame
from weft.conditions.cel.functions import FUNCTIONS, METHODS
from weft.conditions.cel.operators import BINARY, UNARY, divide_exactly, index_optional
from weft.conditions.cel.survey import Path, fixed_path, function_name, is_function
from weft.conditions.cel.tree import Call, Const, Fold, Ident, ListOf, MapOf, Select
from weft.conditions.cel.values import MISSING, NONE, TYPES, Optional, kind
from weft.conditions.seen import path_text

Run = Callable[[Frame], Any]
_FIELDS_SHOWN = 8


class Emitter:
    """Emits one expression; `slots` says how many local variables its frame needs."""

    def __init__(self, *, exact_division: bool = False) -> None:
        self.exact_division = exact_division
        self.slots = 0
        self.nodes = 0

    def emit(self, node: Any, scope: Mapping[str, int]) -> Run:
        self.nodes += 1
        match node:
            case Const(value=value):
                return lambda _frame: value
            case Ident(name=name) if name in scope:
                return _local(scope[name])
            case Ident() | Select() | Call(target=None, function="_[_]") if (
                path := plain_path(node, scope)
            ) is not None:
                return read_path(path)
            case Ident(name=name):
                return _type_or_name(name)
            case Select(operand=operand, field=field, tests=tests):
                return _select(self.emit(operand, scope), field, _text_of(node), tests=tests)
            case Call():
                return self._call(node, scope)
            case ListOf(items=items, optional=optional):
                return _list([self.emit(item, scope) for item in items], optional)
            case MapOf(entries=entries):
                return _map([(self.emit(key, scope), self.emit(value, scope), may) for key, value, may in entries])
            case Fold():
                return self._fold(node, scope)
        raise AssertionError(f"the survey let {type(node).__name__} pass")

    def _call(self, node: Call, scope: Mapping[str, int]) -> Run:
        names = frozenset(scope)
        name = function_name(node, names)
        match name:
            case "_&&_" | "_||_":
                left, right = (self.emit(arg, scope) for arg in node.args)
                return _logic(left, right, settles=name == "_||_")
            case "_?_:_":
                return _choice(*(self.emit(arg, scope) for arg in node.args))
            case "or" | "orValue" if not is_function(node, names):
                held, other = self.emit(node.target, scope), self.emit(node.args[0], scope)
                return _otherwise(held, other, METHODS[name].run)
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
        return _apply(run, args, where)

    def _fold(self, node: Fold, scope: Mapping[str, int]) -> Run:
        accu, var = self.slots, self.slots + 1
        self.slots += 2
        init = self.emit(node.init, scope)
        within = {**scope, node.accu: accu}
        result = self.emit(node.result, within)
        if node.source == ListOf((), frozenset(), node.source.at):
            return _bind(accu, init, result)
        source = self.emit(node.source, scope)
        before = self.nodes
        inner = {**within, node.var: var}
        append = self._append(node.step, node.accu, inner) if isinstance(node.init, ListOf) else None
        if append is not None:
            return _collect(source, (accu, var), append, 1 + self.nodes - before)
        step = self.emit(node.step, inner)
        match node.condition:
            case Call(function="@not_strictly_false", args=(condition,)):
                go_on = self.emit(condition, inner)
                return _quantify(source, (accu, var), (init, go_on, step, result), 1 + self.nodes - before)
            case _:
                return _count(source, (accu, var), (init, step, result), 1 + self.nodes - before)

    def _append(self, step: Any, accu: str, scope: Mapping[str, int]) -> Callable[[Frame, list[Any]], None] | None:
        """The step of `map` and `filter`, which only ever add to their list, so that it need not be copied."""
        match step:
            case Ident(name=name) if name == accu:
                return lambda _frame, _made: None
            case Call(function="_+_", args=(Ident(name=name), ListOf() as added)) if name == accu:
                items = self.emit(added, scope)
                return lambda frame, made: made.extend(items(frame))
            case Call(function="_?_:_", args=(condition, taken, other)):
                when = self.emit(condition, scope)
                add, otherwise = self._append(taken, accu, scope), self._append(other, accu, scope)
                if add is None or otherwise is None:
                    return None
                return _append_when(when, add, otherwise)
        return None


def plain_path(node: Any, scope: Mapping[str, int]) -> Path | None:
    """A path of fields and nothing else: no `has`, no `.?`; types and local variables are none."""
    path = fixed_path(node, frozenset(scope))
    if path is None or (len(path) == 1 and path[0] in TYPES):
        return None
    probe = node
    while not isinstance(probe, Ident):
        if isinstance(probe, Select) and not probe.tests:
            probe = probe.operand
        elif isinstance(probe, Call) and probe.function == "_[_]":
            probe = probe.args[0]
        else:
            return None
    return path


def _text_of(node: Any) -> str:
    """How a path is written, also one that begins with a local variable; for messages."""
    path = fixed_path(node, frozenset())
    return path_text(path) if path and not path[0].startswith(("@", "#")) and path[0] not in TYPES else ""


def read_path(path: Path) -> Run:
    """Read a path of fields from the bound names."""
    root, *fields = path

    def run(frame: Frame) -> Any:
        value: Any = frame.bindings
        try:
            value = value[root]
            for field in fields:
                value = value[field]
        except (KeyError, TypeError, IndexError):
            raise _nowhere(frame.bindings, path) from None
        return value

    return run


def _nowhere(bindings: Mapping[str, Any], path: Path) -> Fault:
    value: Any = bindings
    for at, field in enumerate(path):
        try:
            value = value[field]
        except (KeyError, TypeError, IndexError):
            text = path_text(path[: at + 1])
            if at == 0:
                return Fault(
                    f"there is no `{field}` here", path=text, hint=_fields(bindings).replace("It has", "There is")
                )
            return _no_field(value, field, path_text(path[:at]), text)
    return Fault("the value changed while it was read", path=path_text(path))


def _no_field(value: Any, field: str, owner: str, text: str) -> Fault:
    if isinstance(value, Mapping):
        hint = _fields(value)
        return Fault(f"`{owner}` has no field `{field}`" if owner else f"no field `{field}`", path=text, hint=hint)
    said = f"`{owner}` is {kind(value)}" if owner else f"it is {kind(value)}"
    return Fault(f"{said}, so it has no field `{field}`", path=text)


def _fields(value: Mapping[str, Any]) -> str:
    names = [str(name)[:40] for name, _ in zip(value, range(_FIELDS_SHOWN + 1), strict=False)]
    shown = ", ".join(f"`{name}`" for name in names[:_FIELDS_SHOWN])
    more = ", …" if len(names) > _FIELDS_SHOWN else ""
    return f"It has {shown}{more}." if names else "It is empty."


def _type_or_name(name: str) -> Run:
    """`string` or `map`: a type, unless somebody bound a value to that name."""
    return lambda frame: frame.bindings.get(name, TYPES[name])


def _local(slot: int) -> Run:
    def run(frame: Frame) -> Any:
        value = frame.slots[slot]
        if type(value) is Fault:
            raise value.with_traceback(None)  # it would grow with every round of a loop
        return value

    return run


def _select(operand: Run, field: str, text: str, *, tests: bool) -> Run:
    owner = text.rpartition(".")[0]

    def run(frame: Frame) -> Any:
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


def _apply(run: Callable[..., Any], args: list[Run], where: str) -> Run:
    def located(fault: Fault) -> Fault:
        fault.path = fault.path or where
        return fault

    def one(frame: Frame) -> Any:
        a = first(frame)
        try:
            return run(frame, a)
        except Fault as fault:
            raise located(fault) from None

    def two(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        try:
            return run(frame, a, b)
        except Fault as fault:
            raise located(fault) from None

    def many(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        try:
            return run(frame, *values)
        except Fault as fault:
            raise located(fault) from None

    if len(args) == 1:
        (first,) = args
        return one
    if len(args) == 2:
        first, second = args
        return two
    return many


def _logic(left: Run, right: Run, *, settles: bool) -> Run:
    """`||` (true settles it) and `&&` (false does): a fault on one side does not matter if the other side settles."""
    sign = "||" if settles else "&&"

    def run(frame: Frame) -> bool:
        fault: Fault | None = None
        value: object
        try:
            value = left(frame)
            if value is settles:
                return settles
            if type(value) is not bool:
                fault = Fault(f"`{sign}` takes bools, not {kind(value)}")
        except Fault as raised:
            frame.charge(FAULT_STEPS)
            fault = raised
        value = right(frame)
        if value is settles:
            return settles
        if fault is not None:
            raise fault
        if value is not (not settles):
            raise Fault(f"`{sign}` takes bools, not {kind(value)}")
        return not settles

    return run


def _choice(condition: Run, taken: Run, other: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = condition(frame)
        if type(value) is not bool:
            raise Fault(f"`? :` asks for a bool, not {kind(value)}")
        return taken(frame) if value else other(frame)

    return run


def _otherwise(held: Run, other: Run, run: Callable[..., Any]) -> Run:
    """`or` and `orValue` look at the other value only if there is none."""

    def choose(frame: Frame) -> Any:
        value = held(frame)
        return run(frame, value, other(frame) if value is NONE else value)

    return choose


def _list(items: list[Run], optional: frozenset[int]) -> Run:
    if not optional:
        return lambda frame: [item(frame) for item in items]

    def run(frame: Frame) -> list[Any]:
        made = []
        for at, item in enumerate(items):
            value = item(frame)
            if at in optional:
                value = _held(value)
            if value is not MISSING:
                made.append(value)
        return made

    return run


def _map(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key_of, value_of, may_miss in entries:
            key, value = key_of(frame), value_of(frame)
            if type(key) is not str:
                raise Fault(f"the keys of a map are strings, not {kind(key)}")
            if key in made:
                raise Fault(f"the map has the key `{key[:40]}` twice")
            if may_miss:
                value = _held(value)
            if value is not MISSING:
                made[key] = value
        return made

    return run


def _held(value: Any) -> Any:
    if type(value) is Optional:
        return value.value
    raise Fault(f"`?` takes an optional value like `a.?b`, not {kind(value)}")


def _bind(accu: int, init: Run, result: Run) -> Run:
    def run(frame: Frame) -> Any:
        try:
            frame.slots[accu] = init(frame)
        except Fault as fault:
            frame.slots[accu] = fault
        return result(frame)

    return run


def _elements(frame: Frame, source: Run) -> list[Any]:
    value = source(frame)
    if type(value) is list:
        return value
    if isinstance(value, Mapping):
        frame.charge(len(value) >> 2)
        return list(value)
    raise Fault(f"a loop takes a list or a map, not {kind(value)}")


def _collect(source: Run, slots: tuple[int, int], append: Callable[[Frame, list[Any]], None], steps: int) -> Run:
    def run(frame: Frame) -> list[Any]:
        made: list[Any] = []
        for item in _elements(frame, source):
            frame.left -= steps
            if frame.left < 0:
                raise Exhausted
            frame.slots[slots[1]] = item
            append(frame, made)
        return made

    return run


def _append_when(
    when: Run, add: Callable[[Frame, list[Any]], None], otherwise: Callable[[Frame, list[Any]], None]
) -> Callable[[Frame, list[Any]], None]:
    def append(frame: Frame, made: list[Any]) -> None:
        value = when(frame)
        if type(value) is not bool:
            raise Fault(f"`filter` asks for a bool, not {kind(value)}")
        if value:
            add(frame, made)
        else:
            otherwise(frame, made)

    return append


def _quantify(source: Run, slots: tuple[int, int], parts: tuple[Run, Run, Run, Run], steps: int) -> Run:
    """`all` and `exists`: a fault is kept in the accumulator, where a later element may settle the answer."""
    accu, var = slots
    init, go_on, step, result = parts

    def run(frame: Frame) -> Any:
        elements = _elements(frame, source)
        frame.slots[accu] = init(frame)
        for item in elements:
            frame.left -= steps
            if frame.left < 0:
                raise Exhausted
            frame.slots[var] = item
            try:
                if go_on(frame) is False:
                    break
            except Fault:
                frame.charge(FAULT_STEPS)
            try:
                frame.slots[accu] = step(frame)
            except Fault as fault:
                frame.charge(FAULT_STEPS)
                frame.slots[accu] = fault
        return result(frame)

    return run


def _count(source: Run, slots: tuple[int, int], parts: tuple[Run, Run, Run], steps: int) -> Run:
    """`exists_one`, and any other loop that looks at every element."""
    accu, var = slots
    init, step, result = parts

    def run(frame: Frame) -> Any:
        elements = _elements(frame, source)
        frame.slots[accu] = init(frame)
        for item in elements:
            frame.left -= steps
            if frame.left < 0:
                raise Exhausted
            frame.slots[var] = item
            frame.slots[accu] = step(frame)
        return result(frame)

    return run
