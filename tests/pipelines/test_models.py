"""Random tables: every step gives what a model gives that is simple enough to be read."""

import json
from functools import cmp_to_key
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.pipelines.kit import apply

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 1.5, -2.5]),
    st.sampled_from(["", "a", "b", "1"]),
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), SCALARS, max_size=3).map(lambda row: dict(sorted(row.items()))),
    max_size=8,
)
NUMBERED = ROWS.map(lambda rows: [{**row, "n": index} for index, row in enumerate(rows)])
FIELD = st.sampled_from(["a", "b", "c"])


def kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text"


def same(one: Any, other: Any) -> bool:
    return kind(one) == kind(other) and one == other


def exact(value: Any) -> str:
    """Return JSON, in which true is not 1, and fields have an order."""
    return json.dumps(value)


def compare(one: Any, other: Any) -> int:
    order = ["boolean", "number", "text"]
    a, b = (order.index(kind(one)), one), (order.index(kind(other)), other)
    return (a > b) - (a < b)


@given(NUMBERED, FIELD, st.sampled_from(["asc", "desc"]))
def test_a_sort_is_an_insertion_one_by_one(rows: list[dict[str, Any]], field: str, order: str) -> None:
    placed: list[dict[str, Any]] = []
    for row in (row for row in rows if row.get(field) is not None):
        sign = 1 if order == "asc" else -1
        at = next((i for i, other in enumerate(placed) if sign * compare(other[field], row[field]) > 0), len(placed))
        placed.insert(at, row)
    expected = placed + [row for row in rows if row.get(field) is None]

    assert exact(apply(rows, {"step": "table_sort", "field": field, "order": order})) == exact(expected)


@given(NUMBERED, FIELD, st.sampled_from(["<", ">", "<=", ">=", "==", "!="]), SCALARS)
def test_a_filter_asks_row_by_row(rows: list[dict[str, Any]], field: str, op: str, value: Any) -> None:
    def meets(row: dict[str, Any]) -> bool:
        if field not in row:
            return False
        if op in ("==", "!="):
            return same(row[field], value) == (op == "==")
        if value is None or kind(row[field]) != kind(value):
            return False
        found = compare(row[field], value)
        return {"<": found < 0, ">": found > 0, "<=": found <= 0, ">=": found >= 0}[op]

    step = {"step": "table_filter", "condition": {"field": field, "op": op, "value": value}}
    assert exact(apply(rows, step)) == exact([row for row in rows if meets(row)])


@given(NUMBERED, st.lists(FIELD, min_size=1, max_size=2, unique=True))
def test_groups_count_as_often_as_their_keys_appear(rows: list[dict[str, Any]], by: list[str]) -> None:
    expected: list[dict[str, Any]] = []
    for row in rows:
        keys = [row.get(name) for name in by]
        found = next((g for g in expected if all(same(g[n], k) for n, k in zip(by, keys, strict=True))), None)
        if found is None:
            expected.append({**dict(zip(by, keys, strict=True)), "count": 1})
        else:
            found["count"] += 1

    assert exact(apply(rows, {"step": "groupby", "by": by})) == exact(expected)


@given(NUMBERED, FIELD, st.sampled_from(["min", "max"]))
def test_the_least_and_the_greatest_are_the_ends_of_a_sort(rows: list[dict[str, Any]], field: str, agg: str) -> None:
    values = sorted((row[field] for row in rows if row.get(field) is not None), key=cmp_to_key(compare))
    whole = [{**row, "all": 1} for row in rows]
    found = apply(whole, {"step": "groupby", "by": "all", "agg": agg, "field": field, "as": "x"})

    expected = None if not values else values[0] if agg == "min" else values[-1]
    assert not rows or same(found[0]["x"], expected)


@given(NUMBERED, NUMBERED, st.lists(FIELD, min_size=1, max_size=2, unique=True), st.sampled_from(["inner", "left"]))
def test_a_join_is_two_loops(left: list[dict[str, Any]], right: list[dict[str, Any]], on: list[str], how: str) -> None:
    taken = {name for row in left for name in row}
    names = list(dict.fromkeys(name for row in right for name in row if name not in on))
    renamed = {name: f"{name}_right" if name in taken else name for name in names}
    expected: list[dict[str, Any]] = []
    for row in left:
        met = [
            other
            for other in right
            if all(row.get(n) is not None and other.get(n) is not None and same(row[n], other[n]) for n in on)
        ]
        expected += [{**row, **{renamed[n]: v for n, v in other.items() if n not in on}} for other in met]
        if not met and how == "left":
            expected.append({**row, **dict.fromkeys(renamed.values())})

    assert exact(apply(left, {"step": "join", "right": right, "on": on, "how": how})) == exact(expected)


@given(NUMBERED, st.lists(FIELD, min_size=1, max_size=3, unique=True))
def test_a_selection_has_the_same_fields_in_every_row(rows: list[dict[str, Any]], fields: list[str]) -> None:
    assert exact(apply(rows, {"step": "table_select", "fields": fields})) == exact(
        [{name: row.get(name) for name in fields} for row in rows]
    )
