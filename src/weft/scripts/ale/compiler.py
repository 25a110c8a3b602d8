"""Compile forms to Python closures. Names are resolved, arities checked and costs counted before anything runs.

A compiled form is a function of a frame, ``[meter, outer frame, values…]``. The names that a body binds are slots of
the frame of its function. A body has no loops, so each slot is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.core.findings import did_you_mean
from weft.scripts.ale.calls import call_value, look_up
from weft.scripts.ale.meter import FRAMES_MAX, AleFault
from weft.scripts.ale.procedures import PROCEDURES, make_object
from weft.scripts.ale.reader import Form, GroupForm, Literal, Symbol, script_error
from weft.scripts.ale.values import FunctionShape, Keyword, Procedure, make_list

Frame = list[Any]
Node = Callable[[Frame], Any]
NESTING_MAX: Final = 80
_FIRST_SLOT: Final = 2
_CALL_FRAMES: Final = (
    4  # Python frames around the body of a function: the call, a procedure like ``map``, and two for ``apply``
)


class Function:
    """The function whose body is being compiled."""

    def __init__(self, outer: LexicalScope | None) -> None:
        self.outer = outer
        self.slots = _FIRST_SLOT
        self.cost = 1
        self.height = 1

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1


class LexicalScope:
    """The names that are bound at one place in the body of a function."""

    def __init__(self, function: Function, names: dict[str, int]) -> None:
        self.function = function
        self.names = names

    def with_names(self, names: dict[str, int]) -> LexicalScope:
        return LexicalScope(self.function, {**self.names, **names})

    def find(self, name: str) -> tuple[int, int] | None:
        """Return how many functions further out a name is bound, and its slot there; None if it is not bound."""
        scope: LexicalScope | None = self
        out = 0
        while scope is not None:
            if name in scope.names:
                return out, scope.names[name]
            scope = scope.function.outer
            out += 1
        return None

    def visible(self) -> set[str]:
        outer = self.function.outer
        return set(self.names) | (outer.visible() if outer else set())


class Compiler:
    """Compiles one script. ``level`` is how deeply the current form is nested."""

    def __init__(self, special: Mapping[str, Callable[[Compiler, GroupForm, LexicalScope], Node]]) -> None:
        self.level = 0
        self.special = special

    def function(
        self, parameters: Sequence[str], body: Sequence[Form], outer: LexicalScope | None, *, rest: bool
    ) -> FunctionShape:
        """Compile a function. Closures are made from the result when the script runs."""
        inner = Function(outer)
        scope = LexicalScope(inner, {name: inner.slot() for name in parameters})
        level, self.level = self.level, 0
        shape = FunctionShape(self.sequence(body, scope), len(parameters), rest=rest)
        self.level = level
        shape.slots = inner.slots - _FIRST_SLOT - len(parameters)
        shape.cost = inner.cost
        shape.height = inner.height + _CALL_FRAMES
        return shape

    def sequence(self, forms: Sequence[Form], scope: LexicalScope) -> Node:
        """Compile several forms. The value is that of the last form, or null if there is none."""
        nodes = [self.compile(form, scope) for form in forms]
        if not nodes:
            return lambda _frame: None
        if len(nodes) == 1:
            return nodes[0]
        first, last = nodes[:-1], nodes[-1]

        def run(frame: Frame) -> Any:
            for node in first:
                node(frame)
            return last(frame)

        return run

    def compile(self, form: Form, scope: LexicalScope) -> Node:
        """Compile one form."""
        self.level += 1
        function = scope.function
        function.cost += 1
        function.height = max(function.height, self.level * 2)
        if self.level > NESTING_MAX or function.height > FRAMES_MAX // 2:
            raise script_error("the script is nested too deeply", form.line)
        node = self._compile(form, scope)
        self.level -= 1
        return node

    def _compile(self, form: Form, scope: LexicalScope) -> Node:
        if type(form) is Literal:
            value = form.value
            return lambda _frame: value
        if type(form) is Symbol:
            return self._name(form, scope)
        assert type(form) is GroupForm
        if form.kind == "'":
            quoted = _quoted(form.forms[0])
            return lambda _frame: quoted
        if form.kind == "[":
            return self._vector(form, scope)
        if form.kind == "{":
            if len(form.forms) % 2:
                raise script_error("an object needs a value for every key", form.line)
            return _procedure_call(make_object, [self.compile(part, scope) for part in form.forms], form.line)
        return self._call(form, scope)

    def _name(self, symbol: Symbol, scope: LexicalScope) -> Node:
        place = scope.find(symbol.name)
        if place is not None:
            return _variable(*place)
        if symbol.name in PROCEDURES:
            procedure = PROCEDURES[symbol.name]
            return lambda _frame: procedure
        if symbol.name in self.special:
            raise script_error(f"`{symbol.name}` is not a value", symbol.line, f"Write `({symbol.name} …)`.")
        known = sorted(scope.visible() | PROCEDURES.keys() | self.special.keys())
        raise script_error(
            f"there is no name `{symbol.name}`", symbol.line, did_you_mean(symbol.name, known, quote="`")
        )

    def _vector(self, form: GroupForm, scope: LexicalScope) -> Node:
        nodes = [self.compile(part, scope) for part in form.forms]

        def run(frame: Frame) -> Any:
            values = []
            for node in nodes:
                values.append(node(frame))  # noqa: PERF401  # a comprehension would add a frame
            frame[0].bytes_left -= 64 + 16 * len(values)
            return values

        return run

    def _call(self, form: GroupForm, scope: LexicalScope) -> Node:
        if not form.forms:
            return lambda _frame: None  # () is null
        head, *rest = form.forms
        if type(head) is Symbol:
            if head.name in self.special:
                return self.special[head.name](self, form, scope)
            if head.name in PROCEDURES and scope.find(head.name) is None:
                return self._procedure(PROCEDURES[head.name], rest, form.line, scope)
        nodes = [self.compile(part, scope) for part in rest]
        if type(head) is Literal and type(head.value) is Keyword and len(nodes) == 1:
            return _field(head.value, nodes[0], form.line)
        return _value_call(self.compile(head, scope), nodes, form.line)

    def _procedure(self, called: Procedure, rest: Sequence[Form], line: int, scope: LexicalScope) -> Node:
        error = called.arity_error(len(rest))
        if error:
            raise script_error(error, line)
        return _procedure_call(called.run, [self.compile(part, scope) for part in rest], line)


def _variable(out: int, slot: int) -> Node:
    if out == 0:
        return lambda frame: frame[slot]
    if out == 1:
        return lambda frame: frame[1][slot]

    def run(frame: Frame) -> Any:
        for _ in range(out):
            frame = frame[1]
        return frame[slot]

    return run


def _procedure_call(run: Callable[..., Any], nodes: list[Node], line: int) -> Node:
    """Compile a call of a procedure. One and two arguments have code of their own, as most calls have no more."""
    if len(nodes) == 1:
        (one,) = nodes

        def call_one(frame: Frame) -> Any:
            try:
                return run(frame[0], one(frame))
            except AleFault as fault:
                raise _with_line(fault, line) from None

        return call_one
    if len(nodes) == 2:
        left, right = nodes

        def call_two(frame: Frame) -> Any:
            try:
                return run(frame[0], left(frame), right(frame))
            except AleFault as fault:
                raise _with_line(fault, line) from None

        return call_two

    def call(frame: Frame) -> Any:
        try:
            arguments = []
            for node in nodes:
                arguments.append(node(frame))  # noqa: PERF401  # a comprehension would add a frame
            return run(frame[0], *arguments)
        except AleFault as fault:
            raise _with_line(fault, line) from None

    return call


def _value_call(head: Node, nodes: list[Node], line: int) -> Node:
    def call(frame: Frame) -> Any:
        try:
            called = head(frame)
            arguments = []
            for node in nodes:
                arguments.append(node(frame))  # noqa: PERF401  # a comprehension would add a frame
            return call_value(frame[0], called, arguments)
        except AleFault as fault:
            raise _with_line(fault, line) from None

    return call


def _field(key: Keyword, node: Node, line: int) -> Node:
    def call(frame: Frame) -> Any:
        try:
            return look_up(node(frame), key)
        except AleFault as fault:
            raise _with_line(fault, line) from None

    return call


def _with_line(fault: AleFault, line: int) -> AleFault:
    fault.line = fault.line or line
    return fault


def _quoted(form: Form) -> Any:
    """Return the value of a quoted form."""
    if type(form) is Literal:
        return form.value
    if type(form) is Symbol:
        raise script_error(f"the symbol `{form.name}` is not a value", form.line, f"Write `:{form.name}` or a string.")
    assert type(form) is GroupForm
    if form.kind == "'":
        raise script_error("a quote inside a quote is not a value", form.line)
    parts = [_quoted(part) for part in form.forms]
    if form.kind != "{":
        return make_list(parts) if form.kind == "(" else parts
    if len(parts) % 2 or not all(type(key) in (str, Keyword) for key in parts[::2]):
        raise script_error("an object needs keywords or strings for keys, and a value for each", form.line)
    return {str(parts[index]): parts[index + 1] for index in range(0, len(parts), 2)}
