"""The special forms of Ale, which bind names or do not evaluate all of their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft.scripts.ale.calls import call_value
from weft.scripts.ale.compiler import Compiler, Frame, LexicalScope, Node
from weft.scripts.ale.meter import AleFault
from weft.scripts.ale.reader import Form, GroupForm, Literal, Symbol, script_error
from weft.scripts.ale.values import Closure, FunctionShape, Keyword, equal_ale_values

Special = Callable[[Compiler, GroupForm, LexicalScope], Node]


def _name_of(form: Form) -> str:
    if type(form) is not Symbol:
        raise script_error("a name is expected", form.line)
    return form.name


def _form_parts(form: GroupForm, count_min: int, usage: str) -> Sequence[Form]:
    rest = form.forms[1:]
    if len(rest) < count_min:
        raise script_error("the form is incomplete", form.line, f"Write `{usage}`.")
    return rest


# Functions and names


def _lambda(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    parameters, *body = _form_parts(form, 2, "(lambda (a b) …)")
    if type(parameters) is not GroupForm or parameters.kind not in "([":
        raise script_error("the parameters of `lambda` must be in parentheses", form.line, "Write `(lambda (a b) …)`.")
    names = [_name_of(parameter) for parameter in parameters.forms]
    rest = len(names) > 1 and names[-2] == "."
    if rest:
        del names[-2]
    if len(set(names)) < len(names) or "." in names:
        raise script_error("two parameters have the same name", parameters.line)
    shape = compiler.function(names, body, scope, rest=rest)
    return lambda frame: _make_closure(shape, frame)


def _make_closure(shape: FunctionShape, frame: Frame) -> Closure:
    frame[0].bytes_left -= 128
    return Closure(shape, frame)


def _bindings(form: GroupForm, usage: str) -> list[tuple[str, Form]]:
    """Read bindings: ``([name expr] …)``, or a single ``[name expr]``."""
    binding = _form_parts(form, 2, usage)[0]
    if type(binding) is not GroupForm or binding.kind not in "([":
        raise script_error("bindings are expected", binding.line, f"Write `{usage}`.")
    pairs = (binding,) if binding.kind == "[" and binding.forms and type(binding.forms[0]) is Symbol else binding.forms
    bindings = []
    for pair in pairs:
        if type(pair) is not GroupForm or pair.kind not in "([" or len(pair.forms) != 2:
            raise script_error("a binding must be a name and a value", pair.line, f"Write `{usage}`.")
        bindings.append((_name_of(pair.forms[0]), pair.forms[1]))
    return bindings


def _let_in_order(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    steps: list[tuple[int, Node]] = []
    scope = scope.with_names({})
    for name, value in _bindings(form, "(let* ([a 1] [b (+ a 1)]) …)"):
        node = compiler.compile(value, scope)
        slot = scope.function.slot()
        scope.names[name] = slot
        steps.append((slot, node))
    return _bind(steps, compiler.sequence(form.forms[2:], scope))


def _let(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    pairs = _bindings(form, "(let ([a 1] [b 2]) …)")
    nodes = [compiler.compile(value, scope) for _, value in pairs]
    names = {name: scope.function.slot() for name, _ in pairs}
    if len(names) < len(pairs):
        raise script_error("a name is bound twice", form.line, "Use `let*` to bind one after the other.")
    steps = list(zip(names.values(), nodes, strict=True))
    return _bind(steps, compiler.sequence(form.forms[2:], scope.with_names(names)))


def _let_rec(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    pairs = _bindings(form, "(let-rec ([f (lambda (n) …)]) …)")
    inner = scope.with_names({name: scope.function.slot() for name, _ in pairs})
    steps = [(inner.names[name], compiler.compile(value, inner)) for name, value in pairs]
    return _bind(steps, compiler.sequence(form.forms[2:], inner))


def _bind(steps: list[tuple[int, Node]], body: Node) -> Node:
    def run(frame: Frame) -> Any:
        for slot, node in steps:
            frame[slot] = node(frame)
        return body(frame)

    return run


def _begin(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    return compiler.sequence(form.forms[1:], scope)


# Choices. Only ``false`` is false.


def _if(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    rest = _form_parts(form, 2, "(if test then else)")
    if len(rest) > 3:
        raise script_error("`if` takes a test and one or two values", form.line, "Write `(if test then else)`.")
    test, then = compiler.compile(rest[0], scope), compiler.compile(rest[1], scope)
    other = compiler.sequence(rest[2:], scope)
    return lambda frame: then(frame) if test(frame) is not False else other(frame)


def _when(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    rest = _form_parts(form, 1, "(when test …)")
    test, body = compiler.compile(rest[0], scope), compiler.sequence(rest[1:], scope)
    return lambda frame: body(frame) if test(frame) is not False else None


def _unless(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    rest = _form_parts(form, 1, "(unless test …)")
    test, body = compiler.compile(rest[0], scope), compiler.sequence(rest[1:], scope)
    return lambda frame: body(frame) if test(frame) is False else None


def _check_clauses(clauses: Sequence[Form], usage: str) -> list[GroupForm]:
    for clause in clauses:
        if type(clause) is not GroupForm or clause.kind not in "([" or not clause.forms:
            raise script_error("a clause must be a test and a value in brackets", clause.line, f"Write `{usage}`.")
    return [clause for clause in clauses if type(clause) is GroupForm]


def _cond(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    arms: list[tuple[Node, Node]] = []
    for clause in _check_clauses(form.forms[1:], "(cond [test value] [:else value])"):
        test = clause.forms[0]
        always = type(test) is Symbol and test.name == "else" and scope.find("else") is None
        condition = compiler.compile(Literal(True, clause.line) if always else test, scope)
        arms.append((condition, compiler.sequence(clause.forms[1:], scope)))

    def run(frame: Frame) -> Any:
        for test, body in arms:
            if test(frame) is not False:
                return body(frame)
        return None

    return run


def _case(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    usage = '(case value ["a" 1] [("b" "c") 2] [:else 3])'
    subject = compiler.compile(_form_parts(form, 1, usage)[0], scope)
    arms: list[tuple[list[Node] | None, Node]] = []
    for clause in _check_clauses(form.forms[2:], usage):
        test = clause.forms[0]
        tests: list[Node] | None = None
        if type(test) is GroupForm and test.kind == "(":
            tests = [compiler.compile(part, scope) for part in test.forms]
        elif not (type(test) is Literal and type(test.value) is Keyword and test.value == "else"):
            tests = [compiler.compile(test, scope)]
        arms.append((tests, compiler.sequence(clause.forms[1:], scope)))

    def run(frame: Frame) -> Any:
        value = subject(frame)
        for tests, body in arms:
            if tests is None or any(equal_ale_values(frame[0], value, test(frame)) for test in tests):
                return body(frame)
        fault = AleFault("no clause of `case` matches")
        fault.line = form.line
        raise fault

    return run


def _and(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    nodes = [compiler.compile(part, scope) for part in form.forms[1:]]

    def run(frame: Frame) -> Any:
        value: Any = True
        for node in nodes:
            value = node(frame)
            if value is False:
                return value
        return value

    return run


def _or(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    nodes = [compiler.compile(part, scope) for part in form.forms[1:]]

    def run(frame: Frame) -> Any:
        for node in nodes:
            value = node(frame)
            if value is not False:
                return value
        return False

    return run


# Threading: each form receives the value of the form before it, as its first or last argument.


def _threading(*, first: bool) -> Special:
    def compiled(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
        value, *steps = _form_parts(form, 1, "(-> value (f 1) (g 2))")
        for step in steps:
            parts = step.forms if type(step) is GroupForm and step.kind == "(" and step.forms else (step,)
            threaded = (parts[0], value, *parts[1:]) if first else (*parts, value)
            value = GroupForm("(", threaded, step.line)
        return compiler.compile(value, scope)

    return compiled


# Errors. A limit cannot be caught.


class _Catch:
    def __init__(self, slot: int, test: Node | None, body: Node) -> None:
        self.slot = slot
        self.test = test
        self.body = body


def _is_clause(form: Form, name: str) -> bool:
    return type(form) is GroupForm and bool(form.forms) and type(form.forms[0]) is Symbol and form.forms[0].name == name


def _catch(compiler: Compiler, clause: GroupForm, scope: LexicalScope) -> _Catch:
    usage = "(catch [problem] …)"
    bound = _form_parts(clause, 1, usage)[0]
    if type(bound) is not GroupForm or len(bound.forms) not in (1, 2):
        raise script_error("`catch` must bind a name", clause.line, f"Write `{usage}`.")
    test = compiler.compile(bound.forms[1], scope) if len(bound.forms) == 2 else None
    slot = scope.function.slot()
    body = compiler.sequence(clause.forms[2:], scope.with_names({_name_of(bound.forms[0]): slot}))
    return _Catch(slot, test, body)


def _try(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    body, catches = [], []
    for part in form.forms[1:]:
        if type(part) is GroupForm and _is_clause(part, "catch"):
            catches.append(_catch(compiler, part, scope))
        else:
            body.append(part)
    attempt = compiler.sequence(body, scope)

    def run(frame: Frame) -> Any:
        meter = frame[0]
        frames = meter.frames
        try:
            return attempt(frame)
        except AleFault as fault:
            meter.charge(20)
            meter.frames = frames  # the fault left calls that counted towards the depth
            for catch in catches:
                if catch.test is None or call_value(meter, catch.test(frame), [fault.message]) is not False:
                    frame[catch.slot] = fault.message
                    return catch.body(frame)
            raise

    return run


def _quote(compiler: Compiler, form: GroupForm, scope: LexicalScope) -> Node:
    rest = _form_parts(form, 1, "(quote value)")
    return compiler.compile(GroupForm("'", (rest[0],), form.line), scope)


SPECIAL: Final[Mapping[str, Special]] = {
    "lambda": _lambda,
    "let": _let,
    "let*": _let_in_order,
    "let-rec": _let_rec,
    "begin": _begin,
    "if": _if,
    "when": _when,
    "unless": _unless,
    "cond": _cond,
    "case": _case,
    "and": _and,
    "or": _or,
    "->": _threading(first=True),
    "->>": _threading(first=False),
    "try": _try,
    "quote": _quote,
}
