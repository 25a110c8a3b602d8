"""JSON Patch on documents: the six operations, names instead of indexes, and everything that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.work import lines_of
from weft.documents.json_patch import apply_operations
from weft.errors import BadPatch, LimitExceeded

LISTED: dict[str, Any] = {"nodes": [{"id": "a", "retry": {"attempts": 1}}, {"id": "b/c"}], "x": 1}
MAPPED: dict[str, Any] = {"nodes": {"a": {"retry": {"attempts": 1}}, "b/c": {}}}


@pytest.mark.parametrize("document", [LISTED, MAPPED])
def test_a_path_names_an_item_by_its_id_in_both_dialects(document: dict[str, Any]) -> None:
    ops = [
        {"op": "replace", "path": "/nodes/a/retry/attempts", "value": 3},
        {"op": "add", "path": "/nodes/b~1c/step", "value": "s"},
    ]
    nodes = apply_operations(document, ops)["nodes"]
    first, second = nodes.values() if isinstance(nodes, dict) else nodes
    assert first["retry"]["attempts"] == 3
    assert second["step"] == "s"
    assert "step" not in str(document), "the document itself is not changed"


@pytest.mark.parametrize(
    ("op", "expect"),
    [
        ({"op": "add", "path": "/l/1", "value": 9}, [1, 9, 2]),
        ({"op": "add", "path": "/l/-", "value": 9}, [1, 2, 9]),
        ({"op": "remove", "path": "/l/0"}, [2]),
        ({"op": "replace", "path": "/l/0", "value": None}, [None, 2]),
        ({"op": "move", "from": "/l/0", "path": "/l/1"}, [2, 1]),
        ({"op": "copy", "from": "/l/0", "path": "/l/-"}, [1, 2, 1]),
        ({"op": "test", "path": "/l", "value": [1, 2]}, [1, 2]),
    ],
)
def test_an_operation(op: dict[str, Any], expect: list[Any]) -> None:
    assert apply_operations({"l": [1, 2]}, [op])["l"] == expect


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ({"op": "remove", "path": "/z"}, 'there is no "z"'),
        ({"op": "remove", "path": "/l/2"}, "the list has 2 elements"),
        ({"op": "add", "path": "/l/3", "value": 0}, "the list has 2 elements"),
        ({"op": "replace", "path": "/l/x", "value": 0}, 'no element called "x"'),
        ({"op": "test", "path": "/l", "value": []}, "another one"),
        ({"op": "test", "path": "/l/0", "value": True}, "another one"),
        ({"op": "move", "from": "/o", "path": "/o/p"}, "into itself"),
        ({"op": "add", "path": "/l/0/x", "value": 0}, "neither a list nor a mapping"),
    ],
)
def test_an_operation_that_cannot_be_applied(op: dict[str, Any], why: str) -> None:
    with pytest.raises(BadPatch, match=why):
        apply_operations({"l": [1, 2], "o": {}}, [op])


def test_malformed_operations_are_all_reported() -> None:
    with pytest.raises(BadPatch) as refused:
        apply_operations({}, [{"op": "ad"}, {"op": "add"}, {"op": "move", "path": "x", "from": "/a"}, 7])
    assert len(refused.value.findings) == 5


LARGE = "x" * 10_000
DOUBLED = [
    {"op": "add", "path": "/b", "value": {"a": "x" * 1_000}},
    *({"op": "copy", "from": "/b", "path": f"/b/c{n}"} for n in range(40)),
]
DEEP = [
    {"op": "add", "path": "/b", "value": {}},
    *({"op": "copy", "from": "/b", "path": "/b" + "/b" * 2**n} for n in range(13)),
]
MANY = {"l": [{"id": f"i{n}"} for n in range(500)], "t": "x" * 1_000}


@pytest.mark.parametrize(
    ("document", "ops", "why"),
    [
        ({}, DOUBLED, "or more; the limit is 10,000"),
        ({}, [{"op": "add", "path": "/b", "value": LARGE}], "the limit is 10,000"),
        ({}, [{"op": "add", "path": "", "value": LARGE}], "the limit is 10,000"),
        ({"b": 1}, [{"op": "replace", "path": "/b", "value": LARGE}], "the limit is 10,000"),
        ({"b": [1], "t": "x" * 900}, [{"op": "copy", "from": "/t", "path": "/b/0"}] * 40, "the limit is 10,000"),
        ({"b": 1, "t": "x" * 900}, [{"op": "copy", "from": "/t", "path": "/b"}] * 800, "read and copy too much"),
        (MANY, [{"op": "test", "path": "/t", "value": "x" * 1_000}] * 800, "read and copy too much"),
        (MANY, [{"op": "replace", "path": "/l/i499/id", "value": "i499"}] * 800, "read and copy too much"),
    ],
)
def test_operations_that_ask_for_too_much_are_refused_before_they_are_done(
    document: Any, ops: list[dict[str, Any]], why: str
) -> None:
    def work() -> None:
        with pytest.raises(LimitExceeded, match=why) as refused:
            apply_operations(document, ops, bytes_max=10_000)
        assert refused.value.code == "limit.patches"

    assert lines_of(work) < 150_000


def test_a_document_that_becomes_too_deep_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="too deep"):
        apply_operations({}, DEEP)


def test_a_document_that_shrinks_first_has_room_again() -> None:
    full = "x" * 900
    ops = [
        {"op": "remove", "path": "/a"},
        {"op": "add", "path": "/l/-", "value": full},
        {"op": "remove", "path": "/l/0"},
        {"op": "add", "path": "/a", "value": full},
        {"op": "replace", "path": "/a", "value": full},
        {"op": "move", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b", "value": full},
    ]
    assert apply_operations({"a": full, "l": []}, ops, bytes_max=1_000) == {"l": [], "b": full}


def test_a_long_path_is_quoted_in_part_and_costs_little() -> None:
    for path in ("/" + "x" * 100_000, "/l/" + "9" * 100_000, "/x" * 50_000):
        with pytest.raises(BadPatch) as refused:
            apply_operations({"l": [1]}, [{"op": "remove", "path": path}])
        assert len(str(refused.value)) < 600
