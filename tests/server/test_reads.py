"""Reads of the store over HTTP: what a caller may see, as it is stored, and nothing that writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.keyring import Caller, caller
from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop
from weft.core import values
from weft.core.ids import RunUid, Seq
from weft.errors import NotAllowed
from weft.server.store_reads import PORTS, READS_MAX, ROWS_MAX, read_methods

LARGE = "x" * 100_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Two tenants with a run each, and one of the operator."""
    with serving(shop()) as running:
        for tenant in ("a", "b"):
            admin = caller(running, "ann", "admin", tenant=tenant)
            run = {"workflow": "hello", "input": {"name": f"{LARGE} of {tenant}"}, "id": "same"}
            assert admin.post(f"{API}/runs", run).status == 201
            assert admin.get(f"{API}/runs/same/result?wait=10").status == 200
        yield running


def read(who: Caller, name: str, run: str = "", **arguments: Any) -> dict[str, Any]:
    answer = who.post(f"{API}/reads", {"reads": [{"read": name, "arguments": arguments, "run": run}]})
    assert answer.status == 200, answer.raw
    (found,) = answer.json["answers"]
    return dict(found)


def uid_of(server: Server, run: str) -> str:
    return str(next(uid for uid, row in server.app.service.store.content.runs.items() if row.id == run))  # type: ignore[attr-defined]


@covers("getReadFormat", "readStore")
def test_a_caller_learns_the_format_and_reads_a_row(server: Server) -> None:
    ann = caller(server, "ann", "read", tenant="a")
    about = ann.get(f"{API}/reads").json
    assert (about["format"], about["tenant"], about["kind"]) == (1, "a", "memory")
    assert read(ann, "directory.find", id="same")["value"]["workflow"] == "hello"


def test_the_runs_of_another_tenant_are_not_there(server: Server) -> None:
    ann = caller(server, "ann", "read", tenant="a")
    theirs = uid_of(server, "@b/same")
    nothing: tuple[Any, ...] = (None, [], {})
    assert read(ann, "directory.row", uid=theirs).get("value") in nothing
    assert read(ann, "directory.find", id="@b/same").get("value") in nothing
    assert read(ann, "log.events", uid=theirs, after=0, limit=10).get("value") in nothing
    assert read(ann, "log.load", uid=theirs, fold=1).get("value") in nothing
    assert read(ann, "log.inbox", uid=theirs).get("value") in nothing
    assert read(ann, "streams.lengths", uid=theirs).get("value") in nothing
    found = read(ann, "directory.search", query={"id_prefix": "@b/"})["value"]["rows"]
    assert [row["id"] for row in found] == []


def test_a_tenant_reads_blobs_of_its_own_runs_only(server: Server) -> None:
    ann, bob = (caller(server, name, "read", tenant=tenant) for name, tenant in (("ann", "a"), ("bob", "b")))
    uid = uid_of(server, "@b/same")
    (digest, *_) = [
        digest
        for event in server.inside(server.app.service.store.log.events(uid, after=0, limit=10))
        for digest in values.blobs_in(event.body)
    ]
    assert "value" in read(bob, "blobs.get", run=uid, digest=digest)
    for who, run in ((ann, uid), (ann, uid_of(server, "@a/same")), (ann, ""), (bob, "")):
        assert read(who, "blobs.get", run=run, digest=digest)["problem"]["status"] == 404


@pytest.mark.parametrize("name", sorted(read_methods()))
def test_what_concerns_all_tenants_is_for_no_tenant(server: Server, name: str) -> None:
    method = read_methods()[name]
    answer = read(caller(server, "ann", "admin", tenant="a"), name)
    code = answer.get("problem", {}).get("code", "")
    assert (code == NotAllowed.code) == method.is_for_operators


