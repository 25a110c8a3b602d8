"""The routes about the installation: hosts, queues, keys, status and series, saved views, help and schemas."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec import structs

from tests.server.keyring import Caller
from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop
from weft.agents.models.prices import Prices
from weft.core.ids import HostId, Millis, RunId
from weft.observe.error_pages import page
from weft.ports.tasks import KeyLimit, TaskOffer
from weft.ports.wals import Loss, LossReason
from weft.runtime.held_models import HeldModels
from weft.server.series import STEPS, Series
from weft.steps.secrets import Secret


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(shop()) as running:
        yield running


@covers("listHosts")
def test_a_host_is_listed_with_its_address_and_what_it_owns(server: Server) -> None:
    local = server.app.service.local
    assert local is not None
    server.start("order", "o-1", order_id="o-1")
    server.until("o-1", "message_awaited")
    server.inside(server.app.service.store.hosts.describe(local.host, {"address": "http://127.0.0.1:7"}))

    (host,) = server.get(f"{API}/hosts").json["hosts"]

    assert host["host"] == local.host
    assert (host["address"], host["here"], host["gone"], host["runs"]) == ("http://127.0.0.1:7", True, False, 1)
    assert {"order", "ship"} <= set(host["workflows"])
    assert host["pid"]


@covers("listQueues", "limitQueue")
def test_a_queue_shows_what_waits_and_that_nobody_performs_it(server: Server) -> None:
    run = server.start("picture", file="a.png")
    server.until(run, "node_routed")
    while not (found := [one for one in server.get(f"{API}/queues").json["queues"] if one["queue"] == "elsewhere"]):
        time.sleep(0.01)

    assert (found[0]["waiting"], found[0]["running"], found[0]["concurrency"]) == (1, 0, None)
    assert found[0]["since"]

    limited = server.ask("PUT", f"{API}/queues/elsewhere", {"concurrency": 2, "rate": 5, "per_seconds": 60})
    assert limited.status == 200
    names = ("queue", "waiting", "concurrency", "rate", "per_seconds", "priority")
    assert [limited.json[name] for name in names] == ["elsewhere", 1, 2, 5, 60.0, 0]

    freed = server.ask("PUT", f"{API}/queues/elsewhere", {})
    assert (freed.json["concurrency"], freed.json["rate"]) == (None, None)
    assert server.inside(server.app.service.store.tasks.limits()) == {}


@covers("listModels")
def test_the_models_of_a_host_are_listed_without_their_keys() -> None:
    app = shop()
    key = Secret("env:SHOP_MODEL_KEY")
    app.model("fast", url="https://api.example.com/v1", key=key, prices=Prices("0.25", "2"), fallback=["local"])
    app.model("local", url="http://127.0.0.1:8080/v1")
    with serving(app) as server:
        held = HeldModels(server.app.service.store.memos, server.app.service.clock, lambda: ["fast"])
        server.inside(held.hold("fast", 60_000))

        answer = server.get(f"{API}/models")
        first, second = answer.json["models"]

        assert (first["name"], first["fallback"], first["hosts"]) == ("fast", ["local"], 1)
        assert first["prices"] == {"input": "0.25", "output": "2", "cached": "0.25", "currency": "USD"}
        assert first["held_until"]
        assert (second["name"], second["prices"], second["held_until"]) == ("local", None, None)
        assert "SHOP_MODEL_KEY" not in str(answer.json)


@covers("listLimits")
def test_limits_of_steps_are_listed_with_their_keys(server: Server) -> None:
    store = server.app.service.store
    limit = KeyLimit(concurrency=1, rate=20, key="customer")
    server.inside(store.tasks.declare({"step/charge": limit, "workflow/order": KeyLimit(concurrency=3)}))
    server.start("order", "o-1", order_id="o-1")
    server.until("o-1", "message_awaited")
    row = server.inside(store.directory.find(RunId("o-1")))
    assert row is not None
    task = TaskOffer(
        uid=row.uid, task=77, attempt=1, delivery=1, step="nobody", queue="default", body=b"{}", epoch=row.epoch
    )
    offers = [structs.replace(task, task=77 + n, limit="step/charge", key="ann") for n in range(2)]
    server.inside(store.tasks.offer(offers))

    first, second = server.get(f"{API}/limits").json["limits"]

    assert (first["kind"], first["name"], first["concurrency"], first["rate"]) == ("step", "charge", 1, 20)
    assert (first["key"], first["waiting"], first["running"]) == ("customer", 2, 0)
    (key,) = first["keys"]
    assert (key["key"], key["waiting"], key["running"], key["full"]) == ("ann", 2, 0, False)
    assert key["since"]
    assert (second["kind"], second["name"], second["keys"]) == ("workflow", "order", [])


@covers("limitQueue")
def test_limits_that_cannot_be_are_refused(server: Server) -> None:
    assert server.ask("PUT", f"{API}/queues/gpu", {"concurrency": -1}).code == "value.wrong_type"
    assert server.ask("PUT", f"{API}/queues/gpu", {"rate": 0}).code == "value.wrong_type"


@covers("listKeys", "createKey", "revokeKey")
def test_a_key_is_shown_once_and_can_be_revoked(server: Server) -> None:
    made = server.post(f"{API}/keys", {"name": "ann", "scopes": ["admin"], "groups": ["role:ops"]})

    assert made.status == 201
    assert made.json["closes"]
    who = Caller(server, made.json["secret"])
    new = {"name": "bob", "scopes": ["read"], "tenant": "a", "expires_seconds": 60}
    second = who.post(f"{API}/keys", new).json
    assert not second["closes"]
    listed = who.get(f"{API}/keys")
    assert made.json["secret"].encode() not in listed.raw
    # In any order: both keys may be made in the same millisecond.
    assert sorted((key["name"], key["tenant"], key["is_valid"]) for key in listed.json["keys"]) == [
        ("ann", "", True),
        ("bob", "a", True),
    ]
    revoked = who.ask("DELETE", f"{API}/keys/{second['key']['id']}")
    assert not revoked.json["is_valid"]
    assert revoked.json["revoked_at"]
    assert who.ask("DELETE", f"{API}/keys/none").status == 404


@covers("createKey")
def test_a_key_with_an_unknown_scope_is_not_made(server: Server) -> None:
    answer = server.post(f"{API}/keys", {"name": "ann", "scopes": ["everything"]})

    assert answer.status == 422
    assert "is not a scope" in answer.json["detail"]
    assert server.inside(server.app.service.store.access.is_open())


@covers("getStatus")
def test_the_status_names_the_store_and_its_hosts(server: Server) -> None:
    found = server.get(f"{API}/status").json

    assert (found["store"], found["kind"], found["schema"], found["hosts"]) == ("memory://", "memory", 0, 1)
    assert (found["queued_since"], found["trouble"]) == (None, "")


@covers("acknowledgeLosses")
def test_losses_are_in_the_status_until_somebody_acknowledges_them(server: Server) -> None:
    wals = server.app.service.store.wals
    assert wals is not None
    wal = server.inside(wals.open(HostId("gone"), "redis"))
    runs = [RunId("o-1")]
    loss = Loss(wal=wal, host=HostId("gone"), at=Millis(5_000), reason=LossReason.MISSING, batches=2, runs=runs)
    assert server.inside(wals.mark_drained(wal, loss=loss))

    (shown,) = server.get(f"{API}/status").json["losses"]
    assert (shown["wal"], shown["host"], shown["reason"], shown["batches"]) == (wal, "gone", "missing", 2)
    assert (shown["runs"], shown["at"]) == (["o-1"], "1970-01-01T00:00:05Z")
    assert "at least 2 batches" in shown["text"]

    assert server.post(f"{API}/losses/acknowledge", {}).json == {"losses": 1}
    assert server.get(f"{API}/status").json["losses"] == []
    assert server.post(f"{API}/losses/acknowledge", {}).json == {"losses": 0}


@covers("getSeries")
def test_series_have_an_hour_in_steps_of_ten_seconds(server: Server) -> None:
    everything = server.get(f"{API}/series").json
    steps = server.get(f"{API}/series?names=steps").json

    assert len(everything["runs"]) == len(everything["commit_p99"]) == STEPS
    assert "runs" not in steps
    assert len(steps["steps"]) == STEPS
    assert server.get(f"{API}/series?names=secrets").status == 422


def test_a_series_counts_per_second_and_forgets_after_an_hour() -> None:
    series = Series()
    series.turn(1_000)
    series.runs, series.steps = 20, 20
    series.commits.append(0.002)
    series.turn(10_000)
    series.steps = 1

    since, points = series.points(25_000)

    assert since == (2 - STEPS) * 10_000
    assert [(point.runs, point.steps, point.commit_p99) for point in points[-2:]] == [(2.0, 2.0, 2.0), (0.0, 0.1, None)]
    assert series.points(29_000) == (since, points)
    assert all(not point.runs for point in series.points(25_000 + STEPS * 10_000)[1])


@pytest.mark.parametrize("name", ["%2E%2E", "%E2%80%AEgnp"])
def test_a_view_has_a_name_that_can_be_shown_and_addressed(server: Server, name: str) -> None:
    assert server.ask("PUT", f"{API}/views/{name}", {"query": "status=failed"}).status == 422


@covers("listViews", "putView", "removeView")
def test_a_view_is_saved_replaced_and_removed(server: Server) -> None:
    path = f"{API}/views/needs%20me"
    assert server.ask("PUT", path, {"query": "status=failed", "by": "ann"}).status == 200
    assert server.ask("PUT", path, {"query": "status=failed&status=held", "by": "bob"}).status == 200

    (view,) = server.get(f"{API}/views").json["views"]
    assert (view["name"], view["query"], view["saved_by"]) == ("needs me", "status=failed&status=held", "bob")

    assert server.ask("DELETE", path).status == 200
    assert server.ask("DELETE", path).code == "run.not_found"
    assert server.get(f"{API}/views").json["views"] == []


@covers("getHelp")
def test_help_is_the_page_that_the_terminal_prints(server: Server) -> None:
    found = server.get(f"{API}/help/run.not_found").json

    assert found["text"] == page("run.not_found")
    assert found["what"] in found["text"]
    assert server.get(f"{API}/help/nothing.here").status == 404


@covers("getGraphSchema", "getStepsSchema")
def test_the_schemas_are_those_of_the_loader(server: Server) -> None:
    assert server.get(f"{API}/schemas/graph").json["title"] == "Weft graph"
    assert server.get(f"{API}/schemas/steps").json["title"] == "Weft steps"


@covers("search")
def test_one_field_finds_runs_workflows_steps_and_questions(server: Server) -> None:
    server.until(server.start("ship", "s-77", order_id="o-77"), "ask_opened")

    found = server.get(f"{API}/search?q=s-7").json
    assert found["runs"] == [{"id": "s-77", "workflow": "ship", "status": "running"}]

    found = server.get(f"{API}/search?q=Ship").json
    assert found["workflows"] == ["ship"]
    assert found["questions"] == [{"id": "s-77:carrier", "title": "Ship o-77?", "run": "s-77"}]
    assert "greet" in server.get(f"{API}/search?q=gre").json["steps"]
    for nothing in ("", "?q=zzz"):
        assert not any(server.get(f"{API}/search{nothing}").json.values())
