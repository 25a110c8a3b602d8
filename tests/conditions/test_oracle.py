"""Our parser and evaluator, and Google's: the same tree from every text, the same answer to every expression."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from tests.conditions import random_cel
from tests.conditions.differences import COMPILE, DIFFERENCES, EVALUATE, is_excepted
from tests.conditions.library_tree import library_tree, merged
from tests.conditions.oracle import DATA, ask, expressions
from tests.conditions.spec_cases import CASES
from tests.scale import MARKS, scaled
from weft.conditions import BadExpression, EvaluationFailed, compile_expression
from weft.conditions.cel.parse import parse
from weft.conditions.cel.tree import CallNode, ConstNode, IdentNode, LoopNode

pytestmark = MARKS

# In all 10,000 random expressions in `make proof`, in parts that run side by side.
PARTS = range(10)
PART = scaled(10, 1_000)


def typed(value: Any) -> Any:
    """1, 1.0 and True are three values."""
    if isinstance(value, list):
        return [typed(part) for part in value]
    if isinstance(value, dict):
        return {name: typed(part) for name, part in value.items()}
    return type(value).__name__, value


def ours(text: str) -> Any:
    try:
        return compile_expression(text).evaluate(DATA)
    except BadExpression:
        return COMPILE
    except EvaluationFailed:
        return EVALUATE


def shape(node: Any) -> Any:
    """A tree without its positions, for comparison."""
    if isinstance(node, tuple):
        return tuple(shape(part) for part in node)
    if isinstance(node, ConstNode):
        return "Const", typed(b"" if isinstance(node.value, bytes) else node.value)
    if not isinstance(node, msgspec.Struct):
        return node
    if isinstance(node, LoopNode) and node.kind == "filter":
        node = msgspec.structs.replace(node, kind="map", value=IdentNode(node.var, 0))
    if isinstance(node, CallNode):
        node = msgspec.structs.replace(node, args=merged(node.function, node.args))
    fields = [shape(getattr(node, name)) for name in node.__struct_fields__ if name != "at"]
    return type(node).__name__, *fields


def our_tree(text: str) -> Any:
    try:
        return shape(parse(text))
    except BadExpression:
        return COMPILE


def their_tree(text: str) -> Any:
    try:
        return shape(library_tree(text))
    except (RuntimeError, TypeError):
        return COMPILE


@settings(max_examples=scaled(20, 800))
@given(expressions)
def test_both_evaluators_agree(text: str) -> None:
    assert typed(ours(text)) == typed(ask(text, DATA))


@pytest.mark.parametrize("part", PARTS)
def test_random_expressions_have_the_same_answer(part: int) -> None:
    for seed in range(part * PART, (part + 1) * PART):
        text = random_cel.expression(seed)
        assert (text, typed(ours(text))) == (text, typed(ask(text, DATA)))


@pytest.mark.parametrize("part", PARTS)
def test_random_texts_have_the_same_tree_or_none(part: int) -> None:
    for seed in range(part * PART, (part + 1) * PART):
        for text in (random_cel.expression(seed), random_cel.nearly(seed)):
            if not is_excepted(text):
                assert (text, our_tree(text)) == (text, their_tree(text))


@pytest.mark.parametrize("section", CASES)
def test_the_cases_of_the_specification_have_the_same_answer(section: str) -> None:
    for text in CASES[section]:
        assert (text, typed(ours(text))) == (text, typed(ask(text, DATA)))
        assert (text, our_tree(text)) == (text, their_tree(text))


@pytest.mark.parametrize("rule", DIFFERENCES)
def test_a_difference_is_as_it_is_documented(rule: str) -> None:
    for text, library, weft in DIFFERENCES[rule]:
        assert (text, typed(ask(text, DATA))) == (text, typed(library))
        assert (text, typed(ours(text))) == (text, typed(weft))


SHAPES = {
    "brackets": lambda n: "(" * n + "1" + ")" * n,
    "sum": lambda n: "+".join(["1"] * n),
    "fields": lambda n: "a" + ".b" * n,
    "indexes": lambda n: "a" + "[0]" * n,
    "calls": lambda n: "f(" * n + "1" + ")" * n,
    "methods": lambda n: "a" + ".f()" * n,
    "lists": lambda n: "[" * n + "]" * n,
    "maps": lambda n: "{'a':" * n + "1" + "}" * n,
    "choices": lambda n: "a ? b : " * n + "c",
    "choices on the left": lambda n: "(" * n + "a" + "? b : c)" * n,
    "chain": lambda n: "&&".join(["a"] * n),
    "and, or": lambda n: "(a && (b || " * n + "c" + "))" * n,
    "minus": lambda n: "-(" * n + "a" + ")" * n,
    "not": lambda n: "!" * n + "a",
    "comparisons": lambda n: "==".join(["a"] * n),
    "loops": lambda n: "a.map(x, " * n + "x" + ")" * n,
    "chained loops": lambda n: "a" + ".map(x, x)" * n,
    "sums on the left": lambda n: "(" * n + "1" + "+1)" * n,
    "binds": lambda n: "cel.bind(x, 1, " * n + "x" + ")" * n,
    "sum of fields": lambda n: "+".join(["a" + ".b" * n] * n),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_both_parsers_have_the_same_limit_of_depth(shape: str) -> None:
    write = SHAPES[shape]
    for n in (1, 14, 15, 16, 17, 29, 30, 31, 32, 33, 34, 60):
        assert (n, our_tree(write(n)) is COMPILE) == (n, their_tree(write(n)) is COMPILE)


def test_the_oracle_is_able_to_disagree() -> None:
    assert ask("n + 1", DATA) == 8
    assert ask("n + d", DATA) == EVALUATE
    assert ours("n + d") == 9.5
    assert our_tree("a + b * c") != their_tree("(a + b) * c")
