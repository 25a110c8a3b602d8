"""Forks over HTTP: made once for each key, found from both sides, refused with a code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, covers


def fork(server: Server, run: str, *, key: str = "", **order: Any) -> Any:
    headers = {"Idempotency_Key": key} if key else {}
    return server.post(f"{API}/runs/{run}/fork", order, **headers)


@pytest.fixture
def done(server: Server) -> str:
    run = server.start("hello", name="ann")
    server.result(run)
    return run


@covers("forkRun")
def test_a_fork_goes_on_by_itself_and_both_name_each_other(server: Server, done: str) -> None:
    made = fork(server, done, at=1, input={"name": "bob"}, reason="to try it", by="ann")

    assert made.status == 201
    assert (made.json["original"], made.json["seq"]) == (done, 1)
    assert server.result(made.json["id"])["output"] == "hello bob!"
    assert server.get(f"{API}/runs/{made.json['id']}").json["forked_from"] == {"run": done, "seq": 1}
    events = server.get(f"{API}/runs/{made.json['id']}/events").json["events"]
    forked = next(event for event in events if event["kind"] == "run_forked")
    assert (forked["data"]["by"], forked["data"]["reason"]) == ("ann", "to try it")
    assert server.get(f"{API}/runs/{done}").json["forks"] == [made.json["id"]]
    listed = server.get(f"{API}/runs?forks={done}").json["runs"]
    assert [run["id"] for run in listed] == [made.json["id"]]


def test_a_repeated_request_makes_no_second_fork(server: Server, done: str) -> None:
    first = fork(server, done, key="once", before="greet")
    again = fork(server, done, key="once", before="greet")

    assert first.json["id"] == again.json["id"]
    assert len(server.get(f"{API}/runs?forks={done}").json["runs"]) == 1


@pytest.mark.parametrize(
    ("order", "status", "code"),
    [
        ({"at": 99}, 409, "fork.no_point"),
        ({"before": "nowhere"}, 404, "fork.no_place"),
        ({"before": "greet", "visit": 2}, 404, "fork.no_place"),
        ({"failure": True}, 409, "fork.no_place"),
        ({"state": {"x": 1}, "given": {"y": 1}}, 409, "fork.bad_edit"),
        ({"at": 1, "before": "greet"}, 422, "usage.invalid"),
        ({"at": 0}, 422, "value.wrong_type"),
        ({"effects": "some"}, 422, "value.wrong_type"),
        ({"input": {"nobody": 1}}, 422, "value.wrong_type"),
        ({"input": {"name": 7}}, 422, "value.wrong_type"),
        ({"set": {"nowhere": 1}}, 409, "fork.bad_edit"),
    ],
)
def test_a_bad_order_is_refused_and_nothing_is_written(
    server: Server, done: str, order: dict[str, Any], status: int, code: str
) -> None:
    refused = fork(server, done, **order)

    assert (refused.status, refused.json["code"]) == (status, code), refused.json
    assert server.get(f"{API}/runs?forks={done}").json["runs"] == []


def test_each_edit_that_cannot_be_is_a_finding(server: Server, done: str) -> None:
    refused = fork(server, done, set={"nowhere": 1, "nobody": 2}, state={"x": 1})

    assert [(one["code"], one["message"]) for one in refused.json["findings"]] == [
        ("fork.bad_edit", "a code run has no state to set."),
        ("fork.bad_edit", "the run never came to a step nowhere."),
        ("fork.bad_edit", "the run never came to a step nobody."),
    ]


def test_an_id_that_is_taken_is_refused(server: Server, done: str) -> None:
    assert fork(server, done, id=done).json["code"] == "run.id_taken"


def test_words_are_read_by_the_types_of_the_workflow(server: Server, done: str) -> None:
    made = fork(server, done, input={"name": "7"}, words=["name"])

    assert server.result(made.json["id"])["output"] == "hello 7!"


def test_a_client_is_told_which_argument_is_wrong(server: Server, done: str) -> None:
    async def play() -> None:
        async with weft.Client(server.url) as client:
            await client.get(done).fork(input={"nmae": "bob"})

    with pytest.raises(weft.BadValue, match='has no parameter "nmae"'):
        asyncio.run(play())


def test_a_client_forks_too(server: Server, done: str) -> None:
    async def play() -> Any:
        async with weft.Client(server.url) as client:
            forked = await client.get(done).fork(after="greet", set={"greet": "bye"}, id=f"{done}-x")
            return forked.id, await forked.result(timeout=200)

    assert asyncio.run(play()) == (f"{done}-x", "bye!")


@covers("diffRuns")
def test_two_runs_are_compared(server: Server, done: str) -> None:
    other = fork(server, done, after="greet", set={"greet": "bye"}).json["id"]
    server.result(other)

    found = server.get(f"{API}/runs/{done}/diff/{other}").json

    assert found["equal"] is False
    assert found["runs"]["first"]["place"] == "greet"
    assert server.get(f"{API}/runs/{done}/diff/{done}").json["equal"] is True
    assert server.get(f"{API}/runs/{done}/diff/{other}?at_a=1&at_b=1").json["equal"] is True
    assert server.get(f"{API}/runs/{done}/diff/nothing").status == 404

    async def play() -> Any:
        async with weft.Client(server.url) as client:
            return await client.diff(done, other)

    assert asyncio.run(play()).runs.first.aspect == "value"


@covers("getUnitedPicture")
def test_the_pictures_of_two_runs_are_laid_over_each_other(server: Server, done: str) -> None:
    server.start("ship", f"{done}-ship", order_id="o-1")
    server.until(f"{done}-ship", "ask_opened")
    own = server.get(f"{API}/runs/{done}/picture").json

    both = server.get(f"{API}/runs/{done}/diff/{done}-ship/picture").json

    boxes = {box["id"] for box in both["boxes"]}
    assert {box["id"] for box in own["boxes"]} < boxes
    assert "carrier" in boxes
    assert server.get(f"{API}/runs/{done}/diff/{done}/picture").json == own
    assert server.get(f"{API}/runs/{done}/diff/nothing/picture").status == 404
