"""JSONPath: plain paths, everything RFC 9535 has, and the operator table."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonpath import JSONPathEnvironment

from tests import scale
from weft.conditions import BadExpression, EvaluationFailed, compile_condition
from weft.conditions.budget import Evaluation
from weft.conditions.cel.values import MISSING
from weft.conditions.jsonpaths import compile_jsonpath, split_simple_jsonpath

STORE: dict[str, Any] = {
    "books": [
        {"title": "A", "price": 8.95, "tags": ["x", "y"], "stock": 0},
        {"title": "B", "price": 12.5, "tags": [], "isbn": None},
        {"title": "Cé", "price": 22, "tags": ["y"], "ok": True},
    ],
    "cheap": 10,
    "name": "store",
    "a b": {"c-d": 1},
    "nested": {"a": {"a": {"a": 1}}},
    "empty": [],
    "nothing": None,
    "flags": ["new", "competitor"],
}

PATHS = """
$|$.name|$.books|$.books[0].title|$.books[-1].title|$['a b']['c-d']|$.books[*].price|$.books[1:].title
$.books[::2].title|$.books[::-1].title|$.books[0,2].title|$..price|$..a|$..*|$.books[?@.price < 10].title
$.books[?@.isbn].title|$.books[?@.isbn == null].title|$.books[?!@.isbn].title|$.books[?@.tags].title
$.books[?@.price < $.cheap].title|$.books[?length(@.tags) > 1].title|$.books[?count(@.tags[*]) == 1].title
$.books[?match(@.title, '[AB]')].title|$.books[?search(@.title, 'é')].title
$.books[?value(@.tags[0]) == 'y'].title|$.books[?@.title == 'A' || @.title == 'B'].price
$.books[?(@.price > 10 && @.stock != 0)].title|$.books[?@.ok == true].title|$.books[?@.stock == false].title
$.books[?@.nope == $.nope].title|$.books[?@.title >= 'B'].title|$.books[?@.price >= 12.5].title
$.books[?@.title > 5].title|$.books[?@.tags[?@ == 'x']].title|$.nested..a|$.books[9]|$.nope.nope|$.name.nope
$.books.title|$.name[0]|$.books[0:0]|$[?@.a]|$.books[*].tags[*]|$..[0]|$.books[?@ == $.books[0]].title
$.flags[?@ != 'new']|$.cheap[*]
"""
ALL_PATHS = [path for line in PATHS.split("\n") for path in re.split(r"(?<!\|)\|(?!\|)", line) if path]


def find(path: str, value: Any) -> list[Any]:
    query = compile_jsonpath(path)
    found = query.find(Evaluation({}), value)
    if query.single:
        return [] if found is MISSING else [found]
    return list(found)


@pytest.mark.parametrize("path", ALL_PATHS)
def test_a_path_finds_what_the_library_finds(path: str) -> None:
    assert find(path, STORE) == JSONPathEnvironment(strict=True).compile(path).findall(STORE)


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "x", ""]), st.floats(-2, 2, width=16)
)
documents = st.recursive(
    leaves,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from("abc"), part, max_size=3),
    max_leaves=12,
)
steps = st.sampled_from(
    [
        ".a",
        ".b",
        "[*]",
        "..a",
        "..*",
        "[0]",
        "[-1]",
        "[0:2]",
        "[?@.a]",
        "[?@.a == 1]",
        "[?@.b < 'b']",
        "[?@ != 'x']",
        "['a','b']",
    ]
)


@settings(max_examples=scale.scaled(60, 400))
@given(documents, st.lists(steps, max_size=4))
def test_random_paths_on_random_values_find_the_same(document: Any, pieces: list[str]) -> None:
    path = "$" + "".join(pieces)
    if isinstance(document, str):  # the library would parse it as JSON
        document = [document]

    expected = JSONPathEnvironment(strict=True).compile(path).findall(document)

    assert repr(find(path, document)) == repr(expected)


def test_what_the_library_gets_wrong_is_right() -> None:
    assert find("$[?@ == $[0]]", [[True], [1]]) == [[True]]
    assert find("$.a[?@.b[?$.x == 1]]", {"x": 1, "a": [{"b": [1]}]}) == [{"b": [1]}]


def test_a_split_simple_path_needs_no_library() -> None:
    assert split_simple_jsonpath("$.a.b[0]['c d'][\"e\"][-1]") == ("a", "b", 0, "c d", "e", -1)
    assert split_simple_jsonpath("$") == ()
    for path in ("$..a", "$.a[*]", "$.a[?@.b]", "a.b", "$.a[0:1]", "$.", "$['a\\'b']"):
        assert split_simple_jsonpath(path) is None


def verdict(output: Any, **spec: Any) -> bool:
    spec = {"is" if name == "op" else name: value for name, value in spec.items()}
    return compile_condition(spec).evaluate({"output": output}).value


@pytest.mark.parametrize(
    ("path", "operator", "value", "expected"),
    [
        ("$.name", "==", "store", True),
        ("$.name", "==", 1, False),
        ("$.name", "!=", "shop", True),
        ("$.cheap", ">", 9, True),
        ("$.cheap", ">=", 10.0, True),
        ("$.cheap", "<", 10, False),
        ("$.cheap", "<=", 10, True),
        ("$.name", "<", "zebra", True),
        ("$.name", "in", ["shop", "store"], True),
        ("$.name", "in", [], False),
        ("$.name", "not_in", ["shop"], True),
        ("$.flags", "contains", "competitor", True),
        ("$.flags[*]", "contains", "competitor", True),
        ("$.flags[*]", "contains", "nope", False),
        ("$.name", "contains", "tor", True),
        ("$.nested", "contains", "a", True),
        ("$.books[*].price", "contains", 22.0, True),
        ("$.name", "exists", True, True),
        ("$.nothing", "exists", True, True),
        ("$.nope", "exists", True, False),
        ("$.nope", "exists", False, True),
        ("$.books[?@.price > 100]", "exists", True, False),
        ("$.books[*]", "exists", True, True),
        ("$.empty", "empty", True, True),
        ("$.nothing", "empty", True, True),
        ("$.nope", "empty", True, True),
        ("$.name", "empty", False, True),
        ("$.cheap", "empty", True, False),
        ("$.books[*]", "empty", True, False),
        ("$.books[?@.price > 100]", "empty", True, True),
        ("$.name", "matches", "^st.*e$", True),
        ("$.name", "matches", "^x", False),
        ("$.nope", "==", None, False),
        ("$.nothing", "==", None, True),
        ("$.nope", "!=", 1, True),
        ("$.nope", ">", 1, False),
        ("$.nope", "in", [1], False),
        ("$.nope", "not_in", [1], True),
        ("$.nope", "contains", 1, False),
        ("$.nope", "matches", "x", False),
        ("$.books[?@.title == 'A'].price", "<", 9, True),
        ("$.books[?@.title == 'Z'].price", "<", 9, False),
        ("$.flags[*]", "==", ["new", "competitor"], True),
        ("$.books.length()", "==", 3, True),
        ("$.books[*].length()", ">", 2, True),
        ("$.books[?(@.price > 10)].length()", "==", 2, True),
        ("$.name.length()", "==", 5, True),
        ("$.nope.length()", "==", 0, True),
        ("$.books[*].price", "sum_gt", 40, True),
        ("$.books[*].price", "sum_lte", 43.45, True),
        ("$.books[*].price", "min_eq", 8.95, True),
        ("$.books[*].price", "max_gte", 22, True),
        ("$.books[*].price", "avg_lt", 14.5, True),
        ("$.books[*]", "count_ne", 2, True),
        ("$.books[*]", "count", 3, True),
        ("$.flags", "count", 2, True),
        ("$.name", "count", 1, True),
        ("$.nope", "count", 0, True),
        ("$.nope", "sum", 0, True),
    ],
)
def test_the_operator_table(path: str, operator: str, value: Any, expected: bool) -> None:
    assert verdict(STORE, jsonpath=path, op=operator, value=value) is expected
    typed = {"type": "jsonpath", "query": path, "operator": operator, "value": value}
    assert compile_condition(typed).evaluate({"output": STORE}).value is expected


def test_an_aggregate_may_stand_beside_its_operator() -> None:
    assert verdict(STORE, jsonpath="$.books[*].price", agg="sum", op=">", value=40)
    assert verdict(STORE, jsonpath="$.books[*]", agg="count", op="in", value=[2, 3])
    assert not verdict(STORE, jsonpath="$.books[*].price", agg="avg", op=">=", value=40)


def test_a_path_alone_asks_whether_something_is_there() -> None:
    assert verdict(STORE, jsonpath="$.name")
    assert not verdict(STORE, jsonpath="$.nope")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"jsonpath": "$.name", "is": ">", "value": 3}, "cannot compare string with int"),
        ({"jsonpath": "$.flags[*]", "is": ">", "value": 3}, "has 2 matches, but `>` takes one value"),
        ({"jsonpath": "$.flags[*]", "is": "sum_gt", "value": 3}, "`sum` takes numbers, not string"),
        ({"jsonpath": "$.empty[*]", "is": "max_gt", "value": 3}, "cannot take the max of an empty list"),
        ({"jsonpath": "$.cheap", "is": "contains", "value": 3}, "`contains` takes a list, a string or an object"),
        ({"jsonpath": "$.cheap", "is": "matches", "value": "x"}, "`matches` takes a string"),
        ({"jsonpath": "$.cheap.length()", "is": "==", "value": 3}, "`.length()` takes"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(EvaluationFailed, match=said.replace("`", ".").replace("(", ".").replace(")", ".")) as caught:
        compile_condition(spec).evaluate({"output": STORE})
    assert spec["jsonpath"] in caught.value.expression


def test_a_verdict_shows_what_the_path_found() -> None:
    given = compile_condition({"jsonpath": "$.books[*].price", "is": "sum_gt", "value": 1}).evaluate({"output": STORE})

    assert given.seen == {"$.books[*].price": [8.95, 12.5, 22]}


def test_a_path_starts_at_the_output() -> None:
    condition = compile_condition({"jsonpath": "$.a.b[0].c", "is": "exists"})

    assert condition.names == {"output"}
    assert condition.paths == {("output", "a", "b")}
    assert compile_condition({"jsonpath": "$..x"}).paths == {("output",)}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("$.a[", "cannot be read"),
        ("$.a[?@.b =~ /x/]", "cannot be read"),
        ("a.b", "starts with `$`"),
        ("$.a | $.b", "cannot be read"),
        ("$[?foo(@.a)]", "foo"),
        ("$[?match(@.a, '(')]", "regular expression"),
        ("$" + ".a" * 600, "characters"),
        ("$[?" + "(" * 40 + "@.x" + ")" * 40 + "]", "too deeply"),
        ("", "cannot be read"),
    ],
)
def test_a_path_that_is_none_is_refused(path: str, said: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compile_condition({"jsonpath": path, "is": "exists"})
    assert said in str(caught.value)
    assert caught.value.errors[0].path == "jsonpath"
