"""No expression, path, schema or value crashes the process or holds it for long."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import scale
from tests.scale import MARKS, scaled
from weft.conditions import (
    BadExpression,
    EvaluationFailed,
    compile_condition,
    compile_expression,
    compile_template,
)
from weft.errors import WeftError

pytestmark = MARKS

# CPU time of this process, far above what is measured (a second at most): what it must catch would take for ever.
CPU_SECONDS_MAX = 60.0

MANY = [{"name": f"n{n}", "amount": n} for n in range(50_000)]
BOUND: dict[str, Any] = {
    "small": list(range(300)),
    "many": MANY,
    "text": "x" * 200_000,
    "mixed": "".join(random.Random(1).choices("abéſ", k=200_000)),
    "patterns": [f"(a{{1,{n}}}|b){{{n}}}" for n in range(1, 1_000)],
    "state": {"a": 1},
}


def timed(act: Callable[[], Any]) -> Any:
    begin = time.process_time()
    try:
        return act()
    finally:
        assert time.process_time() - begin < CPU_SECONDS_MAX


BOMBS = [
    "small.all(x, small.all(y, small.all(z, x + y + z >= 0)))",
    "many.exists(a, many.exists(b, a.amount + b.amount == -1))",
    "many.map(a, many.map(b, a)).size() > 0",
    "many.map(a, a.name + text).size() > 0",
    "many.map(a, text + text)",
    "small.map(a, text.split('')).size() > 0",
    "small.map(a, text.replace('x', text)).size() > 0",
    "text.replace('', text).size() > 0",
    "text.replace('x', text).size() > 0",
    "small.map(a, text).join(text).size() > 0",
    "'%s%s%s'.format([many, many, many]).size() > 0 && small.all(x, '%s'.format([many]).size() > 0)",
    "small.all(i, cel.bind(a, text + text, cel.bind(b, a + a, cel.bind(c, b + b, c + c))).size() > 0)",
    "[[many, many], [many, many]] == [[many, many], [many, many]] && small.all(x, many == many)",
    "small.exists(a, mixed.matches('(?i)(s|ſ|k)*.{500}Z'))",
    "patterns.exists(p, text.matches(p))",
    "many.exists(a, text.contains('y' + a.name))",
    "small.map(a, many).map(b, b + b).size() > 0",
    "small.map(a, small.map(b, small.map(c, [a, b, c])))",
    "many.map(a, {'x': a, 'y': [a, a, a], 'z': {'w': a}})",
]


@pytest.mark.parametrize("text", scale.sample(3, BOMBS))
def test_a_bomb_is_stopped_by_its_budget(text: str) -> None:
    def evaluate() -> None:
        with pytest.raises(EvaluationFailed) as caught:
            compile_expression(text).evaluate(BOUND)
        assert caught.value.code == "expression.limit"

    timed(evaluate)


@pytest.mark.parametrize(
    "text",
    scale.sample(
        3,
        [
            "many.exists(m, double(zeros) > 1.0)",
            "many.exists(m, huge * huge > 1)",
            "many.exists(m, huge % 7 > 1 || huge / 7 > 1)",
            "many.exists(m, text > text)",
            "many.exists(m, timestamp('2026-05-06T07:08:09Z').getHours(m.name) > 99)",
            "many.exists(m, timestamp('2026-05-06T07:08:09Z').getHours('99:99') > 99)",
            "many.exists(m, text.lowerAscii() == m.name)",
            "many.exists(m, int(zeros) > 1 || bool(text) || timestamp(text) == duration(text))",
            "many.exists(m, string(huge) == 'x')",
        ],
    ),
)
def test_a_costly_function_in_a_loop_is_answered(text: str) -> None:
    bound = {**BOUND, "huge": 10**4_000, "zeros": "0" * 200_000}

    with suppress(EvaluationFailed):
        timed(lambda: compile_expression(text).evaluate(bound))


def test_a_bound_name_used_twice_and_twice_again_is_stopped() -> None:
    nested = "v12"
    for n in range(12, 0, -1):
        nested = f"cel.bind(v{n}, [v{n - 1}, v{n - 1}, v{n - 1}], {nested})"
    text = f"cel.bind(v0, many, {nested})"

    with pytest.raises((EvaluationFailed, BadExpression)):
        timed(lambda: compile_expression(text).evaluate(BOUND))


def test_honest_work_of_some_size_is_done() -> None:
    assert compile_expression("many.filter(m, m.amount % 2 == 0).map(m, m.name).size()").evaluate(BOUND) == 25_000
    assert compile_expression("many.all(m, m.amount >= 0 && m.name.startsWith('n'))").evaluate(BOUND) is True
    assert compile_expression("small.map(x, small.map(y, x * y)).size()").evaluate(BOUND) == 300
    assert compile_expression("many").evaluate(BOUND) is MANY


@cache
def cyclic_values(copy: int = 0) -> list[Any]:
    """Made once per copy: two values that are equal, and not the same."""
    ring: dict[str, Any] = {}
    ring["a"] = ring
    pair: list[Any] = []
    pair += [pair, pair]
    deep: Any = None
    for _ in range(50_000):
        deep = {"a": deep}
    doubled: Any = []
    for _ in range(200):
        doubled = [doubled, doubled]
    return [ring, pair, deep, doubled]


SPECS: list[Any] = [
    "x == y",
    "x != null && y == x",
    "[x] == [y]",
    "x in [y, x]",
    "'%s'.format([x]) == ''",
    "size(x) > 0",
    "x.a == y.a",
    "x.exists(k, x[k] == y)",
    "[x, x].map(v, v) == [y, y]",
    {"jsonpath": "$..a", "is": "exists"},
    {"jsonpath": "$..*", "is": "count_gt", "value": 1},
    {"jsonpath": "$..[?@ == $]", "is": "exists"},
    {"jsonpath": "$.a.a.a", "is": "==", "value": {"a": 1}},
    {"schema": {"properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}}},
    {"schema": {"type": "object", "properties": {"a": {"pattern": "x"}}, "items": {"pattern": "x"}}},
    {"schema": {"const": [[[]]]}},
    {"schema": {"enum": [{"a": {"a": 1}}, [[[]]]]}},
    {"schema": {"uniqueItems": True}},
    {"python": "def evaluate(output, context):\n    return True"},
]


@pytest.mark.parametrize("spec", scale.sample(2, SPECS), ids=str)
@pytest.mark.parametrize("index", range(4), ids=["ring", "pair", "deep", "doubled"])
def test_cyclic_deep_and_doubled_values_are_survived(spec: Any, index: int) -> None:
    value, other = cyclic_values(0)[index], cyclic_values(1)[index]

    def evaluate() -> None:
        try:
            said = str(compile_condition(spec, python=True).evaluate({"x": value, "y": other, "output": value}))
        except EvaluationFailed as failed:
            said = f"{failed} {failed.seen}"
        assert len(said) < 3_000

    timed(evaluate)


def test_results_that_double_are_not_handed_out() -> None:
    doubled: Any = 1
    for _ in range(200):
        doubled = [doubled, doubled]

    with pytest.raises(EvaluationFailed):
        timed(lambda: compile_expression("[x]").evaluate({"x": doubled}))
    with pytest.raises(EvaluationFailed):
        timed(lambda: compile_template("see ${x}").evaluate({"x": cyclic_values()[0]}))


@pytest.mark.parametrize(
    "path",
    scale.first(
        1, ["$..[?@..[?@..[?@..a]]]", "$..*..*..*..*", "$..[?count(@..*..*..*) > 1]", "$..[?@..[?count($..*) > 1]]"]
    ),
)
def test_a_jsonpath_bomb_is_stopped_by_its_budget(path: str) -> None:
    value = {str(n): {"a": [{"a": list(range(20))} for _ in range(20)]} for n in range(50)}

    def evaluate() -> None:
        with pytest.raises(EvaluationFailed) as caught:
            compile_condition({"jsonpath": path, "is": "count_gt", "value": 1}).evaluate({"output": value})
        assert caught.value.code == "expression.limit"

    timed(evaluate)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){12}", "(x+x+)+y"])
def test_a_pattern_that_backtracks_elsewhere_is_linear_here(pattern: str) -> None:
    text = "a" * 5_000 + "!"
    for spec in (
        {"jsonpath": "$.s", "is": "matches", "value": pattern},
        {"jsonpath": f"$[?search(@, '{pattern}')]", "is": "exists"},
        {"schema": {"properties": {"s": {"type": "string", "pattern": pattern}}}},
        f"output.s.matches('{pattern}')",
    ):
        condition = compile_condition(spec)
        timed(lambda condition=condition: condition.evaluate({"output": {"s": text}}))  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".optMap(x, x)" * 30,
        "[" * 5_000,
        "(" * 9_000,
        "!" * 9_999,
        "-" * 9_999 + "1",
        "a" + "[0]" * 3_000,
        "true ? " * 1_000,
        "a.b(" * 2_000,
        "'" + "\\" * 9_000,
        "1" + "0" * 9_000,
        "1." + "0" * 9_000 + "e99999",
        "{" * 3_000,
        "a && " * 2_000 + "b",
        "[" + "1," * 4_999 + "1]",
        "'''\\" * 2_000,
        "'" * 10_000,
        "r'''a" * 2_000,
        "1." * 5_000,
        "`a " * 3_000,
        "'" + "\\n" * 4_900 + "\\q'",
        "//\n" * 3_000 + ")",
        "not " * 2_500,
        "a ? b : " * 1_200,
        "(" * 3_000 + "a" + "+1)" * 1_700,
        "x.map(x, " * 1_000,
        "'%.999999999f'.format([1.0])",
        "\ud800",
        "\0",
        "a\u202e == b",
    ],
)
def test_text_of_any_shape_is_answered(text: str) -> None:
    def evaluate() -> None:
        try:
            said = str(compile_expression(text).evaluate({"a": {}, "b": 1}))
        except WeftError as error:
            said = str(error)
        assert len(said) < 20_000

    timed(evaluate)


WORDS = r"""
output state x . .? [ ] [? ( ) { } , : ? ?: + - * / % ! && || == != < <= > >= in true false null 1 2.5 'a' "b" 0x1 1u
size( has( .map( .filter( .all(x, .exists( cel.bind( .matches( math.greatest( timestamp( duration( .format( r'\' b'x'
"""
tokens = st.sampled_from(WORDS.split())
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "x"]), part, max_size=4),
    max_leaves=15,
)


@settings(max_examples=scaled(20, 700))
@given(st.lists(tokens, max_size=14).map(" ".join) | st.text(alphabet=string.printable, max_size=40), anything)
def test_random_text_on_random_values_gives_a_value_or_a_typed_error(text: str, value: Any) -> None:
    bound = {"output": value, "state": {}, "x": value}
    with suppress(BadExpression, EvaluationFailed):
        compile_expression(text).evaluate(bound)
    with suppress(BadExpression, EvaluationFailed):
        compile_template("${" + text + "}").evaluate(bound)


specs = st.recursive(
    st.sampled_from(["output.a > 1", "output ==", True, None, 3, "x"])
    | st.fixed_dictionaries(
        {},
        optional={
            "jsonpath": st.sampled_from(["$.a", "$..*", "$[?@.a]", "$[", 3]),
            "is": st.text(max_size=3),
            "value": anything,
        },
    )
    | st.fixed_dictionaries({"type": st.sampled_from(["cel", "jsonpath", "composite", "cross_node_comparison", 1])}),
    lambda part: st.dictionaries(
        st.sampled_from(["all", "any", "not", "schema", "type", "value", "conditions", "operator", "left", "right"]),
        part | st.lists(part, max_size=3),
        max_size=3,
    ),
    max_leaves=8,
)


@settings(max_examples=scaled(20, 400))
@given(specs, anything)
def test_random_conditions_are_compiled_or_refused(spec: Any, value: Any) -> None:
    with suppress(BadExpression, EvaluationFailed):
        compile_condition(spec).evaluate({"output": value})


def test_many_threads_compile_and_evaluate_at_once() -> None:
    wrong: list[Any] = []
    gate = threading.Barrier(6)

    def work(seed: int) -> None:
        own = random.Random(seed)
        gate.wait()
        for _ in range(300):
            n = own.randrange(40)
            bound = {"output": {"n": n, "list": list(range(n))}}
            for spec, expected in (
                (f"output.n == {n} && output.list.all(x, x < {n}) && output.list.size() == {n}", True),
                ({"jsonpath": f"$.list[?@ >= {n}]", "is": "exists"}, False),
                ({"schema": {"properties": {"n": {"maximum": n - 1}}}}, False),
            ):
                if compile_condition(spec).evaluate(bound).value is not expected:
                    wrong.append((n, spec))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_caches_are_bounded() -> None:
    for n in range(5_000):
        compile_expression(f"output.x == {n}")
    from weft.conditions import expressions

    assert expressions._compiled.cache_info().currsize <= 4_096
