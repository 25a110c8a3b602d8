"""Patches under a policy: each operation is denied, reviewed or permitted, by who patches what."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.run.patch_plan import PatchPlan
from weft.runtime.patch_policy import operation_names
from weft.runtime.patches import PatchOptions, PatchService
from weft.testing import World

ADD = [
    {"op": "add", "path": "/nodes/third", "value": {"step": "ping"}},
    {"op": "add", "path": "/nodes/second/next", "value": "third"},
]


def world(*rules: dict[str, Any]) -> World:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})

    @app.step
    async def ping() -> str:
        return "pong"

    app.graph({"name": "chain", "nodes": {"first": {"wait": "1d", "next": "second"}, "second": {"step": "ping"}}})
    return World(app)


def patch(here: World, patch: dict[str, Any], **options: Any) -> PatchPlan:
    run = here.start(here.app.registered.newest("chain"), {}, id=f"run-{len(options)}")  # type: ignore[arg-type]
    here.settle()
    return here.perform(lambda: PatchService(here._service).patch(run.id, patch, PatchOptions(**options)))


def test_an_operation_that_is_denied_refuses_the_patch() -> None:
    here = world({"deny": "patch", "names": ["/nodes/second*"], "to": ["user:bob"]})

    with pytest.raises(weft.NotAllowed, match="The patch /nodes/second/next is not permitted") as caught:
        patch(here, {"ops": ADD}, by="bob")

    assert caught.value.code == "policy.denied"
    assert patch(here, {"ops": ADD}, by="ann", reason="x").applied


def test_a_whole_document_is_judged_by_what_it_changes() -> None:
    here = world({"deny": "patch", "names": ["/nodes/second"]})
    changed = {"name": "chain", "nodes": {"first": {"wait": "1d", "next": "second"}, "second": {"wait": "1s"}}}

    with pytest.raises(weft.NotAllowed, match="The patch /nodes/second is not permitted"):
        patch(here, {"document": changed})


def test_a_rule_may_let_people_review_patches_of_a_role() -> None:
    here = world({"ask": "patch", "names": ["/nodes/*"], "to": ["role:trainee"], "of": ["team:ops"]})

    asked = patch(here, {"ops": ADD}, by="bob", roles=["trainee"])

    assert (asked.applied, asked.review) == (False, ["team:ops"])
    assert asked.asked
    assert patch(here, {"ops": ADD}, by="bob").applied


def test_undoing_a_patch_can_be_denied() -> None:
    here = world({"deny": "patch", "names": ["/undo"]})
    plan = patch(here, {"ops": ADD}, by="ann")

    with pytest.raises(weft.NotAllowed, match="The patch /undo is not permitted"):
        here.perform(lambda: PatchService(here._service).undo(plan.run))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ops": ADD}, ["/nodes/-", "/nodes/second/next"]),
        ({"ops": [{"op": "add", "path": "/nodes/-", "value": {"id": "x"}}]}, ["/nodes/-"]),
        ({"ops": [{"op": "replace", "path": "/nodes/second/step", "value": "y"}]}, ["/nodes/second/step"]),
        ({"ops": [{"op": "test", "path": "/nodes/second", "value": {}}]}, []),
        ({"ops": [{"op": "replace", "path": "/nodes", "value": {}}]}, ["/nodes", "/nodes/second"]),
        ({"ops": [], "move": [{"node": "a", "to": "b"}]}, ["/move"]),
        ({"ops": [], "set": {"state.limit": 5}}, ["/set/state.limit"]),
        ({"given": {"price": 5}, "reason": "r"}, ["/given/price"]),
    ],
)
def test_operations_have_names(given: dict[str, Any], expected: list[str]) -> None:
    before = {"nodes": {"first": {"step": "a"}, "second": {"step": "b"}}}
    after = {"nodes": {"first": {"step": "a"}}}

    assert operation_names(given, before, after) == expected


def test_nodes_in_lists_are_named_too() -> None:
    before = {"nodes": [{"id": "first"}, {"id": "second"}]}
    operations = [{"op": "remove", "path": "/nodes/1"}, {"op": "add", "path": "/nodes/0", "value": {"id": "x"}}]

    assert operation_names({"ops": operations}, before, {}) == ["/nodes/second", "/nodes/-"]
