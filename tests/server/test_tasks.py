"""Work for workers in other languages: claimed, kept, answered, and handed to another when they are silent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop
from weft.server.leases import Ticket, read_ticket
from weft.server.limits import RequestLimits
from weft.stores import open_store

CLAIM = {"steps": ["resize"], "queues": ["elsewhere"], "wait": 10}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(shop(), limits=RequestLimits(wait_seconds=10)) as running:
        yield running


def claim(server: Server, **more: Any) -> list[Any]:
    answer = server.post(f"{API}/tasks/claim", {**CLAIM, **more})
    assert answer.status == 200, answer.raw
    tasks: list[Any] = answer.json["tasks"]
    return tasks


def one(server: Server, **more: Any) -> Any:
    (task,) = claim(server, **more)
    return task


@covers("claimTasks", "completeTask", "keepTask")
def test_a_task_is_claimed_kept_and_completed(server: Server) -> None:
    server.start("picture", "p", file="a.png")

    task = one(server)
    assert (task["run"], task["step"], task["queue"]) == ("p", "resize", "elsewhere")
    assert task["place"].startswith("resize")
    assert task["input"] == {"file": "a.png"}
    assert task["attempt"] == 1
    assert server.post(f"{API}/tasks/{task['id']}/heartbeat").json == {"lease": 30.0}
    assert server.post(f"{API}/tasks/{task['id']}/complete", {"output": {"size": 7}}).json == {"run": "p"}
    assert server.result("p")["output"] == {"size": 7}


def test_a_claim_waits_for_work(server: Server) -> None:
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(one(server)))
    waiting.start()
    server.start("picture", "p", file="a.png")
    waiting.join(120)

    assert found[0]["run"] == "p"


def test_no_work_is_an_answer(server: Server) -> None:
    assert claim(server, wait=0) == []
    assert claim(server, wait=0.1) == []
    assert server.inside(hosts_listed(server)) == 1


async def hosts_listed(server: Server) -> int:
    """How many hosts the store knows: the server's own, and claims that are open."""
    return len(server.app.service.store.content.hosts)  # type: ignore[attr-defined]


