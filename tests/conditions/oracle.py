"""Google's own CEL evaluator, as an oracle for ours, and random expressions to ask both.

The expressions keep to what both promise; `differences.py` has the rest.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.conditions.differences import COMPILE, EVALUATE

DATA: dict[str, Any] = {
    "n": 7,
    "m": -3,
    "zero": 0,
    "d": 2.5,
    "whole": 7.0,
    "s": "hello",
    "t": "",
    "u": "straße😀",
    "yes": True,
    "no": False,
    "nil": None,
    "l": [1, 2, 3],
    "names": ["ann", "bob", "hello"],
    "mixed": [1, "a", None, 2.5, [1], {"k": 1}, True],
    "empty": [],
    "o": {"a": 1, "b": {"c": "x", "list": [1, 2]}, "a-b": 5, "yes": True},
    "rows": [{"id": 1, "ok": True}, {"id": 2, "ok": False}, {"id": 3}],
}


@cache
def _environment() -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings  # type: ignore[import-untyped]

    extensions = [ext_strings.ExtStrings(), ext_math.ExtMath(), ext_optional.ExtOptional(), ext_bindings.ExtBindings()]
    return cel.NewEnv(extensions=extensions)


def ask(text: str, data: dict[str, Any]) -> Any:
    """The oracle's answer, or COMPILE or EVALUATE if it refuses the text or the values."""
    try:
        program = _environment().compile(text, disable_check=True)
    except (RuntimeError, TypeError):
        return COMPILE
    try:
        return _plain(program.eval(data=data))
    except (RuntimeError, TypeError, ValueError):
        return EVALUATE


def _plain(value: Any) -> Any:
    """A value without touching None, to which the library loses references on 3.11."""
    name = value.type().name()
    if name == "NULL":
        return None
    if name == "ERROR":
        raise ValueError(name)
    plain = value.value()
    if name.startswith("LIST"):
        return [_plain(part) for part in plain]
    if name.startswith("MAP"):
        return {key: _plain(part) for key, part in plain.items()}
    if name == "TYPE":
        raise ValueError(name)
    return plain


def _joined(*parts: Any) -> Any:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


integers = st.sampled_from(["n", "m", "zero", "l[0]", "o.a", "size(s)", "1", "-2", "10", 'o["a-b"]', "rows[1].id"])
doubles = st.sampled_from(["d", "whole", "1.5", "-0.25"])
strings = st.sampled_from(["s", "t", "u", "names[1]", "o.b.c", "'lo'", '"h"', "'ß'", "names[0] + s"])
bools = st.sampled_from(["yes", "no", "true", "false", "o.yes", "has(o.b)", "has(o.zzz)", "rows[0].ok", "rows[2].ok"])
lists = st.sampled_from(["l", "names", "mixed", "empty", "[n, m]", "o.b.list", "rows", "l + [4]", "names + empty"])
others = st.sampled_from(["nil", "o", "o.b", "null", "missing", "o.zzz", "l[9]", "{'k': n}"])
anything = st.one_of(integers, doubles, strings, bools, lists, others)


def _grow(inner: Any) -> Any:
    comparison = _joined("(", inner, st.sampled_from([" == ", " != ", " < ", " <= ", " > ", " >= "]), inner, ")")
    arithmetic = _joined("(", integers, st.sampled_from([" + ", " - ", " * ", " / ", " % "]), integers, ")")
    logic = _joined("(", inner, st.sampled_from([" && ", " || "]), inner, ")")
    member = _joined("(", inner, " in ", st.one_of(lists, st.just("o")), ")")
    choice = _joined("(", inner, " ? ", inner, " : ", inner, ")")
    quantified = _joined(
        lists, st.sampled_from([".all(x, ", ".exists(x, ", ".exists_one(x, "]), inner_of("x", inner), ")"
    )
    made = _joined(lists, st.sampled_from([".map(x, ", ".filter(x, "]), inner_of("x", inner), ")")
    bound = _joined("cel.bind(v, ", inner, ", ", inner_of("v", inner), ")")
    search = _joined(strings, st.sampled_from([".contains(", ".startsWith(", ".endsWith(", ".indexOf("]), strings, ")")
    held = _joined("o.?", st.sampled_from(["a", "b.?c", "zzz", "b.c", "zzz.?y"]), ".orValue(", inner, ")")
    return st.one_of(comparison, arithmetic, logic, member, choice, quantified, made, bound, search, held)


def inner_of(name: str, inner: Any) -> Any:
    """Expressions that may use a local variable."""
    own = st.sampled_from(
        [name, f"{name} == 2", f"{name} > 1", f"{name}.id", f"{name}.ok", f"[{name}]", f"{name} == s"]
    )
    return st.one_of(own, own, inner)


expressions = st.recursive(anything, _grow, max_leaves=6)
