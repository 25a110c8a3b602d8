"""CEL on JSON: what an expression reads, what it gives, and how it fails."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from weft.conditions import EvaluationFailed, compile_expression, nodes_read

BOUND: dict[str, Any] = {
    "input": {"order_id": "o-1", "total": 4200},
    "state": {"_last_error": None, "profile": None, "count": 3},
    "output": {"score": 85, "ratio": 0.5, "name": "Ann", "tags": ["a", "b"], "none": None, "nested": {"deep": [1]}},
    "error": None,
    "nodes": {"score": {"output": {"n": 1}}, "a-b": {"output": {"n": 2}}},
    "ctx": {"score": {"output": {"n": 1}}},
    "branch": {"index": 1, "total": 3, "output": None},
    "_branch": {"index": 1, "total": 3, "item": "x"},
    "item": {"id": 7},
}


def value(text: str, **more: Any) -> Any:
    return compile_expression(text).evaluate({**BOUND, **more})


def failure(text: str, **more: Any) -> EvaluationFailed:
    with pytest.raises(EvaluationFailed) as caught:
        value(text, **more)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("output.score >= 80", True),
        ("output.score >= 80 && state.count > 5", False),
        ("nodes.score.output.n", 1),
        ('nodes["a-b"].output.n', 2),
        ("nodes.`a-b`.output.n", 2),
        ("ctx.score.output.n == 1", True),
        ("_branch.index + 1", 2),
        ("branch.index == 1 && branch.total == 3", True),
        ("state._last_error != null", False),
        ("item.id", 7),
        ("state.profile != null", False),
        ("output.tags.exists(t, t == 'b')", True),
        ("output.tags.map(t, t + '!')", ["a!", "b!"]),
        ("has(output.missing)", False),
        ("has(output.nested.deep)", True),
        ("has(state.profile.tier)", False),
        ("output.?missing.orValue('none')", "none"),
        ("state.?profile.?tier.orValue('none')", "none"),
        ("{'id': input.order_id, 'n': [output.score]}", {"id": "o-1", "n": [85]}),
        ("output.score > 80 ? 'high' : null", "high"),
        ("input.total / 100", 42),
        ("output.ratio * 2", 1.0),
        ("output.nested", {"deep": [1]}),
        ("output.none", None),
    ],
)
def test_an_expression_gives_json(text: str, expected: Any) -> None:
    given = value(text)

    assert given == expected
    assert type(given) is type(expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1", "'1'"),
        ("true", "1"),
        ("null", "false"),
        ("null", "0"),
        ("[1]", "1"),
        ("{'a': 1}", "[1]"),
        ("[1]", "[true]"),
    ],
)
def test_values_of_different_types_are_not_equal_and_that_is_no_error(left: str, right: str) -> None:
    assert value(f"{left} == {right}") is False
    assert value(f"{left} != {right}") is True
    assert value("a == b", a=value(left), b=value(right)) is False


def test_integers_and_doubles_compare_by_value() -> None:
    assert value("output.score == 85.0 && 85 <= 85.5 && [1, 2] == [1.0, 2.0] && 1 in [1.0]") is True
    assert value("big == double", big=2**60 + 1, double=float(2**60)) is False


def test_integers_beyond_64_bits_compare_but_are_not_computed_with() -> None:
    assert value("n > 1 && n == n && n != 3", n=2**70) is True
    assert value("n", n=2**70) == 2**70
    assert "64 bits" in str(failure("n + 1", n=2**70))
    assert "64 bits" in str(failure("9223372036854775807 + 1"))


@pytest.mark.parametrize(
    ("text", "names", "paths"),
    [
        ("output.score >= 80", {"output"}, {("output", "score")}),
        (
            "nodes.score.output.n + ctx.x.output",
            {"nodes", "ctx"},
            {("nodes", "score", "output", "n"), ("ctx", "x", "output")},
        ),
        ('nodes["a-b"].output', {"nodes"}, {("nodes", "a-b", "output")}),
        ("nodes[input.name].output", {"nodes", "input"}, {("nodes",), ("input", "name")}),
        ("output.list[0].x", {"output"}, {("output", "list")}),
        ("output.list.map(x, x.y + state.z)", {"output", "state"}, {("output", "list"), ("state", "z")}),
        ("output.list.exists(output, output.y)", {"output"}, {("output", "list")}),
        ("has(state.a.b)", {"state"}, {("state", "a", "b")}),
        ("state.?a.?b.orValue(1)", {"state"}, {("state", "a", "b")}),
        ("cel.bind(x, input.a, x.b)", {"input"}, {("input", "a")}),
        ("math.greatest(input.a, 2) > 1 && type(input.b) == string", {"input"}, {("input", "a"), ("input", "b")}),
        ("size(input.a) + 'x'.size()", {"input"}, {("input", "a")}),
        ("1 + 1", set(), set()),
        ("{'a': state.x}[input.k]", {"state", "input"}, {("state", "x"), ("input", "k")}),
    ],
)
def test_an_expression_knows_the_names_and_paths_it_reads(text: str, names: set[str], paths: set[Any]) -> None:
    expression = compile_expression(text)

    assert expression.names == names
    assert expression.paths == paths


def test_only_the_nodes_that_are_named_need_be_loaded() -> None:
    assert nodes_read(compile_expression("nodes.a.output.x + ctx.b.output.y + output.z").paths) == frozenset({"a", "b"})
    assert nodes_read(compile_expression("nodes.map(n, n)").paths) is None
    assert nodes_read(compile_expression("output.x").paths) == frozenset()


def test_nothing_but_the_named_paths_is_read() -> None:
    class Watched(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            assert name == "score"
            return {"output": {"n": 5}}

    assert value("nodes.score.output.n == 5", nodes=Watched()) is True


def test_a_missing_field_is_an_error_that_names_the_path_and_what_there_is() -> None:
    failed = failure("output.nested.wide > 3")

    assert failed.path == "output.nested.wide"
    assert "`output.nested` has no field `wide`" in failed.message
    assert "`deep`" in failed.hint
    assert failed.expression == "output.nested.wide > 3"
    assert failed.seen == {"output.nested": {"deep": [1]}}


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("nope.x == 1", "nope", "there is no `nope` here"),
        ("output.none.x", "output.none.x", "`output.none` is null"),
        ("output.name.x", "output.name.x", "`output.name` is string"),
        ("output.tags.map(t, t.x)", "t.x", "`t` is string"),
        ("output.tags[5]", "output.tags", "has 2 elements"),
        ("output.score + output.name", "output.score", "`+` does not take int and string"),
        ("output.name > 3", "output.name", "`>` cannot compare string with int"),
        ("output.none >= 3", "output.none", "`>=` cannot compare null with int"),
        ("output.score / state.zero", "output.score", "division by zero"),
        ("output.ratio / 0.0", "output.ratio", "division by zero"),
        ("1e308 * 10.0", "", "not a finite number"),
        ("!output.score", "output.score", "`!` takes a bool"),
        ("output.score && true", "", "`&&` takes bools"),
        ("output.score ? 1 : 2", "", "takes a bool"),
        ("[1].all(x, x)", "", "`all` takes a bool, not int"),
        ("[1].filter(x, x)", "", "`filter` takes a bool, not int"),
        ("output.name.all(x, true)", "", "a loop takes a list or a map"),
        ("int(output.name)", "output.name", '"Ann" is not an int'),
        ("timestamp(output.name)", "output.name", '"Ann" is not a timestamp'),
        ("output.?name", "", "optional"),
        ("type(output)", "", "the type `map`"),
        ("{1: 2}", "", "keys of a map are strings"),
        ("[output.tags, output.tags].map(x, x[9])", "x", "no [9]"),
    ],
)
def test_a_failure_says_what_did_not_fit_and_where(text: str, path: str, said: str) -> None:
    failed = failure(text, state={"zero": 0})

    assert said in failed.message
    assert failed.path == path
    assert failed.code == "expression.failed"


def test_an_error_does_not_matter_where_the_other_side_settles_the_answer() -> None:
    assert value("output.missing == 1 || output.score > 80") is True
    assert value("output.score > 80 || output.missing == 1") is True
    assert value("output.missing == 1 && output.score < 80") is False
    assert value("[1, 'a', 3].exists(x, x > 2)") is True
    assert value("[1, 'a', 3].all(x, x > 2)") is False
    assert "cannot compare" in str(failure("[1, 'a', 1].exists(x, x > 2)"))
    assert "no field" in str(failure("output.missing == 1 || output.score < 80"))


def test_an_untaken_branch_is_not_evaluated() -> None:
    assert value("has(output.missing) ? output.missing.x : 'none'") == "none"
    assert value("output.?name.orValue(output.missing)") == "Ann"


def test_what_was_bound_is_shared_and_never_changed() -> None:
    given = {"rows": [{"id": 1}, {"id": 2}]}

    kept = compile_expression("output.rows.filter(r, r.id > 1)").evaluate({"output": given})

    assert kept[0] is given["rows"][1]
    assert given == {"rows": [{"id": 1}, {"id": 2}]}


def test_results_that_json_lacks_become_text_or_errors() -> None:
    assert value("[timestamp('2026-05-06T07:08:09Z')]") == ["2026-05-06T07:08:09Z"]
    assert value("{'a': duration('90m')}") == {"a": "5400s"}
    assert "optional" in str(failure("[output.?name]"))


def test_a_null_result_costs_no_reference_to_none() -> None:
    """The library behind the parser drops one each time, and the process dies after some thousand."""
    before = sys.getrefcount(None)
    for _ in range(20_000):
        assert value("output.none") is None
        assert value("output.score > 1 ? null : 1") is None
    assert abs(sys.getrefcount(None) - before) < 10_000


def test_values_are_kept_short_in_errors() -> None:
    failed = failure("output.x == 1", output={"text": "y" * 100_000, "list": list(range(10_000))})

    assert len(str(failed)) < 1_000
    assert len(str(failed.seen)) < 2_000


def test_the_same_text_is_compiled_once() -> None:
    assert compile_expression("output.a + 1") is compile_expression("output.a + 1")


def test_nan_cannot_come_in_through_text() -> None:
    for text in ("double('nan')", "double('inf')", "double('1e999')"):
        assert "is not a double" in str(failure(text))
    assert not math.isnan(value("double('1.5')"))
