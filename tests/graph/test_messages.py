"""Messages in graphs: a node waits for one, another node answers it."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.graph.documents import refused
from weft.testing import World, crash_everywhere

LOOP = {
    "weft": "graph/1",
    "name": "account",
    "state": {"total": "integer"},
    "output": {"total": "${state.total}"},
    "nodes": {
        "begin": {"pass": True, "save": {"state.total": 0}, "next": "deposit"},
        "deposit": {"receive": {"name": "deposit", "type": "integer"}, "next": "add"},
        "add": {"pass": True, "save": {"state.total": "${state.total + nodes.deposit.output}"}, "next": "reply"},
        "reply": {
            "answer": {"to": "deposit", "value": {"total": "${state.total}"}},
            "repeat": {"while": "nodes.deposit.output != 0", "at_most": 100, "back_to": "deposit"},
        },
    },
}


def app_with(document: dict[str, Any]) -> tuple[weft.App, weft.Graph]:
    app = weft.App("memory://")
    return app, app.graph(document)


def one(**receive: Any) -> dict[str, Any]:
    node = {"receive": {"name": "quote", **receive}, "next": "done", "catch": [{"to": "late"}]}
    nodes = {"wait": node, "done": {"pass": True, "save": {"state.got": "${output}"}}, "late": {"pass": True}}
    return {
        "weft": "graph/1",
        "name": "one",
        "output": {"got": "${state.got}"},
        "state": {"got": "any"},
        "nodes": nodes,
    }


def test_the_body_of_a_message_is_the_output_of_the_node_that_waits_for_it() -> None:
    app, graph = app_with(one(type={"cents": "integer"}))
    world = World(app)
    run = world.start(graph, {})
    assert [(w.kind, w.what) for w in run.waiting_for()] == [("message", 'a message "quote"')]

    run.send("quote", {"cents": 5})

    assert run.result() == {"got": {"cents": 5}}


def test_a_message_that_came_before_is_taken_at_once() -> None:
    document = one()
    document["nodes"]["first"] = {"wait": "1h", "next": "wait"}
    app, graph = app_with(document)
    run = World(app).start(graph, {})
    run.send("quote", 1)
    run.send("quote", 2)

    assert run.result() == {"got": 1}


def test_a_message_that_does_not_fit_is_refused_and_the_wait_goes_on_no_longer_than_before() -> None:
    app, graph = app_with(one(type="integer", timeout="1h"))
    world = World(app)
    run = world.start(graph, {})
    world.advance("40m")
    run.send("quote", "five")
    assert "message_refused" in [event.kind for event in run.events]
    world.advance("30m")

    assert run.result() == {"got": None}


def test_a_large_message_is_checked_too() -> None:
    app, graph = app_with(one(type="string"))
    run = World(app).start(graph, {})
    run.send("quote", ["x" * 100_000])
    run.send("quote", "y" * 100_000)

    assert run.result() == {"got": "y" * 100_000}


def test_a_wait_that_times_out_fails_the_node() -> None:
    app, graph = app_with(one(timeout="1h"))

    assert World(app).run(graph, {}) == {"got": None}


def test_each_request_gets_its_own_answer_round_by_round() -> None:
    app, graph = app_with(LOOP)
    run = World(app).start(graph, {})

    assert run.request("deposit", 5) == {"total": 5}
    with pytest.raises(weft.BadValue, match="refused the message"):
        run.request("deposit", "much")
    assert run.request("deposit", 7) == {"total": 12}
    assert run.request("deposit", 0) == {"total": 12}
    assert run.result() == {"total": 12}


def test_a_request_to_a_node_that_nobody_answers_for_gets_null() -> None:
    app, graph = app_with(one())
    run = World(app).start(graph, {})

    assert run.request("quote", 1) is None


def test_branches_answer_what_they_took() -> None:
    nodes = {
        "split": {"pass": True, "next": {"to": ["take"], "for_each": "${[1, 2, 3]}"}},
        "take": {"receive": "n", "next": "reply"},
        "reply": {"answer": {"to": "take", "value": "${nodes.take.output * 10}"}, "next": "all"},
        "all": {"join": "all"},
    }
    app, graph = app_with({"weft": "graph/1", "name": "many", "nodes": nodes})
    run = World(app).start(graph, {})

    assert [run.request("n", n) for n in (1, 2, 3)] == [10, 20, 30]
    run.result()


def test_killed_at_every_boundary_no_answer_is_lost() -> None:
    app, graph = app_with(LOOP)

    def scenario(world: World) -> None:
        run = world.start(graph, {}, id="a")
        assert run.request("deposit", 5, key="one") == {"total": 5}
        assert run.request("deposit", 0, key="two") == {"total": 5}
        assert run.result() == {"total": 5}

    assert crash_everywhere(app, scenario) > 5


def test_a_losing_branch_lets_go_of_its_wait() -> None:
    nodes = {
        "split": {"pass": True, "next": {"to": ["quick", "slow"]}},
        "quick": {"receive": "quick", "next": "any"},
        "slow": {"receive": "slow", "next": "any"},
        "any": {"join": "any"},
    }
    app, graph = app_with({"weft": "graph/1", "name": "race", "nodes": nodes})
    world = World(app)
    run = world.start(graph, {})
    run.send("quick", 1)

    run.result()


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"receive": {"type": "string"}}, "name"),
        ({"receive": {"name": "a/b"}}, "is not a valid name"),
        ({"receive": {"name": "a", "type": "strin"}}, 'no type "strin"'),
        ({"receive": {"name": "a", "tipe": "string"}}, "tipe"),
        ({"answer": {"value": 1}}, "to"),
        ({"answer": {"to": "nobody", "value": 1}}, 'no node "nobody"'),
        ({"answer": {"to": "other", "value": 1}}, '"other" receives no message'),
    ],
)
def test_what_is_wrong_with_such_a_node_is_said_before_anything_runs(node: dict[str, Any], said: str) -> None:
    found = refused(
        {"weft": "graph/1", "name": "g", "nodes": {"a": {**node, "next": "other"}, "other": {"pass": True}}}
    )

    assert any(said in str(finding) for finding in found), found


def test_an_answer_without_a_message_fails_its_node() -> None:
    nodes = {
        "choose": {"pass": True, "next": [{"when": "false", "to": "take"}, {"to": "reply"}]},
        "take": {"receive": "n", "next": "reply"},
        "reply": {"answer": {"to": "take", "value": 1}},
    }
    app, graph = app_with({"weft": "graph/1", "name": "odd", "nodes": nodes})

    with pytest.raises(weft.RunFailed, match="received no message"):
        World(app).run(graph, {})


def parallel(to: str, **nodes: Any) -> dict[str, Any]:
    """`r` receives in a branch; the branch beside it goes to `to`."""
    return {
        "weft": "graph/1",
        "name": "parallel",
        "nodes": {
            "a": {"pass": True, "next": [{"to": ["r", "b"]}]},
            "r": {"receive": "quote", "next": "j"},
            "b": {"pass": True, "next": to},
            "j": {"join": "all", "next": "end"},
            "end": {"pass": True},
            **nodes,
        },
    }


def test_an_answer_in_a_branch_beside_its_receive_is_refused() -> None:
    document = parallel("say", say={"answer": {"to": "r", "value": 1}, "next": "j"})

    (finding,) = refused(document)

    assert finding.code == "graph.answer_without_message"
    assert finding.path == "nodes.say.answer.to"
    assert "no path leads from r to it" in finding.message


def test_an_answer_behind_the_join_of_its_receive_is_sound() -> None:
    document = parallel("j", end={"answer": {"to": "r", "value": 1}})

    assert weft.Graph.of(document).check() == []


def test_an_answer_that_only_some_ways_to_it_can_give_is_warned_of() -> None:
    nodes = {
        "a": {"pass": True, "next": [{"when": "input.ask", "to": "r"}, {"to": "say"}]},
        "r": {"receive": "quote", "next": "say"},
        "say": {"answer": {"to": "r", "value": 1}},
    }
    graph = weft.Graph.of({"weft": "graph/1", "name": "some", "input": {"ask": "boolean"}, "nodes": nodes})

    (finding,) = graph.check()

    assert (finding.code, finding.severity) == ("graph.answer_without_message", "warning")
    assert "fails on paths that do not pass through r" in finding.message
