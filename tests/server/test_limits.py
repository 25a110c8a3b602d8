"""Limits of requests: too large, too deep, too many, too old a backlog. Typed refusals, and nothing written."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
import time
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.server.buffered_http import HEAD_BYTES_MAX
from weft.server.limits import RequestLimits, check_json
from weft.server.problems import RequestRefused

SMALL = RequestLimits(
    body_bytes=5_000, depth=10, keys=50, items=100, string_bytes=500, number_chars=20, headers=20, header_bytes=4_000
)


@pytest.fixture(scope="module")
def server() -> Any:
    with serving(shop(), limits=SMALL) as running:
        yield running


def start(server: Server, raw: bytes, **headers: str) -> Any:
    headers.setdefault("content_type", "application/json")
    return server.ask("POST", f"{API}/runs", raw=raw, **headers)


def body(value: bytes) -> bytes:
    return b'{"workflow":"hello","input":{"name":"a"},"attributes":{"x":%b}}' % value


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (b"[" * 8 + b"]" * 8, b"[" * 9 + b"]" * 9),
        (b'"' + b"x" * 500 + b'"', b'"' + b"x" * 501 + b'"'),
        (b"1" * 15, b"1" * 21),
        (
            b"{%b}" % b",".join(b'"k%d":1' % n for n in range(45)),
            b"{%b}" % b",".join(b'"k%d":1' % n for n in range(47)),
        ),
        (b"[%b]" % b",".join([b"1"] * 99), b"[%b]" % b",".join([b"1"] * 100)),
    ],
    ids=["depth", "string", "number", "keys", "items"],
)
def test_each_limit_holds_and_not_before(server: Server, inside: bytes, outside: bytes) -> None:
    assert start(server, body(inside)).status == 201

    refused = start(server, body(outside))

    assert (refused.status, refused.code) == (413, "limit.exceeded")


def test_a_body_that_is_too_large_is_refused_by_its_length_and_by_its_bytes(server: Server) -> None:
    assert start(server, body(b'"x"') + b" " * 4_930).status == 201
    assert start(server, body(b'"x"') + b" " * 5_000).status == 413
    # Without a length, and for ever: the answer comes before the end of the body.
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.sendall(
            f"POST {API}/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(10):
            connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 415),
        (b"{", 400),
        (b"nonsense", 400),
        (b'{"workflow":"hello"', 400),
        (b'{"workflow":"\xff"}', 400),
        (b'{"workflow":"\\ud800"}', 400),
        (b'{"workflow":NaN}', 400),
        (b"[" * 4_000, 413),
        (b'"' * 3_999 + b"x", 422),
    ],
)
def test_what_is_not_json_is_refused(server: Server, raw: bytes, status: int) -> None:
    content = {"content_type": "text/plain"} if not raw else {}

    assert start(server, raw, **content).status == status


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_only_json_is_taken(server: Server, media: str) -> None:
    """What a form of another site's page could send is turned away unread."""
    answer = start(server, body(b"1"), content_type=media)

    assert (answer.status, answer.code) == (415, "request.wrong_type")


def test_too_many_headers_and_too_long_ones_are_refused(server: Server) -> None:
    assert server.ask("GET", f"{API}/runs", **{f"x{n}": "y" for n in range(15)}).status == 200
    assert server.ask("GET", f"{API}/runs", **{f"x{n}": "y" for n in range(25)}).status == 431
    assert server.ask("GET", f"{API}/runs", x="y" * 4_000).status == 431


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX: "])
def test_a_head_that_never_ends_is_cut_off(server: Server, begin: bytes) -> None:
    more = b"x" * 1_000 if not begin.endswith(b"\n") else b"x: y\r\n" * 200
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        client.sendall(begin)
        # It is told so, or finds the connection closed.
        with contextlib.suppress(ConnectionError):
            for _ in range(HEAD_BYTES_MAX * 4 // len(more)):
                client.sendall(more)
            said = client.recv(1_000)
            assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
            assert b"application/problem+json" in said
    assert server.get("/healthz").status == 200


def test_a_request_that_the_library_refuses_has_a_problem_like_every_error(server: Server) -> None:
    long = server.get(f"{API}/bundles/x?{'&'.join('redact=/' + 'x' * 990 for _ in range(90))}")
    assert (long.status, long.code) in ((400, "request.malformed"), (431, "limit.exceeded"))
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        client.sendall(b"nonsense\r\n\r\n")
        said = client.recv(1_000)
    assert said.startswith(b"HTTP/1.1 400")
    assert b'"code":"request.malformed"' in said


def test_a_body_that_comes_with_its_head_is_not_taken_for_head(server: Server) -> None:
    raw = b"x" * (HEAD_BYTES_MAX + 10_000)
    head = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(raw)
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        for _ in range(2):
            client.sendall(head + raw)
            assert client.recv(1_000).startswith(b"HTTP/1.1 413")


def test_a_body_that_comes_after_its_head_is_not_taken_for_head() -> None:
    raw = b'{"workflow": "nobody", "input": {"text": "%b"}}' % (b"x" * (HEAD_BYTES_MAX + 10_000))
    head = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/json\r\nContent-Length: %d\r\n\r\n"
    with (
        serving(weft.App("memory://")) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=120) as client,
    ):
        for _ in range(3):
            client.sendall(head % len(raw))
            time.sleep(0.05)
            client.sendall(raw)
            assert client.recv(1_000).startswith(b"HTTP/1.1 404")


