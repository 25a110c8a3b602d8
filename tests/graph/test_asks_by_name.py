"""Answers that name a node: one open question is meant, several are refused, a decided one is not decided again."""

from __future__ import annotations

import time
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, quoted, serving
from weft.testing import SimRun, World

DOCUMENT: dict[str, Any] = {
    "name": "reviews",
    "input": {"names": "string[]"},
    "nodes": {
        "each": {"pass": True, "next": [{"to": "review", "for_each": "${input.names}", "as": "who"}]},
        "review": {"ask": {"title": "Take ${who}?"}, "next": "all"},
        "all": {"join": "all", "merge": {"how": "append", "into": "state.answers"}, "next": "last"},
        "last": {"wait": "1h"},
    },
    "output": {"approved": "${state.answers.map(a, a.approved)}"},
}
GIVEN = {"names": ["ann", "bob"]}


def places(run: SimRun[Any]) -> list[str]:
    return [waiting.location for waiting in run.waiting_for() if waiting.kind == "ask"]


def test_a_name_of_several_open_questions_is_refused_with_their_places() -> None:
    app = weft.App("memory://")
    run = World(app).start(app.graph(DOCUMENT), GIVEN)
    found = places(run)
    assert len(found) == 2
    with pytest.raises(weft.NotAllowed) as refused:
        run.answer("review")
    assert refused.value.code == "ask.ambiguous"
    assert all(f"{run.id}:{place}" in refused.value.hint for place in found)
    assert places(run) == found

    run.answer(found[1])
    with pytest.raises(weft.AlreadyDecided):
        run.answer(found[1])
    assert places(run) == found[:1]
    run.answer("review", approved=False)
    with pytest.raises(weft.AlreadyDecided):
        run.answer("review")
    with pytest.raises(weft.NotFound):
        run.answer("last")
    assert run.result() == {"approved": [False, True]}


def test_a_question_that_is_not_asked_yet_is_not_found() -> None:
    app = weft.App("memory://")
    nodes = {"first": {"wait": "1h", "next": "review"}, "review": {"ask": {"title": "?"}}}
    run = World(app).start(app.graph({"name": "late", "nodes": nodes}), {})
    with pytest.raises(weft.NotFound):
        run.answer("review")


def test_in_a_goal_the_questions_of_a_fan_out_are_told_apart_too() -> None:
    app = weft.App("memory://")
    app.steps(
        {
            "steps": {
                "review": {
                    "ask": {"title": "Take this one?"},
                    "width": 2,
                    "needs": {"who": {"type": "array", "each": True}},
                    "gives": {"approved": "any"},
                },
                "end": {"ask": {"title": "End?"}, "needs": {"approved": "any"}, "gives": {"done": "any"}},
            }
        }
    )
    run = World(app).start(app.goal("hire", "end"), {"who": ["ann", "bob"]})
    assert places(run) == ["review[0]", "review[1]"]
    with pytest.raises(weft.NotAllowed):
        run.answer("review")
    run.answer("review[1]")
    with pytest.raises(weft.AlreadyDecided):
        run.answer("review[1]")
    run.answer("review")
    with pytest.raises(weft.AlreadyDecided):
        run.answer("review")


def open_questions(server: Server) -> list[str]:
    return [one["id"] for one in server.get(f"{API}/approvals").json["approvals"]]


def decided(server: Server, question: str) -> Any:
    return server.post(f"{API}/approvals/{quoted(question)}/decision", {"approved": True})


def test_over_http() -> None:
    app = weft.App("memory://")
    app.graph(DOCUMENT)
    with serving(app) as server:
        server.start("reviews", "r1", **GIVEN)
        while len(found := open_questions(server)) < 2:
            time.sleep(0.02)
        refused = decided(server, "r1:review")
        assert (refused.status, refused.code) == (409, "ask.ambiguous")
        assert all(place in refused.json["hint"] for place in found)
        assert open_questions(server) == found
        assert decided(server, found[0]).status == 200
        again = decided(server, found[0])
        assert (again.status, again.code) == (409, "run.already_decided")
        assert decided(server, "r1:review").status == 200
        assert decided(server, "r1:review").code == "run.already_decided"
