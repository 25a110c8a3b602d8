"""Bulks over HTTP: counted, started, found again by their key; and through a client of the server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import weft
from tests.server.keyring import caller
from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop


def orders(server: Server, name: str, count: int) -> list[str]:
    ids = [f"{name}-{n}" for n in range(count)]
    for run in ids:
        started = {"workflow": "order", "input": {"order_id": run}, "id": run, "attributes": {"batch": name}}
        assert server.post(f"{API}/runs", started).status == 201
    return ids


def ended(server: Server, run: str) -> Any:
    end = time.monotonic() + 200
    while time.monotonic() < end:
        answer = server.get(f"{API}/runs/{run.replace('/', '%2F')}/result?wait=5")
        if answer.status == 200:
            return answer.json
    raise AssertionError(answer.json)


def status_of(server: Server, run: str) -> str:
    return str(server.get(f"{API}/runs/{run}").json["status"])


@covers("bulk")
def test_a_dry_run_counts_and_the_bulk_does_it(server: Server) -> None:
    ids = orders(server, "counted", 3)
    wanted = {"verb": "pause", "filter": {"workflow": "order", "where": {"batch": "counted"}}}

    dry = server.post(f"{API}/bulk", {**wanted, "dry_run": True})

    assert dry.status == 200
    assert (dry.json["matched"], dry.json["would_apply"], dry.json["run"]) == (3, 3, None)
    assert {status_of(server, run) for run in ids} == {"running"}
    started = server.post(f"{API}/bulk", {**wanted, "reason": "maintenance"})
    assert started.status == 202
    assert started.headers["location"].endswith(started.json["run"].replace("/", "%2F"))
    assert ended(server, started.json["run"])["output"]["applied"] == 3
    assert {status_of(server, run) for run in ids} == {"paused"}


def test_the_same_key_is_the_same_bulk(server: Server) -> None:
    ids = orders(server, "keyed", 2)
    asked = {"verb": "pause", "ids": ids}

    first, second = (server.post(f"{API}/bulk", asked, **{"idempotency-key": "once"}) for _ in range(2))

    assert first.json["run"] == second.json["run"]
    other = {"verb": "pause", "ids": ids[:1], "uids": ["u"]}
    assert server.post(f"{API}/bulk", other, **{"idempotency-key": "once"}).json["code"] == "run.key_reused"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"verb": "pause"}, "bulk.no_runs"),
        ({"verb": "pause", "ids": ["a"], "filter": {"status": "running"}}, "bulk.no_runs"),
        ({"verb": "explode", "ids": ["a"]}, "bulk.unknown_verb"),
        ({"verb": "resume", "ids": ["a"], "options": {"loud": True}}, "bulk.bad_option"),
        ({"verb": "pause", "ids": ["a"], "uids": ["b", "c"]}, "value.wrong_type"),
        ({"verb": "pause", "filter": {"parent": "nobody"}}, "run.not_found"),
    ],
)
def test_what_is_wrong_with_a_bulk_is_said_before_it_starts(server: Server, body: dict[str, Any], code: str) -> None:
    answer = server.post(f"{API}/bulk", body)

    assert answer.status in (404, 422)
    assert answer.json["code"] == code


@pytest.mark.parametrize(
    "filter",
    [
        {"since": "0001-01-01T00:00:00"},
        {"until": "0001-01-01T00:00:00"},
        {"since": "2026-01-01T00:00:00", "q": "a"},
        {"until": "9999-12-31T23:59:59"},
        {"status": "nonsense"},
        {"status": ["running", "nonsense"]},
    ],
)
def test_a_bulk_refuses_the_times_and_statuses_that_a_list_refuses(server: Server, filter: dict[str, Any]) -> None:
    answer = server.post(f"{API}/bulk", {"verb": "cancel", "filter": filter, "dry_run": True})

    assert (answer.status, answer.code) == (422, server.get(f"{API}/runs?status=nonsense").code)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_bulk_and_a_list_take_the_first_and_the_last_time_that_can_be_written(server: Server, at: str) -> None:
    for name in ("since", "until"):
        asked = {"verb": "cancel", "filter": {"workflow": "none-like-it", name: at}, "dry_run": True}
        assert server.post(f"{API}/bulk", asked).json["matched"] == 0
        assert server.get(f"{API}/runs?workflow=none-like-it&{name}={at.replace('+', '%2B')}").json["runs"] == []


def test_a_client_counts_and_applies(server: Server) -> None:
    ids = orders(server, "remote", 2)

    async def main() -> None:
        async with weft.Client(server.url) as client:
            bulk = await client.bulk("cancel", workflow="order", where={"batch": "remote"})
            assert (bulk.matched, bulk.would_apply, sorted(bulk.ids)) == (2, 2, sorted(ids))
            result = await (await bulk.apply(reason="over")).result(timeout=200)
            assert (result.verb, result.applied) == ("cancel", 2)
            refused = await client.bulk("cancel", *ids)
            assert [(group.code, group.count) for group in refused.refused] == [("run.finished", 2)]
            with pytest.raises(weft.UsageError, match="no verb of bulks"):
                await client.bulk("explode", "x")

    asyncio.run(main())
    assert {status_of(server, run) for run in ids} == {"cancelled"}


def test_deleting_many_runs_needs_the_scope_admin() -> None:
    with serving(shop()) as server:
        operator = caller(server, "ann", "operate")
        admin = caller(server, "bob", "admin")
        asked = {"verb": "delete", "filter": {"workflow": "order"}, "dry_run": True}

        assert operator.post(f"{API}/bulk", asked).status == 403
        assert admin.post(f"{API}/bulk", asked).status == 200
        assert admin.post(f"{API}/bulk", {**asked, "dry_run": False}).json["code"] == "bulk.no_reason"


def test_a_bulk_takes_the_filters_of_a_list(server: Server) -> None:
    ids = orders(server, "listed", 3)
    server.until(ids[-1], "message_awaited")
    where = {"batch": "listed"}

    def matched(**wanted: Any) -> int:
        asked = {"verb": "pause", "dry_run": True, "filter": {"where": where, **wanted}}
        answer = server.post(f"{API}/bulk", asked)
        assert answer.status == 200, answer.raw
        assert answer.json["matched"] == len(answer.json["ids"])
        return int(answer.json["matched"])

    assert matched(status=["running", "failed"]) == 3
    assert matched(q="listed-1") == 1
    assert matched(style="code", version="1") == 3
    assert matched(style="graph") == 0
    assert matched(until="2020-01-01T00:00:00Z") == 0
    assert matched(unchanged="1h") == 0
    assert matched(status="running", q="order") == 3


def test_a_bulk_is_not_for_ids_and_a_filter(server: Server) -> None:
    answer = server.post(f"{API}/bulk", {"verb": "pause", "ids": ["a"], "filter": {"q": "a"}})

    assert answer.code == "bulk.no_runs"