def test_an_answer_is_one_packet(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answered = client.recv(10_000)
            assert answered.startswith(b"HTTP/1.1 200")
            assert answered.endswith(b"}")


def test_a_query_that_is_too_long_is_refused(server: Server) -> None:
    assert server.get(f"{API}/runs?prefix={'x' * 9_000}").status == 413


def test_an_empty_body_is_an_empty_object_and_lacks_what_is_required(server: Server) -> None:
    run = server.start("hello", name="ann")
    for path in ("pause", "resume"):
        assert server.post(f"{API}/runs/{run}/{path}", content_type="application/json").status in (200, 409)
    lacking = server.ask("DELETE", f"{API}/runs/{run}", content_type="application/json")

    assert (lacking.status, lacking.code) == (422, "value.wrong_type")
    assert "`reason`" in lacking.json["detail"]


def test_a_parameter_that_a_query_does_not_have_is_refused_with_those_it_has(server: Server) -> None:
    refused = server.get(f"{API}/audit?limt=1&n=1")

    assert refused.code == "value.wrong_type"
    assert refused.json["detail"] == "The query is not valid: unknown field 'limt', 'n'."
    assert refused.json["hint"] == 'Did you mean "limit"? The query can have: run, cursor, limit.'


def test_a_path_that_is_nowhere_and_a_method_that_is_not_possible(server: Server) -> None:
    assert server.get("/api/v2/runs").code == "request.unknown_route"
    assert server.get(f"{API}/runs//events").status == 404
    wrong = server.ask("DELETE", f"{API}/runs")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, POST")
    assert server.get(f"{API}/runs/%FF").status == 400


def test_scanning_costs_little_for_the_worst_bodies() -> None:
    """The limits themselves must not be what is slow."""
    limits = RequestLimits()
    most = limits.body_bytes
    for raw in (
        b"[" * most,
        b'"\\' * (most // 2),
        b'"a",' * (most // 4),
        b"{}" * (most // 2),
        b"1" * most,
        b'\\"' * 99,
    ):
        began = time.thread_time()
        with contextlib.suppress(RequestRefused):
            check_json(raw, limits)
        assert time.thread_time() - began < 2


def test_a_caller_that_is_too_quick_is_told_to_come_again() -> None:
    with serving(shop(), limits=RequestLimits(rate_per_second=2)) as server:
        server.api.services.rates._monotonic = lambda: 0.0  # however slow the machine is, no time passes
        answers = [server.get("/openapi.json") for _ in range(6)]

        assert [answer.status for answer in answers] == [200] * 4 + [429] * 2
        assert answers[4].code == "limit.busy"
        assert int(answers[4].headers["retry-after"]) >= 1


def test_requests_at_once_are_limited() -> None:
    held = threading.Event()
    app = shop()
    with serving(app, limits=RequestLimits(in_flight=1)) as server:
        inside = threading.Event()

        async def block() -> None:
            real = server.app.service.store.directory.counts

            async def counts() -> Any:
                inside.set()
                while not held.is_set():
                    await asyncio.sleep(0.01)
                return await real()

            server.app.service.store.directory.counts = counts  # type: ignore[method-assign]

        server.inside(block())
        waiting = threading.Thread(target=lambda: server.get("/metrics"))
        waiting.start()
        assert inside.wait(200)
        try:
            refused = server.get(f"{API}/runs")
            assert (refused.status, refused.code) == (429, "limit.busy")
        finally:
            held.set()
            waiting.join(120)
        assert server.get(f"{API}/runs").status == 200


def test_new_runs_are_turned_away_while_the_backlog_is_old() -> None:
    """Work that waits for a slot grows old; everything but a new start is still taken."""
    app = weft.App("memory://")
    release = asyncio.Event()

    @app.step
    async def hold() -> None:
        await release.wait()

    @app.workflow
    async def holding(ctx: weft.Context) -> None:
        await hold()

    with serving(app, limits=RequestLimits(backlog_seconds=0.05)) as server:
        work = app.service.work
        assert work is not None
        work._worker._free = 1
        server.start("holding", "first")
        server.start("holding", "second")
        server.until("second", "task_scheduled")
        refused = None
        while refused is None or refused.status != 429:
            time.sleep(0.02)
            refused = server.post(f"{API}/runs", {"workflow": "holding", "id": "third"})
        assert refused.code == "limit.busy"
        assert int(refused.headers["retry-after"]) >= 1
        assert server.post(f"{API}/runs/first/pause").status == 200
        age = re.findall(r"^weft_queue_age_seconds (\S+)", server.get("/metrics").raw.decode(), re.MULTILINE)
        assert float(age[0]) > 0.05
        server.post(f"{API}/runs/first/resume")
        server.loop.call_soon_threadsafe(release.set)
        server.result("second")
        while server.post(f"{API}/runs", {"workflow": "holding", "id": "third"}).status == 429:
            time.sleep(0.02)
        assert server.result("third")["status"] == "completed"
