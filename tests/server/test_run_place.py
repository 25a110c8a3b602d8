"""One place of a run in full, and the relatives of a run, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from tests.server.kit import API, Server, covers, serving

GRAPH = {
    "name": "routed",
    "input": {"n": "integer"},
    "nodes": {
        "weigh": {
            "step": "weigh",
            "with": {"n": "${input.n}"},
            "retry": {"attempts": 3, "delay": "1ms"},
            "next": [{"to": "heavy", "when": "output > 5"}, {"to": "light"}],
        },
        "heavy": {"pass": True},
        "light": {"pass": True},
    },
}


def make_app() -> weft.App:
    app = weft.App("memory://")
    failures = [OSError("first"), OSError("second")]

    @app.step
    async def weigh(n: int) -> int:
        weft.task().emit("scale", n)
        if n == 8 and failures:
            raise failures.pop(0)
        return n

    @app.workflow
    async def child(ctx: weft.Context, n: int) -> int:
        if n == 3:
            raise ValueError("three")
        return n

    @app.workflow
    async def parent(ctx: weft.Context) -> int:
        for n in range(4):
            try:
                await ctx.call(child(n), id=f"{ctx.run_id}.{n}")
            except weft.WeftError:
                continue
        return 4

    app.graph(GRAPH)
    return app


@pytest.fixture(scope="module")
def stage() -> Iterator[Server]:
    with serving(make_app()) as running:
        yield running


@covers("getPlace")
def test_a_place_says_its_attempts_and_where_it_led(stage: Server) -> None:
    stage.start("routed", "r", n=8)
    assert stage.result("r")["status"] == "completed"
    while not stage.get(f"{API}/runs/r/streams").json["streams"]:
        pass

    place = stage.get(f"{API}/runs/r/places/1").json

    assert (place["input"], place["output"]) == ({"n": 8}, 8)
    assert [one["failure"] for one in place["attempts"]] == ["OSError: first", "OSError: second"]
    assert "raise failures.pop(0)" in place["attempts"][0]["traceback"]
    assert place["open_attempt"] is None
    assert [(one["arrow"], one["taken"]) for one in place["verdicts"]] == [("weigh>heavy", True)]
    assert place["cause"]["text"] == "the start → weigh"
    assert place["streams"] == ["scale"]
    assert stage.get(f"{API}/runs/r/values/{place['output_size']['ref']}").json == 8
    early = stage.get(f"{API}/runs/r/places/1?at={place['place']['began']}").json
    assert (early["attempts"], early["output"], early["verdicts"]) == ([], None, [])
    assert early["open_attempt"]["attempt"] == 1


@covers("getFamily")
def test_a_family_is_counted_by_workflow_and_status(stage: Server) -> None:
    stage.start("parent", "p")
    assert stage.result("p")["status"] == "completed"

    whole = stage.get(f"{API}/runs/p/family").json
    failed = stage.get(f"{API}/runs/p/family?status=failed").json
    page = stage.get(f"{API}/runs/p/family?limit=2").json
    rest = stage.get(f"{API}/runs/p/family?limit=2&cursor={page['cursor']}").json
    below = stage.get(f"{API}/runs/p.2/family").json

    assert whole["groups"] == [{"workflow": "child", "total": 4, "by_status": {"failed": 1, "completed": 3}}]
    assert [one["id"] for one in failed["children"]] == ["p.3"]
    assert [one["id"] for one in page["children"] + rest["children"]] == [one["id"] for one in whole["children"]]
    assert ([one["id"] for one in below["ancestors"]], below["groups"]) == (["p"], [])
    assert (whole["run"]["has_children"], whole["children"][0]["has_children"]) == (True, False)


@covers("diffRuns", "forkRun")
def test_two_runs_are_compared_box_by_box(stage: Server) -> None:
    stage.start("routed", "heavy", n=9)
    stage.result("heavy")
    assert stage.post(f"{API}/runs/heavy/fork", {"id": "light", "input": {"n": 2}}).status == 201
    stage.result("light")

    found = stage.get(f"{API}/runs/heavy/diff/light").json

    boxes = {one["box"]: one for one in found["boxes"]}
    assert {name: one["presence"] for name, one in boxes.items()} == dict.fromkeys(("weigh", "heavy", "light"), "both")
    assert (boxes["weigh"]["is_changed"], boxes["weigh"]["first"]["aspect"]) == (True, "input")
    assert (boxes["heavy"]["a"]["mark"], boxes["heavy"]["b"]["mark"]) == ("done", "skipped")
    same = stage.get(f"{API}/runs/heavy/diff/heavy").json
    assert (same["equal"], same["parting"]) == (True, {"a": None, "b": None})
    sides = [
        [
            event["text"]
            for event in stage.get(f"{API}/runs/{run}/events?before={found['parting'][side]}").json["events"]
        ]
        for run, side in (("heavy", "a"), ("light", "b"))
    ]
    assert sides[0] == sides[1] != []