def test_other_queues_and_steps_are_left_alone(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    server.until("p", "task_scheduled")

    assert claim(server, queues=["default"], wait=0.2) == []
    assert claim(server, steps=["other"], wait=0.2) == []
    assert claim(server)[0]["run"] == "p"


def test_a_task_is_claimed_by_one(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    one(server)

    assert claim(server, wait=0.2) == []


def test_the_same_key_gets_the_same_tasks_again(server: Server) -> None:
    """A worker whose answer was lost asks again, and loses nothing."""
    server.start("picture", "p", file="a.png")
    first = server.post(f"{API}/tasks/claim", CLAIM, Idempotency_Key="mine").json["tasks"]

    again = server.post(f"{API}/tasks/claim", CLAIM, Idempotency_Key="mine").json["tasks"]

    assert first
    assert again == first


@covers("failTask")
def test_a_failed_attempt_is_tried_again_until_the_policy_says_no(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    keys = set()
    for attempt in (1, 2, 3):
        task = one(server)
        assert task["attempt"] == attempt
        keys.add(task["key"])
        answer = server.post(f"{API}/tasks/{task['id']}/fail", {"message": "no disk", "type": "DiskFull"})
        assert answer.status == 200

    failure = server.result("p")["failure"]
    assert len(keys) == 1
    assert "no disk" in failure["message"]


def test_a_failure_that_no_retry_can_help_is_final(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    task = one(server)

    server.post(f"{API}/tasks/{task['id']}/fail", {"message": "not a picture", "retry": False})

    assert server.result("p")["status"] == "failed"


def test_a_claim_that_is_silent_loses_its_task_to_another_and_comes_too_late(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    late = one(server, lease=0.2)

    task = one(server)
    assert task["key"] == late["key"]
    assert task["id"] != late["id"]
    for what, body in (("heartbeat", {}), ("complete", {"output": 1}), ("fail", {"message": "x"})):
        answer = server.post(f"{API}/tasks/{late['id']}/{what}", body)
        assert (answer.status, answer.code) == (409, "task.not_yours")
    server.post(f"{API}/tasks/{task['id']}/complete", {"output": {"size": 2}})
    assert server.result("p")["output"] == {"size": 2}


LEASES = (1.0, 5.0, 25.0)
"""One of them is long enough for the pauses of a busy machine."""


def is_kept(claimed: Server, kept: Server, lease: float) -> bool:
    """Claim a task of a new run, keep it with heartbeats for longer than its lease, and complete it."""
    claimed.start("picture", f"p-{lease}", file="a.png")
    task = one(claimed, lease=lease)
    others: list[Any] = []
    beats = []
    for _ in range(6):
        others += claim(kept, wait=lease / 4)
        beats.append(kept.post(f"{API}/tasks/{task['id']}/heartbeat"))
    done = kept.post(f"{API}/tasks/{task['id']}/complete", {"output": {"size": 3}})
    if done.status != 200:  # for the next one there is to be one task only
        for other in others or claim(kept, wait=10):
            kept.post(f"{API}/tasks/{other['id']}/complete", {"output": {"size": 0}})
        return False
    assert not others
    assert {(beat.status, beat.json["lease"]) for beat in beats} == {(200, lease)}
    return bool(claimed.result(f"p-{lease}")["output"] == {"size": 3})


def test_heartbeats_keep_a_task_beyond_its_lease(server: Server) -> None:
    assert any(is_kept(server, server, lease) for lease in LEASES)


def test_other_hosts_see_that_a_worker_is_alive_by_its_heartbeats(tmp_path: Path) -> None:
    """A host that never spoke to the worker looks at the store only."""
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    with serving(shop(url), limits=RequestLimits(wait_seconds=10)) as server:
        server.start("picture", "p", file="a.png")
        task = one(server, lease=600)
        holder = read_ticket(task["id"]).host

        async def look() -> tuple[bool, bool, bool]:
            elsewhere = open_store(url)
            await elsewhere.open()
            try:
                at_first = holder in await elsewhere.hosts.find_dead(monotonic=0.0)
                beat = await asyncio.to_thread(server.post, f"{API}/tasks/{task['id']}/heartbeat")
                assert beat.status == 200
                after_a_beat = holder in await elsewhere.hosts.find_dead(monotonic=10_000.0)
                return at_first, after_a_beat, holder in await elsewhere.hosts.find_dead(monotonic=20_000.0)
            finally:
                await elsewhere.close()

        assert asyncio.run(look()) == (False, False, True)


def test_heartbeats_may_reach_another_process_than_the_claim_did(tmp_path: Path) -> None:
    """Several processes may answer at one address: whoever made a claim looks into the store before it ends it."""
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    limits = RequestLimits(wait_seconds=10)
    with serving(shop(url), limits=limits) as here, serving(shop(url), limits=limits) as there:
        assert any(is_kept(here, there, lease) for lease in LEASES)


def test_the_same_answer_twice_is_one_and_another_is_refused(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    path = f"{API}/tasks/{one(server)['id']}/complete"

    assert server.post(path, {"output": {"size": 4}}).status == 200
    assert server.post(path, {"output": {"size": 4}}).status == 200
    assert server.post(path, {"output": {"size": 5}}).code == "task.not_yours"
    assert server.result("p")["output"] == {"size": 4}


def test_a_task_that_nobody_waits_for_any_more_is_not_kept(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    task = one(server)
    server.post(f"{API}/runs/p/cancel")
    assert server.result("p")["status"] == "cancelled"

    assert server.post(f"{API}/tasks/{task['id']}/complete", {"output": 1}).code == "task.not_yours"


def test_several_tasks_are_claimed_at_once_and_the_claim_ends_with_the_last(server: Server) -> None:
    for n in range(3):
        server.start("picture", f"p-{n}", file=f"{n}.png")
        server.until(f"p-{n}", "task_scheduled")
    tasks: list[Any] = []
    while len(tasks) < 3:
        tasks += claim(server, limit=5)

    for task in tasks:
        server.post(f"{API}/tasks/{task['id']}/complete", {"output": {"size": 1}})
    assert {server.result(f"p-{n}")["status"] for n in range(3)} == {"completed"}
    assert server.inside(hosts_listed(server)) == 1


@covers("emitOutput")
def test_a_worker_elsewhere_writes_output_while_it_works(server: Server) -> None:
    server.start("picture", "p", file="a.png")
    task = one(server)
    path = f"{API}/tasks/{task['id']}/emit"

    assert server.post(path, {"stream": "log", "chunks": ["one", "two"]}).status == 200
    assert server.post(path, {"stream": "log", "chunks": ["two", "three"], "first": 1}).status == 200
    assert server.post(path, {"stream": "a/b", "chunks": ["x"]}).status == 422
    assert server.post(path, {"stream": "log", "chunks": ["x" * 70_000]}).status == 413

    chunks = server.get(f"{API}/runs/p/streams/log").json["chunks"]
    assert [(chunk["offset"], chunk["chunk"]) for chunk in chunks] == [(1, "one"), (2, "two"), (3, "three")]
    assert {chunk["by"] for chunk in chunks} == {task["place"]}


@pytest.mark.parametrize(
    "id", ["x", "%FF", "W10", str(Ticket("http-x", "u", 1, 1, 1)), str(Ticket("host", "u", 1, 1, 1)), "A" * 3000]
)
@pytest.mark.parametrize("what", ["heartbeat", "complete", "fail"])
def test_a_task_that_was_never_claimed_is_refused(server: Server, id: str, what: str) -> None:
    answer = server.post(f"{API}/tasks/{id}/{what}", {"message": "x"} if what == "fail" else {})

    assert answer.status in (400, 404, 409)


def test_the_hosts_of_a_run_cannot_be_named_as_claims(server: Server) -> None:
    """Only what was claimed over HTTP can be answered over HTTP."""
    local = server.app.service.local
    assert local is not None
    answer = server.post(f"{API}/tasks/{Ticket(local.host, 'u', 1, 1, 1)}/complete", {"output": 1})

    assert answer.code == "run.not_found"
