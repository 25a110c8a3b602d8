"""Steps over tables: exactly what each gives, for values of every kind."""

from typing import Any

import pytest

from tests.pipelines.kit import apply, code, refusal


def column(rows: list[dict[str, Any]], name: str = "v") -> list[Any]:
    return [row.get(name, "missing") for row in rows]


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"v": value, "n": index} for index, value in enumerate(values)]


# --- table_sort ---------------------------------------------------------------------------------------------------


def test_a_sort_orders_booleans_numbers_texts_and_puts_null_and_missing_last() -> None:
    mixed = [*rows("b", 2, None, True, 1.5, "a", False), {"n": 9}]

    ascending = apply(mixed, {"step": "table_sort", "field": "v"})
    descending = apply(mixed, {"step": "table_sort", "field": "v", "order": "desc"})

    assert column(ascending) == [False, True, 1.5, 2, "a", "b", None, "missing"]
    assert column(descending) == ["b", "a", 2, 1.5, True, False, None, "missing"]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_sort_keeps_the_order_of_equal_rows(order: str) -> None:
    sorted_rows = apply(rows(1, 1.0, 1, 1), {"step": "table_sort", "field": "v", "order": order})

    assert column(sorted_rows, "n") == [0, 1, 2, 3]


def test_a_sort_reads_a_path_with_dots_unless_a_key_has_that_name() -> None:
    nested = [{"a": {"b": 2}}, {"a.b": 1, "a": {"b": 9}}, {"a": 5}]

    assert apply(nested, {"step": "table_sort", "field": "a.b"}) == [nested[1], nested[0], nested[2]]


def test_an_array_has_no_order() -> None:
    failed = refusal(rows(1, [2]), {"step": "table_sort", "field": "v"})

    assert failed.code == "pipeline.bad_value"
    assert "v of row 1: an array has no order" in failed.message


# --- table_filter -------------------------------------------------------------------------------------------------

MIXED = [None, True, False, 0, 1, 1.0, 2, "1", "a", [1], {"x": 1}]


@pytest.mark.parametrize(
    ("op", "value", "kept"),
    [
        ("==", 1, [1, 1.0]),
        ("==", True, [True]),
        ("==", "1", ["1"]),
        ("==", None, [None]),
        ("==", [1], [[1]]),
        ("==", [True], []),
        ("==", {"x": 1.0}, [{"x": 1}]),
        ("!=", 1, [None, True, False, 0, 2, "1", "a", [1], {"x": 1}]),
        ("!=", None, MIXED[1:]),
        ("!=", [1], [value for value in MIXED if value != [1]]),
        (">", 0, [1, 1.0, 2]),
        ("<=", 1, [0, 1, 1.0]),
        (">=", False, [True, False]),
        ("<", "b", ["1", "a"]),
        ("<", None, []),
        ("<=", None, []),
        (">=", [1], []),
    ],
)
def test_values_of_different_kinds_are_unequal_and_in_no_order(op: str, value: Any, kept: list[Any]) -> None:
    condition = {"field": "v", "op": op, "value": value}

    found = apply([*rows(*MIXED), {"n": 99}], {"step": "table_filter", "condition": condition})

    assert [(type(v), v) for v in column(found)] == [(type(v), v) for v in kept]


def test_a_row_without_the_field_is_dropped_whatever_the_condition() -> None:
    for op in ("==", "!=", "<"):
        assert apply([{"w": 1}], {"step": "table_filter", "condition": {"field": "v", "op": op, "value": 1}}) == []


def test_all_conditions_of_a_list_must_hold() -> None:
    both = [{"field": "v", "op": ">", "value": 1}, {"field": "n", "op": "<", "value": 2}]

    assert apply(rows(1, 2, 3), {"step": "table_filter", "condition": both}) == [{"v": 2, "n": 1}]


# --- table_select and top_k ---------------------------------------------------------------------------------------


def test_a_selection_has_exactly_these_fields_in_this_order() -> None:
    found = apply([{"a": 1, "b": {"c": 2}}, {"b": 3}], {"step": "table_select", "fields": ["b.c", "a"]})

    assert [list(row.items()) for row in found] == [[("b.c", 2), ("a", 1)], [("b.c", None), ("a", None)]]


def test_a_field_is_selected_once() -> None:
    assert code([], {"step": "table_select", "fields": ["a", "a"]}) == ("pipeline.bad_argument", 0)


def test_the_first_k_rows_are_taken() -> None:
    assert column(apply(rows(1, 2, 3), {"step": "top_k", "k": 2})) == [1, 2]
    assert column(apply(rows(1), {"step": "top_k", "k": 20})) == [1]


# --- groupby ------------------------------------------------------------------------------------------------------

SALES = [
    {"city": "b", "n": 2},
    {"city": "a", "n": 5},
    {"city": "b", "n": None},
    {"city": "b", "n": 3.5},
    {"city": "a"},
    {"n": 1},
]


