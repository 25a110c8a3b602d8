"""A join's own deadline: counted from the first arrival, then it fails or goes on with what is there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

import weft
from tests.graph.documents import codes
from tests.graph.table import Table
from weft.core import commands as c
from weft.core.ids import EntryId
from weft.graphs.check import check_document
from weft.graphs.load import load_graph
from weft.testing import World

Nodes = dict[str, Any]


def fanned(join: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "nodes": {
            "a": {"pass": True, "next": [{"to": "b", "for_each": "${input.list}"}]},
            "b": {"step": "s", "next": "j"},
            "j": {
                "join": {"timeout": "1h", **join},
                "merge": {"how": "append", "into": "state.all"},
                "next": "z",
                "catch": "h",
                **fields,
            },
            "z": {"step": "s", "with": {}},
            "h": {"step": "s", "with": {"code": "${error.code}"}},
        }
    }


def met(on_timeout: str, **fields: Any) -> dict[str, Any]:
    return {
        "nodes": {
            "a": {"pass": True, "next": [{"to": ["b", "c", "d"]}]},
            "b": {"step": "s", "next": "j"},
            "c": {"step": "s", "next": "j"},
            "d": {"step": "s", "next": "j"},
            "j": {
                "step": "s",
                "join": {"wait": "edges", "timeout": "1h", "on_timeout": on_timeout},
                "next": "z",
                "catch": "h",
                **fields,
            },
            "z": {"step": "s"},
            "h": {"step": "s", "with": {"code": "${error.code}", "message": "${error.message}"}},
        }
    }


class Hand:
    """A run whose tasks are answered by name."""

    def __init__(self, document: dict[str, Any], given: Any = None) -> None:
        self.table = Table(load_graph(document).graph, given or {"list": [1, 2, 3]})

    def at(self, node: str) -> list[int]:
        return [number for number in self.table.open if self.table.place(number)[0] == node]

    def answer(self, node: str, output: Any = None, index: int = 0) -> None:
        self.table.answer(self.at(node)[index], {node: {"*": {"output": output}}}, Counter())

    def given(self, node: str) -> Any:
        (number,) = self.at(node)
        return msgspec.json.decode(self.table.open[number].input)

    def wait(self) -> None:
        """Until the deadline of the only join that waits."""
        (number,) = self.table.state.timers
        self.table.now = self.table.state.timers[number]
        self.table.tell(c.FireTimer(EntryId(number)))

    @property
    def state(self) -> Any:
        return self.table.state


@pytest.mark.parametrize("join", [{"wait": "all"}, {"at_least": 3}, {"at_least": "100%"}])
def test_a_fan_in_goes_on_with_what_has_arrived(join: dict[str, Any]) -> None:
    run = Hand(fanned({**join, "on_timeout": "proceed"}))
    assert not run.state.timers, "nothing has arrived yet"
    run.table.now += 5_000
    run.answer("b", "second", index=1)
    assert list(run.state.timers.values()) == [run.table.now + 3_600_000]
    run.table.now += 5_000
    run.answer("b", "first")
    assert len(run.state.timers) == 1, "the time is counted from the first"
    run.wait()
    assert run.state.data["all"] == ["first", "second"]
    assert (run.at("b"), len(run.at("z"))) == ([], 1)
    run.answer("z")
    assert (run.state.status, run.state.timers) == ("completed", {})


def test_late_branches_may_run_on_and_be_folded_in() -> None:
    run = Hand(fanned({"wait": "all", "on_timeout": "proceed"}, late="merge"))
    run.answer("b", 1)
    run.wait()
    assert run.state.data["all"] == [1]
    run.answer("b", 2)
    assert run.state.data["all"] == [1, 2]
    run.answer("b", 3)
    run.answer("z")
    assert run.state.data["all"] == [1, 2, 3]
    assert run.state.status == "completed"


@pytest.mark.parametrize("join", [{"wait": "all"}, {"wait": "all", "on_timeout": "fail"}, {"at_least": 2}])
def test_or_it_fails_and_its_error_edges_are_asked(join: dict[str, Any]) -> None:
    run = Hand(fanned(join))
    run.answer("b", 1)
    run.wait()
    assert run.given("h") == {"code": "timed_out"}
    assert run.at("b") == []
    run.answer("h")
    assert run.state.status == "completed"


def test_a_join_that_is_there_in_time_forgets_its_deadline() -> None:
    run = Hand(fanned({"wait": "all"}))
    for _ in range(3):
        run.answer("b", 1)
    assert (run.state.timers, run.state.deadlines) == ({}, {})
    run.answer("z")
    assert run.state.status == "completed"


def test_an_edge_join_goes_on_with_the_edges_that_came_and_the_rest_ends_there() -> None:
    run = Hand(met("proceed"))
    run.answer("c", "c")
    run.answer("d", "d")
    run.wait()
    assert run.given("j") == {"c": "c", "d": "d"}
    run.answer("b", "late")
    run.answer("j", {})
    run.answer("z")
    assert run.state.status == "completed"
    assert run.state.executed == {"a": 1, "b": 1, "c": 1, "d": 1, "j": 1, "z": 1}


def test_or_fails_and_says_what_it_lacks() -> None:
    run = Hand(met("fail"))
    run.answer("c", "c")
    run.wait()
    assert run.given("h") == {"code": "timed_out", "message": "j timed out with nothing from b, d"}
    run.answer("b")
    run.answer("h")
    run.answer("d")
    assert run.state.status == "completed"


def test_what_nobody_takes_fails_the_run_and_a_retry_waits_again() -> None:
    for document, node in ((fanned({"wait": "all"}), "b"), (met("fail"), "c")):
        del document["nodes"]["j"]["catch"], document["nodes"]["h"]
        run = Hand(document)
        run.answer(node, 1)
        run.wait()
        assert (run.state.status, run.state.failure.code) == ("failed", "timed_out")
        assert run.state.timers == {}
        run.table.tell(c.RetryRun())
        assert run.state.status == "running"
        assert list(run.state.timers.values()) == [run.table.now + 3_600_000]
        for other in ("b", "b", "c", "d"):
            if run.at(other):
                run.answer(other, 1)
        if run.at("j"):
            run.answer("j")
        run.answer("z")
        assert run.state.status == "completed", document


def test_inside_a_branch_the_deadline_goes_with_the_branch() -> None:
    document = met("fail")
    nodes = document["nodes"]
    del nodes["j"]["catch"]
    document["nodes"] = {
        "o": {"pass": True, "next": [{"to": ["a", "other"]}]},
        **nodes,
        "other": {"step": "s", "next": "end"},
        "end": {"join": "any"},
    }
    nodes["z"]["next"] = "end"
    document["nodes"]["z"]["next"] = "end"
    del document["nodes"]["h"]
    run = Hand(document)
    run.answer("b")
    assert len(run.state.timers) == 1
    run.answer("other")
    assert (run.state.status, run.state.timers, run.state.deadlines) == ("completed", {}, {})


def test_the_time_of_the_join_is_not_that_of_its_work() -> None:
    app = weft.App("memory://")

    @app.step(timeout="5m")
    async def slow(n: int) -> int:
        return n

    graph = app.graph({
        "name": "g",
        "input": {"list": "integer[]"},
        "nodes": {
            "a": {"pass": True, "next": [{"to": "b", "for_each": "${input.list}", "as": "n"}]},
            "b": {"pass": True, "next": [{"when": "n == 1", "to": "j"}, {"to": "w"}]},
            "w": {"wait": "2h", "next": "j"},
            "j": {"join": {"wait": "all", "timeout": "1h", "on_timeout": "proceed"}, "next": "z"},
            "z": {"wait": "3h", "save": {"state.n": 1}},
        },
    })  # fmt: skip
    world = World(app)
    run = world.start(graph, {"list": [1, 2]})
    world.advance("30m")
    assert ("join", "j") in [(waiting.kind, waiting.location) for waiting in run.waiting_for()]
    before = world.now_ms
    assert run.result() == {"n": 1}
    assert world.now_ms - before == (30 * 60 + 3 * 3600) * 1000


@pytest.mark.parametrize(
    ("join", "code"),
    [
        ({"wait": "all", "on_timeout": "proceed"}, "missing_field"),
        ({"timeout": "1h"}, "missing_field"),
        ({"wait": "all", "at_least": 2}, "two_spellings"),
        ({"wait": "some", "timeout": "1h"}, "unknown_word"),
        ({"wait": "all", "timeout": "1h", "on_timeout": "approve"}, "unknown_word"),
        ({"wait": "all", "timeout": "soon"}, "bad_duration"),
        ({"wait": "edges", "at_least": 2}, "unknown_field"),
    ],
)
def test_what_does_not_fit_is_refused(join: dict[str, Any], code: str) -> None:
    document = fanned({})
    document["nodes"]["j"] = {"pass": True, "join": join}
    del document["nodes"]["z"], document["nodes"]["h"]
    assert code in codes(document)


def test_check_plays_the_deadline_too() -> None:
    for document in (fanned({"wait": "all"}), fanned({"at_least": 2, "on_timeout": "proceed"}), met("fail")):
        checked = check_document(document)
        assert checked.outcome == "sound", checked.findings
    # A join that waits for a token which never comes is no deadlock if its time runs out.
    stuck = {
        "nodes": {
            "a": {"pass": True, "next": [{"to": ["b", "c"]}]},
            "b": {"step": "s", "next": [{"to": ["d", "e"]}]},
            "c": {"step": "s", "next": "j"},
            "d": {"step": "s", "next": "m"},
            "e": {"step": "s", "next": "m"},
            "m": {"step": "s", "next": "j"},
            "j": {"join": "edges"},
        }
    }
    assert "graph.deadlock" in [found.code for found in check_document(stuck).findings]
    stuck["nodes"]["j"] = {"join": {"wait": "edges", "timeout": "1h", "on_timeout": "proceed"}}  # type: ignore[index]
    assert "graph.deadlock" not in [found.code for found in check_document(stuck).findings]


def test_the_builder_says_it_too() -> None:
    graph = weft.Graph("g")
    first = graph.join("first", wait="edges", timeout="1h", on_timeout="proceed")
    second = graph.join("second", wait=2, timeout="1h")
    assert (first.name, second.name) == ("first", "second")
    nodes = graph.to_dict()["nodes"]
    assert nodes["first"]["join"] == {"wait": "edges", "timeout": "1h", "on_timeout": "proceed"}
    assert nodes["second"]["join"] == {"at_least": 2, "timeout": "1h"}
