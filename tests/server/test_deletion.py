"""Runs are deleted and kept over HTTP, and through a client of the server."""

from __future__ import annotations

import asyncio

import pytest

import weft
from tests.server.kit import API, Server, covers


def ended(server: Server, run: str) -> str:
    server.start("hello", run, name="ann")
    server.result(run)
    return run


def audit(server: Server, run: str) -> list[tuple[str, str, str]]:
    found = server.get(f"{API}/audit?run={run}").json["entries"]
    return [(one["verb"], one["by"], one["reason"]) for one in found]


@covers("deleteRun", "listAudit")
def test_a_run_is_deleted_with_a_reason_and_its_id_is_free(server: Server) -> None:
    run = ended(server, "gone")

    answer = server.ask("DELETE", f"{API}/runs/{run}", {"reason": "asked to", "by": "ann"})

    assert (answer.status, answer.json["runs"]) == (200, 1)
    assert server.get(f"{API}/runs/{run}").status == 404
    assert run not in [one["id"] for one in server.get(f"{API}/runs").json["runs"]]
    assert audit(server, run) == [("delete", "ann", "asked to")]
    ended(server, run)


def test_a_repeated_request_is_answered_alike(server: Server) -> None:
    run = ended(server, "twice")
    path, body = f"{API}/runs/{run}", {"reason": "asked to"}
    first = server.ask("DELETE", path, body, Idempotency_Key="k")

    assert server.ask("DELETE", path, body, Idempotency_Key="k").json == first.json
    assert server.ask("DELETE", path, body, Idempotency_Key="another").status == 404
    assert len(audit(server, run)) == 1


def test_what_is_open_is_not_deleted(server: Server) -> None:
    server.start("ship", "open", order_id="o")

    answer = server.ask("DELETE", f"{API}/runs/open", {"reason": "asked to"})

    assert (answer.status, answer.json["code"]) == (409, "run.not_over")
    assert server.get(f"{API}/runs/open").status == 200
    assert server.ask("DELETE", f"{API}/runs/open", {}).status == 422


@covers("keepRun", "getHold")
def test_a_hold_wins(server: Server) -> None:
    run = ended(server, "kept")
    held = server.post(f"{API}/runs/{run}/keep", {"reason": "a court", "by": "bob"})

    assert (held.json["kept"], held.json["by"], held.json["reason"]) == (True, "bob", "a court")
    refused = server.ask("DELETE", f"{API}/runs/{run}", {"reason": "asked to"})
    assert (refused.status, refused.json["code"]) == (409, "run.kept")
    assert server.get(f"{API}/runs/{run}/keep").json["kept"]
    assert not server.post(f"{API}/runs/{run}/keep", {"end": True, "reason": "over"}).json["kept"]
    assert server.ask("DELETE", f"{API}/runs/{run}", {"reason": "asked to"}).status == 200
    assert [verb for verb, _, _ in audit(server, run)] == ["delete", "keep_end", "keep"]


def test_a_client_deletes_and_keeps(server: Server) -> None:
    run = ended(server, "remote")

    async def play() -> None:
        async with weft.Client(server.url) as client:
            handle = client.get(run)
            assert (await handle.keep("a court")).kept
            with pytest.raises(weft.RunKept):
                await handle.delete("asked to")
            assert not (await handle.end_keep()).kept
            assert (await handle.delete("asked to")).events > 0
            with pytest.raises(weft.NotFound):
                await handle.status()

    asyncio.run(play())