@pytest.mark.parametrize(
    ("agg", "figures"),
    [("sum", [5.5, 5, 1]), ("avg", [2.75, 5, 1]), ("min", [2, 5, 1]), ("max", [3.5, 5, 1]), ("count", [2, 1, 1])],
)
def test_a_figure_leaves_out_null_and_missing(agg: str, figures: list[float]) -> None:
    found = apply(SALES, {"step": "groupby", "by": "city", "agg": agg, "field": "n", "as": "x"})

    assert found == [{"city": city, "x": figure} for city, figure in zip(["b", "a", None], figures, strict=True)]


def test_the_figure_has_a_name_of_its_own() -> None:
    assert apply(SALES[:1], {"step": "groupby", "by": "city"}) == [{"city": "b", "count": 1}]
    assert apply(SALES[:1], {"step": "groupby", "by": ["city"], "agg": "sum", "field": "n"}) == [
        {"city": "b", "sum_n": 2}
    ]


def test_a_count_without_a_field_counts_rows() -> None:
    assert column(apply(SALES, {"step": "groupby", "by": "city", "agg": "count"}), "count") == [3, 2, 1]


def test_a_group_without_values_has_the_sum_zero_and_otherwise_null() -> None:
    empty = [{"k": 1, "v": None}]
    figures = [apply(empty, {"step": "groupby", "by": "k", "agg": agg, "field": "v", "as": "x"})[0]["x"]
               for agg in ("sum", "avg", "min", "max", "count")]  # fmt: skip

    assert figures == [0, None, None, None, 0]


def test_true_and_one_are_different_groups_and_one_and_one_point_nought_are_not() -> None:
    found = apply(rows(True, 1, 1.0, "1"), {"step": "groupby", "by": "v"})

    assert column(found, "count") == [1, 2, 1]


def test_several_keys_make_a_group() -> None:
    data = [{"a": 1, "b": {"c": "x"}}, {"a": 1, "b": {"c": "y"}}, {"a": 1, "b": {"c": "x"}}]

    assert apply(data, {"step": "groupby", "by": ["a", "b.c"]}) == [
        {"a": 1, "b.c": "x", "count": 2},
        {"a": 1, "b.c": "y", "count": 1},
    ]


@pytest.mark.parametrize("value", ["5", True, [1]])
@pytest.mark.parametrize("agg", ["sum", "avg"])
def test_only_numbers_have_a_sum(agg: str, value: Any) -> None:
    assert code(rows(1, value), {"step": "groupby", "by": "n", "agg": agg, "field": "v"}) == ("pipeline.bad_value", 0)


def test_a_sum_of_integers_is_exact_and_of_floats_does_not_depend_on_their_order() -> None:
    exact = [{"k": 1, "v": 2**53}, {"k": 1, "v": 1}]
    floats = [{"k": 1, "v": value} for value in (1e16, 1.0, -1e16)]
    step = {"step": "groupby", "by": "k", "agg": "sum", "field": "v", "as": "x"}

    assert apply(exact, step) == [{"k": 1, "x": 2**53 + 1}]
    assert apply(floats, step) == [{"k": 1, "x": 1.0}]


def test_a_sum_that_is_no_number_is_refused() -> None:
    step = {"step": "groupby", "by": "k", "agg": "sum", "field": "v"}
    assert code([{"k": 1, "v": 1.7e308}] * 2, step) == ("pipeline.bad_value", 0)
    assert code([{"k": 1, "v": 2**63}] * 3, step) == ("pipeline.bad_value", 0)


@pytest.mark.parametrize(
    "step",
    [
        {"by": "v", "agg": "sum"},
        {"by": ["v", "v"]},
        {"by": "count"},
        {"by": "v", "agg": "sum", "field": "n", "as": "v"},
        {"by": []},
        {"by": "v", "agg": "median", "field": "n"},
    ],
)
def test_a_group_that_makes_no_sense_is_refused_before_it_runs(step: dict[str, Any]) -> None:
    assert code(rows(1), {"step": "groupby", **step}) == ("pipeline.bad_argument", 0)


def test_an_array_is_no_key() -> None:
    failed = refusal(rows(1, [2]), {"step": "groupby", "by": "v"})

    assert (failed.code, failed.index) == ("pipeline.bad_value", 0)
    assert "v of row 1" in failed.message


# --- join ---------------------------------------------------------------------------------------------------------

LEFT = [{"id": 1, "x": "a"}, {"id": 2, "x": "b"}, {"id": None, "x": "c"}, {"x": "d"}, {"id": True, "x": "e"}]
RIGHT = [{"id": 2, "x": "r1", "y": 1}, {"id": 1, "y": 2}, {"id": 2, "y": 3}, {"id": None, "y": 4}]


def test_an_inner_join_has_the_order_of_left_then_of_right() -> None:
    assert apply(LEFT, {"step": "join", "right": RIGHT, "on": "id"}) == [
        {"id": 1, "x": "a", "y": 2},
        {"id": 2, "x": "b", "x_right": "r1", "y": 1},
        {"id": 2, "x": "b", "y": 3},
    ]