@pytest.mark.parametrize(
    "wanted",
    [
        {"read": "log.commit", "arguments": {}},
        {"read": "log.send", "arguments": {"mail": []}},
        {"read": "access.keys", "arguments": {}},
        {"read": "log.__class__", "arguments": {}},
        {"read": "nothing", "arguments": {}},
        {"read": "log.events", "arguments": {"uid": "x"}},
        {"read": "log.events", "arguments": {"uid": "x", "after": 0, "limit": 1_000_000}},
        {"read": "log.events", "arguments": {"uid": "x", "after": 0, "limit": -1}},
        {"read": "log.events", "arguments": {"uid": 7, "after": 0, "limit": 1}},
        {"read": "log.inbox", "arguments": {"uid": "x", "more": 1}},
        {"read": "directory.search", "arguments": {"query": {"limit": 1_000_000}}},
        {"read": "retention.doom_each", "arguments": {"uids": [], "rule": {"dry_run": False}}},
    ],
    ids=lambda one: str(one["read"]),
)
def test_anything_else_is_refused(server: Server, wanted: dict[str, Any]) -> None:
    before = {run.id: run.seq for run in server.app.service.store.content.runs.values()}  # type: ignore[attr-defined]
    answer = read(caller(server, "ann", "admin"), wanted["read"], **wanted["arguments"])
    assert answer["problem"]["status"] in (404, 422), answer
    assert {run.id: run.seq for run in server.app.service.store.content.runs.values()} == before  # type: ignore[attr-defined]


def test_one_read_that_fails_does_not_affect_the_others(server: Server) -> None:
    ann = caller(server, "ann", "read")
    wanted = [{"read": "nothing"}, {"read": "directory.find", "arguments": {"id": "@a/same"}}]
    answers = ann.post(f"{API}/reads", {"reads": wanted}).json["answers"]
    assert answers[0]["problem"]["status"] == 404
    assert answers[1]["value"]["id"] == "@a/same"


def test_a_request_has_a_limited_number_of_reads(server: Server) -> None:
    ann = caller(server, "ann", "read")
    wanted = [{"read": "directory.find", "arguments": {"id": "x"}}] * (READS_MAX + 1)
    assert ann.post(f"{API}/reads", {"reads": wanted}).status == 422
    assert ann.post(f"{API}/reads", {"reads": []}).status == 422


def test_the_reads_of_a_request_together_have_a_limited_number_of_rows(server: Server) -> None:
    ann = caller(server, "ann", "read")
    half = {"read": "log.events", "arguments": {"uid": "x", "after": 0, "limit": ROWS_MAX // 2}}
    search = {"read": "directory.search", "arguments": {"query": {"limit": 1}}}

    assert ann.post(f"{API}/reads", {"reads": [half, half]}).status == 200
    refused = ann.post(f"{API}/reads", {"reads": [half, search, half]})
    assert (refused.status, refused.json["code"]) == (422, "value.wrong_type")
    assert "The reads together may ask for at most 10,000 rows, not for 10,001." in refused.json["detail"]


def test_a_tenant_reads_a_blob_of_a_long_run_without_reading_its_log(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = caller(server, "bob", "read", tenant="b")
    uid = uid_of(server, "@b/same")
    log = server.app.service.store.log
    events = server.inside(log.events(RunUid(uid), after=Seq(0), limit=10))
    digest = next(digest for event in events for digest in values.blobs_in(event.body))

    async def no_events(*_: Any, **__: Any) -> Any:
        raise AssertionError("the log is not read")

    monkeypatch.setattr(log, "events", no_events)

    assert "value" in read(bob, "blobs.get", run=uid, digest=digest)


def test_no_method_in_the_table_is_known_to_write() -> None:
    writing = {
        "commit",
        "create",
        "write_run",
        "write_together",
        "claim",
        "release",
        "send",
        "mark_fault",
        "put",
        "add",
    }
    writing |= {"write", "sweep", "doom", "clear", "shorten", "promote", "remove", "revoke", "limit", "offer", "take"}
    assert not {method for _, methods in PORTS.values() for method in methods} & writing
