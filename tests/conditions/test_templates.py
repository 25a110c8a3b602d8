"""Templates: literal JSON with `${CEL}` in its strings."""

from __future__ import annotations

from typing import Any

import pytest

from weft.conditions import BadExpression, EvaluationFailed, compile_template
from weft.errors import WeftError

BOUND: dict[str, Any] = {
    "input": {"order_id": "o-1", "total": 4250, "lines": [{"sku": "a"}], "rate": 1.0},
    "page": 7,
    "none": None,
}


def fill(template: Any, **more: Any) -> Any:
    return compile_template(template).evaluate({**BOUND, **more})


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        (7, 7),
        (None, None),
        (True, True),
        ("${page}", 7),
        ("${input.lines}", [{"sku": "a"}]),
        ("${none}", None),
        ("${page > 3}", True),
        (" ${page}", " 7"),
        ("Ship ${input.order_id} for ${input.total / 100} EUR?", "Ship o-1 for 42 EUR?"),
        ("${page}${page}", "77"),
        ("${none} ${page > 3} ${input.rate} ${input.lines}", 'null true 1.0 [{"sku":"a"}]'),
        ("$${page}", "${page}"),
        ("a $${b} ${page} $$ $5 $", "a ${b} 7 $$ $5 $"),
        ("${'}'}", "}"),
        ("${\"a}b\" + '{'}", "a}b{"),
        ("${{'a': {'b': page}}}", {"a": {"b": 7}}),
        ("x${{'a': page}.a}y", "x7y"),
        ("${'it\\'s }'}", "it's }"),
        ("${'''a'}'''}", "a'}"),
        ({"a": ["${page}", 1, {"b": "p${page}"}], "${page}": "x"}, {"a": [7, 1, {"b": "p7"}], "${page}": "x"}),
        ("{page} }${page}{", "{page} }7{"),
    ],
)
def test_strings_are_literal_except_what_is_computed(template: Any, expected: Any) -> None:
    filled = fill(template)

    assert filled == expected
    assert type(filled) is type(expected)


def test_a_template_knows_what_it_reads() -> None:
    template = compile_template({"a": "${input.x}", "b": ["t ${nodes.n.output.y} ${state.z}", "literal input.q"]})

    assert template.names == {"input", "nodes", "state"}
    assert template.paths == {("input", "x"), ("nodes", "n", "output", "y"), ("state", "z")}


def test_all_errors_are_found_at_once_each_with_its_place() -> None:
    with pytest.raises(BadExpression) as caught:
        compile_template({"to": "${input.", "about": {"lines": ["ok", "${foo(1)} and ${1 +}"]}, "c": "${x"})

    found = [(error.path, error.code.split(".")[1]) for error in caught.value.errors]
    assert found == [
        ("to", "unclosed"),
        ("about.lines[1]", "unknown_function"),
        ("about.lines[1]", "syntax"),
        ("c", "unclosed"),
    ]
    assert "`$${`" in str(caught.value)


def test_a_failure_names_the_expression() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        fill("Ship ${input.colour} now")

    assert caught.value.expression == "input.colour"
    assert caught.value.path == "input.colour"


def test_a_template_is_filled_anew_each_time() -> None:
    template = compile_template({"list": [], "page": "${page}"})

    first = template.evaluate(BOUND)
    first["list"].append(1)

    assert template.evaluate(BOUND) == {"list": [], "page": 7}


def test_text_is_bounded_over_all_its_parts() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        fill("${big}" * 500 + "!", big="x" * 1_000_000)
    assert caught.value.code == "expression.limit"


def test_a_cyclic_value_in_a_text_is_an_error() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic

    with pytest.raises(EvaluationFailed):
        fill("x ${c}", c=cyclic)
    with pytest.raises(WeftError):
        compile_template(cyclic)


def test_a_template_too_deep_or_too_long_is_refused() -> None:
    deep: Any = "${page}"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(WeftError):
        compile_template(deep)
    with pytest.raises(BadExpression, match="characters"):
        compile_template("${page} " * 20_000)