def test_a_left_join_keeps_rows_that_meet_nothing() -> None:
    found = apply(LEFT, {"step": "join", "right": RIGHT, "on": "id", "how": "left"})

    assert [row["x"] for row in found] == ["a", "b", "b", "c", "d", "e"]
    assert found[3:] == [
        {"id": None, "x": "c", "x_right": None, "y": None},
        {"x": "d", "x_right": None, "y": None},
        {"id": True, "x": "e", "x_right": None, "y": None},
    ]


def test_rows_that_meet_once_keep_the_key_of_the_left_and_its_place() -> None:
    step = {"step": "join", "right": [{"y": 5, "id": 1.0}, {"y": 6, "id": 2}], "on": "id"}

    found = apply([{"x": 3, "id": 1}, {"x": 4, "id": 2.0}], step)

    assert [list(row.items()) for row in found] == [[("x", 3), ("id", 1), ("y", 5)], [("x", 4), ("id", 2.0), ("y", 6)]]
    assert [type(row["id"]) for row in found] == [int, float]


def test_rows_that_meet_once_have_no_field_of_a_right_row_that_lacks_it() -> None:
    right = [{"id": 1, "y": 5}, {"id": 2, "z": 6}, {"id": 3, "y": 7}]

    assert apply([{"id": 2, "x": 1}, {"id": 4}], {"step": "join", "right": right, "on": "id"}) == [
        {"id": 2, "x": 1, "z": 6}
    ]


def test_fields_of_different_names_are_joined_and_both_stay() -> None:
    found = apply([{"a": 1, "b": "k"}], {"step": "join", "right": [{"c": 1, "b": "l"}], "on": {"a": "c"}})

    assert found == [{"a": 1, "b": "k", "c": 1, "b_right": "l"}]


def test_a_clash_gets_a_name_that_is_free() -> None:
    left = [{"k": 1, "v": 1, "v_right": 2}]

    assert apply(left, {"step": "join", "right": [{"k": 1, "v": 3}], "on": "k"}) == [
        {"k": 1, "v": 1, "v_right": 2, "v_right_right": 3}
    ]
    assert apply([{"k": 1, "v": 1}], {"step": "join", "right": [{"k": 1, "v": 3, "v_right": 4}], "on": "k"}) == [
        {"k": 1, "v": 1, "v_right_right": 3, "v_right": 4}
    ]


def test_several_fields_are_joined_and_null_in_one_of_them_meets_nothing() -> None:
    left = [{"a": 1, "b": 1}, {"a": 1, "b": None}]
    right = [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": None, "c": 2}]

    assert apply(left, {"step": "join", "right": right, "on": ["a", "b"]}) == [{"a": 1, "b": 1, "c": 1}]


def test_a_reference_stands_for_stored_rows_and_left_for_the_data() -> None:
    step = {"step": "join", "left": "cas://l", "right": "cas://r", "on": "id"}

    assert len(apply("ignored", step, stored={"cas://l": LEFT, "cas://r": RIGHT})) == 3


def test_a_join_that_explodes_is_refused_before_it_is_made() -> None:
    same = [{"k": 1}] * 1_001
    failed = refusal(same, {"step": "join", "right": same, "on": "k"})

    assert (failed.code, failed.index) == ("pipeline.too_large", 0)
    assert "1,002,001 rows" in failed.message


def test_a_join_that_gets_too_large_in_bytes_is_refused_before_it_is_made() -> None:
    large = [{"k": 1, "v": "x" * 100_000}] * 20
    failed = refusal(large, {"step": "join", "right": large, "on": "k"})

    assert (failed.code, failed.index) == ("pipeline.too_large", 0)
    assert "would be larger" in failed.message


def test_one_large_row_that_many_rows_meet_is_refused_before_the_join_is_made() -> None:
    many = [{"k": 1, "n": n} for n in range(1_000)]
    failed = refusal(many, {"step": "join", "right": [{"k": 1, "v": "x" * 100_000}], "on": "k"})

    assert "would be larger" in failed.message


# --- rows ---------------------------------------------------------------------------------------------------------

TABLE_STEPS: list[dict[str, Any]] = [
    {"step": "table_sort", "field": "v"},
    {"step": "table_filter", "condition": {"field": "v", "op": "==", "value": 1}},
    {"step": "table_select", "fields": ["v"]},
    {"step": "top_k", "k": 1},
    {"step": "groupby", "by": "v"},
    {"step": "join", "right": [], "on": "v"},
    {"step": "regex_extract", "field": "v", "pattern": "a"},
    {"step": "parse_date", "field": "v"},
]


@pytest.mark.parametrize("step", TABLE_STEPS, ids=lambda step: step["step"])
@pytest.mark.parametrize("data", [{"v": 1}, 5, "x", None, [1], [{"v": 1}, None], [[{"v": 1}]]])
def test_what_is_not_rows_is_refused(step: dict[str, Any], data: Any) -> None:
    assert code(data, step) == ("pipeline.not_rows", 0)


@pytest.mark.parametrize("step", TABLE_STEPS, ids=lambda step: step["step"])
def test_no_rows_give_no_rows(step: dict[str, Any]) -> None:
    assert apply([], step) == []
