"""The rules of graph patches that no golden case is about, one by one: docs/internals/patches.md."""

from __future__ import annotations

from typing import Any

from tests.graph.patch_table import PatchTable, explore

STEP: dict[str, Any] = {"step": "s"}


def run_of(given: Any = None, **nodes: Any) -> PatchTable:
    return PatchTable({"name": "g", "nodes": nodes}, given or {})


def codes(run: PatchTable, **patch: Any) -> list[str]:
    """Why a patch is refused."""
    return [one.code for one in run.judge(run.prepare({"reason": "r", **patch})).refusals]


def patched(run: PatchTable, **patch: Any) -> PatchTable:
    command = run.prepare({"reason": "r", **patch})
    plan = run.judge(command)
    assert plan.ok, plan.refusals
    run.tell(command)
    assert run.refolded().snapshot() == run.machine.snapshot()
    return run


def ends_clean(run: PatchTable) -> list[PatchTable]:
    """Every order of what is left ends, and leaves nothing behind."""
    ended = explore(run, {})
    for one in ended:
        left = {name: getattr(one.state, name) for name in ("tokens", "frames", "loops", "slots")}
        assert one.state.status == "completed"
        assert not any(left.values()), left
    return ended


def fork_and_join(**more: Any) -> PatchTable:
    return run_of(
        a={**STEP, "fan_out": "all", "next": [{"to": "b"}, {"to": "c"}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
        **more,
    )


def between(one: str, other: str) -> list[dict[str, Any]]:
    return [
        {"op": "add", "path": "/nodes/x", "value": {**STEP, "next": other}},
        {"op": "replace", "path": f"/nodes/{one}/next", "value": "x"},
    ]


def test_a_token_that_waits_takes_the_place_of_the_edge_that_replaced_its_own() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    run.finish("c", None, {})
    patched(run, ops=between("c", "j"))
    (ended,) = ends_clean(run)
    assert ended.state.executed == {"a": 1, "c": 1, "b": 1, "j": 1}, "x lies behind"


def test_skips_at_a_join_to_which_nothing_comes_are_forgotten() -> None:
    run = run_of(
        {"n": 1},
        a={**STEP, "fan_out": "all", "next": [{"to": "b"}, {"to": "c", "when": "input.n > 1"}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "edges"},
    )
    run.finish("a", None, {})
    assert run.state.slots, "c was skipped, and so was its edge"
    patched(run, ops=[{"op": "replace", "path": "/nodes/b/next", "value": []}])
    assert not run.state.slots
    ends_clean(run)


def test_a_node_that_has_run_is_not_skipped_afterwards() -> None:
    run = run_of(
        {"n": 1},
        a={**STEP, "fan_out": "all", "next": [{"to": "n"}, {"to": "d"}, {"to": "b"}]},
        n={**STEP, "next": "j"},
        d={**STEP, "next": "j"},
        j={**STEP, "join": "edges", "next": []},
        b={**STEP, "next": "m"},
        m=STEP,
    )
    for node in "andj":
        run.finish(node, None, {})
    way = [{"to": "n", "when": "input.n > 1"}, {"to": "m"}]
    patched(run, ops=[{"op": "replace", "path": "/nodes/b/next", "value": way}], again=["n", "j"])
    assert run.state.slots["n|"].ran
    (ended,) = explore(run, {})
    assert ended.state.executed == {"a": 1, "n": 1, "d": 1, "j": 1, "b": 1, "m": 1}


def test_a_loop_that_is_running_stays() -> None:
    run = run_of(a={**STEP, "repeat": {"while": "true", "at_most": 3}})
    ops = [{"op": "remove", "path": "/nodes/a/repeat"}]
    assert "patch.loop_open" in codes(run, ops=ops)


def test_a_join_where_a_token_waits_stays_one() -> None:
    run = fork_and_join()
    run.finish("a", None, {})
    run.finish("c", None, {})
    ops = [{"op": "remove", "path": "/nodes/j/join"}]
    assert "patch.join_in_use" in codes(run, ops=ops)


def test_the_last_token_is_not_dropped() -> None:
    run = run_of(a=STEP)
    assert codes(run, ops=[], drop=[{"node": "a"}]) == ["patch.would_end"]


def test_no_token_is_started_in_a_branch_that_has_arrived() -> None:
    run = run_of(
        a={**STEP, "next": [{"to": ["b", "c"]}]},
        b={**STEP, "next": "j"},
        c={**STEP, "next": "j"},
        j={**STEP, "join": "all"},
    )
    run.finish("a", None, {})
    run.finish("c", None, {})
    (parked,) = [token.id for token in run.state.tokens.values() if token.mode == "parked"]
    (working,) = [token.id for token in run.state.tokens.values() if token.mode == "working"]
    assert codes(run, ops=[], start=[{"node": "c", "beside": parked}]) == ["patch.move_arrived"]
    assert "patch.move_arrived" not in codes(run, ops=[], start=[{"node": "b", "beside": working}])
