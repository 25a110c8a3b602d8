"""What seeds 000 and 003 say of transitions, tokens, fan-outs and sub-workflows runs on the engine, in their spelling."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.graph.documents import Document
from tests.patterns.kit import Bench, after, same, went


def transitions(*arrows: str, nodes: dict[str, Document] | None = None, **more: Document) -> Document:
    """`a -> b` each is a transition; `more` says more about the one with this name (`a_b`)."""
    parsed = [tuple(arrow.split(" -> ")) for arrow in arrows]
    names = dict.fromkeys(name for pair in parsed for name in pair)
    given = nodes or {}
    return {
        "nodes": [{"id": name, "type": "task", **given.get(name, {})} for name in names],
        "transitions": [{"from": a, "to": b, **more.get(f"{a}_{b}", {})} for a, b in parsed],
    }


@pytest.mark.parametrize(
    ("amount", "taken"), [(500, ["big"]), (50, ["middle", "audit"]), (5, ["small"])], ids=["first", "tier", "default"]
)
def test_transitions_are_tried_by_priority_and_a_tier_fires_as_a_whole(amount: int, taken: list[str]) -> None:
    document = transitions(
        "a -> small",
        "a -> middle",
        "a -> audit",
        "a -> big",
        a_big={"priority": 1, "condition": "output.amount > 100"},
        a_middle={"priority": 2, "condition": "output.amount > 10"},
        a_audit={"priority": 2, "condition": "output.amount > 10"},
        a_small={"priority": 3},
    )
    run = Bench(document, {"a": {"amount": amount}}).start()

    run.result()
    assert went(run) == ["a", *taken]


def test_no_matching_transition_fails_the_run_and_says_what_was_asked() -> None:
    document = transitions("a -> b", a_b={"condition": "input.approved"})

    with pytest.raises(weft.RunFailed, match=r"no edge of a matched: input\.approved"):
        Bench(document).run(approved=False)
    run = Bench(document).start(approved=True)
    run.result()
    assert went(run) == ["a", "b"]


@pytest.mark.parametrize(("fan_out", "taken"), [("all", ["b", "c"]), ("first_match", ["b"])])
def test_a_fan_out_takes_all_or_the_first(fan_out: str, taken: list[str]) -> None:
    document = transitions(
        "a -> b",
        "a -> c",
        "a -> d",
        nodes={"a": {"fan_out": fan_out}},
        a_c={"priority": 2},
        a_d={"priority": 3, "condition": "false"},
    )
    run = Bench(document).start()

    run.result()
    assert went(run) == ["a", *taken]


def fan(how: str = "append", **join: Any) -> Document:
    """A branch per item of the input; each doubles it and saves that, and they meet again."""
    return transitions(
        "a -> b",
        "b -> c",
        "c -> j",
        "j -> z",
        nodes={
            "b": {"input_mapping": {"n": "n", "index": "_branch.index", "total": "_branch.total"}},
            "c": {"output_mapping": {"value": "output.value"}},
            "j": {"fan_in": "all", "merge": {"source": "*", "target": "merged", "strategy": how}, **join},
        },
        a_b={"foreach": {"collection": "input.items", "item_var": "n"}},
    )


def doubled(given: Any) -> Any:
    return {"value": given["n"] * 2, "noise": True}


STEPS: dict[str, Any] = {"b": same, "c": doubled}


@pytest.mark.parametrize(
    ("how", "merged"),
    [
        ("append", [{"value": 2 * n} for n in (1, 2, 3, 4, 5)]),
        ("merge_object", {"value": 10}),
        ("keyed_by_branch", {str(n): {"value": 2 * n + 2} for n in range(5)}),
    ],
)
def test_a_complex_fan_out_and_fan_in_merges_five_items(how: str, merged: Any) -> None:
    bench = Bench(fan(how), STEPS)

    assert bench.run(items=[1, 2, 3, 4, 5]) == {"merged": merged}
    assert sorted(given["index"] for given in bench.given("b")) == [0, 1, 2, 3, 4]
    assert {given["total"] for given in bench.given("b")} == {5}
    assert bench.times("j") == bench.times("z") == 1


def test_the_last_branch_to_come_wins() -> None:
    slow_first = {"b": same, "c": after(lambda given: 600 - given["n"] * 60, doubled)}

    assert Bench(fan("last_wins"), slow_first).run(items=[3, 1, 2]) == {"merged": {"value": 2}}


def test_a_branch_writes_for_itself_until_the_fan_in() -> None:
    document = fan()
    document["nodes"][0]["output_mapping"] = {"outside": "1 + 1"}
    bench = Bench(document, STEPS)

    assert bench.run(items=[7]) == {"outside": 2, "merged": [{"value": 14}]}


def test_a_fan_in_waits_while_one_sibling_is_still_at_work() -> None:
    slow = {"b": after(lambda given: 3600 if given["n"] == 2 else 0, same), "c": doubled}
    bench = Bench(fan(), slow)
    run = bench.start(items=[1, 2, 3])
    bench.world.advance("30m")
    assert (bench.times("c"), bench.times("j")) == (2, 0)

    assert run.result() == {"merged": [{"value": 2}, {"value": 4}, {"value": 6}]}


@pytest.mark.parametrize(
    ("need", "early", "merged", "finished"),
    [
        ("any", "cancel", [4], 1),
        ({"m_of_n": 2}, "cancel", [2, 4], 2),
        ({"m_of_n": 2}, "abandon", [2, 4], 3),
        ({"m_of_n": 2}, "allow_late_merge", [2, 4, 6], 3),
    ],
)
def test_an_early_completion_goes_on_with_the_first_arrivals(need: Any, early: str, merged: Any, finished: int) -> None:
    hours = {2: 1, 1: 2, 3: 5}
    slow = {"b": after(lambda given: 3600 * hours[given["n"]], same), "c": doubled, "z": after(36_000, "z")}
    bench = Bench(fan(fan_in=need, on_early_complete=early), slow)

    assert bench.run(items=[1, 2, 3]) == {"merged": [{"value": value} for value in merged]}
    assert bench.times("c") == finished
    assert bench.times("j") == bench.times("z") == 1


# --- sub-workflows -----------------------------------------------------------------------------------------------


def calling(**node: Any) -> Document:
    """A parent whose node calls `sub` with a part of its own state."""
    call = {
        "id": "call",
        "workflow_call": "sub",
        "input_mapping": {"amount": "state.total"},
        "output_mapping": {"answer": "output.result"},
        **node,
    }
    first = {"id": "first", "type": "task", "output_mapping": {"total": "output.total", "secret": "1"}}
    nodes = [first, call, {"id": "last", "type": "task"}]
    edges = [{"from": "first", "to": "call"}, {"from": "call", "to": "last"}]
    return {"name": "parent", "nodes": nodes, "transitions": edges}


SUB = {
    "name": "sub",
    "input_schema": {"amount": "integer"},
    "nodes": [{"id": "work", "type": "task", "output_mapping": {"result": "output * 2"}}],
}


def nested(document: Document, **answers: Any) -> Bench:
    bench = Bench(document, {"first": {"total": 21}, "work": lambda given: given["amount"], **answers})
    bench.add_graph(SUB)
    return bench


def test_a_sub_workflow_has_a_state_of_its_own_and_maps_input_and_output() -> None:
    bench = nested(calling())

    assert bench.run() == {"total": 21, "secret": 1, "answer": 42}
    assert bench.given("work") == [{"amount": 21}]


def test_an_input_that_does_not_fit_the_sub_workflow_fails_its_node() -> None:
    with pytest.raises(weft.RunFailed, match="the input of sub does not fit"):
        nested(calling(), first={"total": "many"}).run()


def test_a_failed_sub_workflow_fails_its_node() -> None:
    with pytest.raises(weft.RunFailed, match="broken"):
        nested(calling(), work=weft.Critical("broken")).run()


def test_a_failed_sub_workflow_may_be_routed_instead() -> None:
    document = calling(on_failure="route", output_mapping={})
    document["transitions"] += [{"from": "call", "to": "rescue", "priority": 2}]
    document["transitions"][1] |= {"priority": 1, "condition": "!has(output.error)"}
    document["nodes"] += [{"id": "rescue", "type": "task"}]
    bench = nested(document, work=weft.Critical("broken"))
    run = bench.start()

    run.result()
    assert went(run) == ["first", "call", "rescue"]
    assert "broken" in bench.given("rescue")[0]["error"]["message"]


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "taken"), [(TimeoutError("late"), ["retry_later"]), (ValueError("bad"), ["tell"]), (None, ["b"])]
)
def test_a_failure_is_routed_by_the_last_error(error: Exception | None, taken: list[str]) -> None:
    timed_out = "state._last_error != null && state._last_error.type == 'TimeoutError'"
    document = transitions(
        "a -> retry_later",
        "a -> tell",
        "a -> b",
        nodes={"a": {"retry": 2}},
        a_retry_later={"priority": 1, "condition": timed_out},
        a_tell={"priority": 2, "condition": "state._last_error != null"},
        a_b={"priority": 3},
    )
    bench = Bench(document, {"a": error or "fine"})
    run = bench.start()

    run.result()
    assert went(run) == ["a", *taken]
    assert bench.times("a") == (2 if error else 1)


# --- limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [{"type": "task"}, {"pass": True}], ids=["tasks", "nodes without work"])
@pytest.mark.parametrize(
    ("limits", "given"), [({"fan_out": 3}, 4), ({"tokens": 4}, 5), ({"hops": 6}, 2)], ids=["fan_out", "tokens", "hops"]
)
def test_a_run_keeps_to_its_limits_whatever_its_nodes_do(work: Document, limits: Document, given: int) -> None:
    document = {
        "limits": limits,
        "nodes": {
            "a": {**work, "next": [{"to": "b", "for_each": "${input.items}"}]},
            "b": {**work, "next": "j"},
            "j": {"join": "all", "next": "again"},
            "again": {**work, "repeat": {"while": "state.on", "back_to": "a", "at_most": 50}},
        },
    }
    document["nodes"]["j"]["save"] = {"state.on": "${input.on}"}

    with pytest.raises(weft.RunFailed, match=f"the limit of {next(iter(limits.values()))} {next(iter(limits))}"):
        Bench(document).run(items=list(range(given)), on=True)
    assert Bench(document).run(items=[1], on=False) == {"on": False}
