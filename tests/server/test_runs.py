"""Starting runs, finding them, looking at one, over HTTP."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

import weft
from tests.server.kit import API, Server, covers, quoted, serving
from weft.core.ids import HostId
from weft.ports.store import Append, Outcome
from weft.stores.memory.log import MemoryLog


@covers("startRun", "getResult")
def test_a_run_is_started_and_its_result_is_waited_for(server: Server) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "anna"}, "id": "hello-1"})

    assert answer.status == 201
    assert answer.json == {"id": "hello-1", "created": True}
    assert answer.headers["location"] == f"{API}/runs/hello-1"
    result = server.get(f"{API}/runs/hello-1/result?wait=10")
    assert result.status == 200
    assert result.json["status"] == "completed"
    assert result.json["output"] == "hello anna!"


@pytest.mark.parametrize(
    ("workflow", "given", "findings"),
    [
        ("hello", {}, [("/name", "This is needed.")]),
        ("hello", {"name": 1}, [("/name", "name must be a string, got an integer.")]),
        ("hello", {"name": "a", "more": 1}, [("/more", "There is no such field.")]),
    ],
)
def test_a_refused_input_says_at_which_field(
    server: Server, workflow: str, given: dict[str, object], findings: list[tuple[str, str]]
) -> None:
    answer = server.post(f"{API}/runs", {"workflow": workflow, "input": given})

    assert [(one["path"], one["message"]) for one in answer.json["findings"]] == findings


def test_without_an_id_a_run_gets_one(server: Server) -> None:
    first, second = (server.start("hello", name="anna") for _ in range(2))

    assert first != second
    assert first.startswith("hello-")


def test_the_same_id_workflow_and_input_are_the_same_run(server: Server) -> None:
    new = {"workflow": "hello", "input": {"name": "b"}, "id": "same"}
    assert server.post(f"{API}/runs", new).status == 201

    again = server.post(f"{API}/runs", new)

    assert again.status == 200
    assert again.json == {"id": "same", "created": False}


def test_an_id_with_another_input_is_taken(server: Server) -> None:
    server.start("hello", "taken", name="a")

    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "b"}, "id": "taken"})

    assert answer.status == 409
    assert answer.code == "run.id_taken"
    assert '"a" there, "b" here' in answer.json["detail"]


def test_existing_refuse_takes_only_new_ids(server: Server) -> None:
    new = {"workflow": "hello", "input": {"name": "a"}, "id": "only-new", "existing": "refuse"}
    assert server.post(f"{API}/runs", new).status == 201

    assert server.post(f"{API}/runs", new).code == "run.id_taken"


def test_the_same_key_is_the_same_run_also_for_many_at_once(server: Server) -> None:
    new = {"workflow": "hello", "input": {"name": "k"}}

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: server.post(f"{API}/runs", new, Idempotency_Key="k-1"), range(24)))

    assert {answer.status for answer in answers} <= {200, 201}
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sum(answer.json["created"] for answer in answers) == 1


def test_a_key_that_comes_back_with_another_start_is_refused(server: Server) -> None:
    server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}}, Idempotency_Key="k-2")

    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "b"}}, Idempotency_Key="k-2")

    assert answer.status == 409
    assert answer.code == "run.key_reused"


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "gr\u00fcn"])
def test_a_key_that_cannot_be_one_is_refused(server: Server, key: str) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}}, Idempotency_Key=key)

    assert answer.status == 422


@pytest.mark.parametrize(
    ("new", "status", "code"),
    [
        ({"workflow": "nobody"}, 404, "usage.unknown_workflow"),
        ({"workflow": "hello"}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": {"name": 1}}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": {"name": "a", "more": 1}}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": {"name": "a\x00b"}}, 422, "value.not_json"),
        ({"workflow": "hello", "input": {"name": "a"}, "id": " a"}, 422, "usage.invalid"),
        ({"workflow": "hello", "input": {"name": "a"}, "id": ""}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": {"name": "a"}, "version": "7"}, 404, "usage.unknown_workflow"),
        ({"workflow": "hello", "input": {"name": "a"}, "unknown": 1}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": ["a"]}, 422, "value.wrong_type"),
        ({"workflow": "picture", "input": {"file": 1}}, 422, "value.wrong_type"),
        ({"workflow": "hello", "input": {"name": "a"}, "delay": -1}, 422, "value.wrong_type"),
        ([], 422, "value.wrong_type"),
    ],
)
def test_a_start_that_is_wrong_is_refused_and_nothing_is_written(
    server: Server, new: object, status: int, code: str
) -> None:
    before = len(server.get(f"{API}/runs?limit=500").json["runs"])

    answer = server.post(f"{API}/runs", new)

    assert (answer.status, answer.code) == (status, code)
    assert len(server.get(f"{API}/runs?limit=500").json["runs"]) == before


def test_a_run_may_be_put_off(server: Server) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "later"}, "id": "late", "delay": 3600})

    assert answer.status == 201
    assert server.get(f"{API}/runs/late/result").status == 202
    assert server.get(f"{API}/runs/late/explain").json["status"] == "pending"


@covers("listRuns")
def test_runs_are_found_by_workflow_status_attribute_and_prefix_in_pages(server: Server) -> None:
    for n in range(5):
        server.result(server.start("hello", f"page-{n}", name=f"name {n}"))

    found = server.get(f"{API}/runs?prefix=page-&limit=2").json
    assert [run["id"] for run in found["runs"]] == ["page-4", "page-3"]
    rest = server.get(f"{API}/runs?prefix=page-&limit=3&cursor={quoted(found['cursor'])}").json
    assert [run["id"] for run in rest["runs"]] == ["page-2", "page-1", "page-0"]
    assert rest["cursor"] is None

    by_name = server.get(f"{API}/runs?where={quoted('name=name 3')}").json
    assert [run["id"] for run in by_name["runs"]] == ["page-3"]
    assert by_name["runs"][0]["attributes"] == {"name": "name 3"}
    assert server.get(f"{API}/runs?workflow=order&prefix=page-").json["runs"] == []
    assert server.get(f"{API}/runs?status=running&prefix=page-").json["runs"] == []
    assert len(server.get(f"{API}/runs?status=completed&prefix=page-&since=2020-01-01T00:00:00Z").json["runs"]) == 5
    assert server.get(f"{API}/runs?prefix=page-&since=2199-01-01T00:00:00Z").json["runs"] == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "status=lost", "cursor=nonsense", "since=yesterday", "other=1", "limit=1&limit=2"]
)
def test_a_query_that_is_wrong_is_refused(server: Server, query: str) -> None:
    assert server.get(f"{API}/runs?{query}").status == 422


@covers("getRun")
def test_one_run_shows_what_it_was_given_and_what_came_of_it(server: Server) -> None:
    server.result(server.start("hello", "shown/with slash", name="anna", tail="?"))

    run = server.get(f"{API}/runs/{quoted('shown/with slash')}").json

    assert run["id"] == "shown/with slash"
    assert run["input"] == {"name": "anna", "tail": "?"}
    assert run["output"] == "hello anna?"
    assert run["status"] == "completed"
    assert run["failure"] is None
    assert run["ended_at"] >= run["created_at"]
    assert run["steps_done"] == 1


def test_a_failed_run_shows_why(server: Server) -> None:
    result = server.result(server.start("fragile", "fragile-1", n=1))

    assert result["status"] == "failed"
    assert "broken 1" in result["failure"]["message"]
    assert server.get(f"{API}/runs/fragile-1").json["failure"] == {**result["failure"], "box": "break_down"}


def test_a_child_names_its_parent_and_is_found_by_it(server: Server) -> None:
    assert server.result(server.start("family", "family-1"))["output"] == "hello child!"

    assert server.get(f"{API}/runs/family-1.child").json["parent"] == "family-1"
    assert [run["id"] for run in server.get(f"{API}/runs?parent=family-1").json["runs"]] == ["family-1.child"]


@covers("getTree")
def test_the_tree_has_what_was_recorded_and_the_children(server: Server) -> None:
    server.result(server.start("family", "family-2"))

    tree = server.get(f"{API}/runs/family-2/tree").json

    assert tree["run"]["id"] == "family-2"
    assert [(place["kind"], place["child"]) for place in tree["places"]] == [("child", "family-2.child")]
    (child,) = tree["children"]
    assert [place["place"] for place in child["places"]] == ["set", "greet"]
    assert child["places"][1]["output"] == "hello child"
    assert server.get(f"{API}/runs/family-2/tree?depth=0").json["left_out"] == 1


@covers("listEvents")
def test_the_log_is_read_in_pages(server: Server) -> None:
    server.result(server.start("hello", "logged", name="a"))

    first = server.get(f"{API}/runs/logged/events?limit=2").json
    assert [event["kind"] for event in first["events"]] == ["run_started", "attributes_set"]
    assert first["after"] == 2
    rest = server.get(f"{API}/runs/logged/events?after=2").json
    assert [event["kind"] for event in rest["events"]] == ["task_scheduled", "task_succeeded", "run_completed"]
    assert rest["after"] is None
    assert rest["events"][1]["data"]["output"] == "hello a"


@covers("explainRun")
def test_a_run_explains_what_it_waits_for(server: Server) -> None:
    server.start("order", "explained", order_id="o")
    server.until("explained", "message_awaited")

    told = server.get(f"{API}/runs/explained/explain").json

    assert told["waiting"][0]["kind"] == "message"
    assert told["waiting"][0]["unblock"] == "weft send explained quote BODY"


def test_a_result_that_does_not_come_in_time_is_not_an_error(server: Server) -> None:
    server.start("order", "waiting", order_id="o")

    answer = server.get(f"{API}/runs/waiting/result?wait=0.05")

    assert answer.status == 202
    assert answer.json["status"] == "running"


@pytest.mark.parametrize("what", ["", "/events", "/tree", "/result", "/explain", "/live", "/streams", "/streams/x"])
def test_a_run_that_does_not_exist_is_not_found(server: Server, what: str) -> None:
    answer = server.get(f"{API}/runs/nobody{what}")

    assert answer.status == 404
    assert answer.code == "run.not_found"
    assert answer.json["detail"] == "No run 'nobody'.", "where the runs are kept is nobody's business"


def test_a_failure_has_its_traceback(server: Server) -> None:
    server.start("fragile", "traced", n=77)

    failure = server.get(f"{API}/runs/traced/result?wait=10").json["failure"]

    assert failure["traceback"].startswith("Traceback (most recent call last):\n")
    assert "raise " in failure["traceback"]


def test_a_run_whose_end_is_still_being_committed_is_shown_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    app = weft.App("memory://")
    commit, told = MemoryLog.commit, asyncio.Event()

    async def slow(log: MemoryLog, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        outcomes = await commit(log, batch, host)
        if any(append.status == "completed" for append in batch):
            await told.wait()
        return outcomes

    monkeypatch.setattr(MemoryLog, "commit", slow)

    @app.workflow
    async def greet(ctx: weft.Context) -> str:
        await ctx.sleep("1ms")
        return "hello"

    with serving(app) as server, ThreadPoolExecutor(1) as aside:
        server.start("greet", "g")
        while server.get(f"{API}/runs?status=completed").json["runs"] == []:
            time.sleep(0.01)
        shown = aside.submit(server.get, f"{API}/runs/g")
        server.loop.call_soon_threadsafe(server.loop.call_later, 0.5, told.set)
        answer = shown.result()

    assert (answer.status, answer.json["status"], answer.json["output"]) == (200, "completed", "hello")
