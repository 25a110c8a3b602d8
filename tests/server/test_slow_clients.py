"""Clients that send slowly, or nothing: they are cut off, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.keyring import caller
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.server import buffered_http
from weft.server.limits import BodyReader, RequestLimits, RequestSlots
from weft.server.problems import RequestRefused

# Longer than a machine stands still between two lines of a test.
QUICK = RequestLimits(head_seconds=1.5, body_seconds=1.5)
PATIENT = RequestLimits(head_seconds=600.0, body_seconds=600.0)
HEAD = (
    f"POST {API}/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
).encode()
"""A request whose body is still missing."""


@contextlib.contextmanager
def slow_sockets(server: Server, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections that sent this much and then nothing."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=200))
            if sent:
                one.sendall(sent)
            made.append(one)
        yield made


def rest_of(client: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while more := client.recv(10_000):
            found += more
    return found


@pytest.mark.parametrize("sent", [b"", b"G", b"\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_that_does_not_arrive_ends_the_connection(sent: bytes) -> None:
    with serving(shop(), limits=QUICK) as server, slow_sockets(server, 1, sent) as (client,):
        said = rest_of(client)

        assert said == b"" if sent.strip() == b"" else said.startswith(b"HTTP/1.1 408")


def test_a_second_head_that_does_not_arrive_ends_the_connection() -> None:
    """The deadline holds for every request of a connection, also when bytes arrive all the time."""
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(shop(), limits=QUICK) as server, slow_sockets(server, 1, whole) as (client,):
        assert client.recv(10_000).startswith(b"HTTP/1.1 200")
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET /")
            client.settimeout(0.05)
            said = None
            while said is None:
                client.sendall(b"x")
                with contextlib.suppress(TimeoutError):
                    said = client.recv(10_000)
            assert said.startswith(b"HTTP/1.1 408")


def test_the_head_of_a_request_sent_ahead_waits_for_the_answer_before() -> None:
    """A client that pipelines is not slow: the server is still busy with its first request."""
    with serving(shop(), limits=RequestLimits(head_seconds=1.0, body_seconds=600.0)) as server:
        run = server.start("talk", words=[])
        asked = f"GET {API}/runs/{run}/result?wait=20 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he".encode()
        with slow_sockets(server, 1, asked) as (client,):
            time.sleep(2.5)  # longer than a head may take
            server.post(f"{API}/runs/{run}/messages", {"name": "enough", "body": 1})
            assert client.recv(10_000).startswith(b"HTTP/1.1 200")
            assert rest_of(client).startswith(b"HTTP/1.1 408")


def test_a_body_that_does_not_arrive_is_refused() -> None:
    with serving(shop(), limits=QUICK) as server, slow_sockets(server, 1, HEAD + b"{") as (client,):
        said = rest_of(client)

        assert said.startswith(b"HTTP/1.1 408")
        assert b"request.too_slow" in said


def test_a_body_that_nobody_reads_does_not_keep_its_connection_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was answered before its body arrived, and the client goes on sending."""
    monkeypatch.setattr(buffered_http, "GRACE_SECONDS", 0.0)
    head = HEAD.replace(b"/runs", b"/nowhere").replace(b": 100", b": 1000000")
    with serving(shop(), limits=QUICK) as server, slow_sockets(server, 1, head) as (client,):
        assert client.recv(10_000).startswith(b"HTTP/1.1 404")
        with pytest.raises(ConnectionError):
            while True:
                client.sendall(b"x")
                time.sleep(0.01)


@pytest.mark.parametrize("sent", [b"", b"G", HEAD + b"{"])
def test_slow_clients_take_no_places(sent: bytes) -> None:
    """Many more of them than there are places, and everybody else is answered."""
    few = RequestLimits(head_seconds=600.0, body_seconds=600.0, in_flight=2, live=2)
    with serving(shop(), limits=few) as server, slow_sockets(server, 20, sent):
        assert server.get("/healthz").status == 200
        assert server.result(server.start("hello", name="ann"))["output"] == "hello ann!"


def test_health_is_answered_when_there_is_no_place_left() -> None:
    with serving(shop(), limits=RequestLimits(in_flight=2, rate_per_second=1)) as server:

        async def fill() -> None:
            server.api._requests._total = 2

        server.inside(fill())
        assert server.get(f"{API}/runs").code == "limit.busy"
        for _ in range(10):
            assert server.get("/healthz").status == 200
            assert server.get("/readyz").status == 200


def test_a_caller_gets_half_of_the_places() -> None:
    room = RequestSlots(4, "requests")
    with room.slot("a"), room.slot("a"):
        with pytest.raises(RequestRefused, match="2 simultaneous requests"), room.slot("a"):
            pass
        with (
            room.slot("b"),
            room.slot("b"),
            pytest.raises(RequestRefused, match="4 simultaneous requests"),
            room.slot("c"),
        ):
            pass
        with room.slot("c"):
            pass
    assert not room._taken


def test_one_tenant_cannot_take_the_places_of_another() -> None:
    """Places to listen, all from one address."""
    with serving(shop(), limits=RequestLimits(live=4)) as server, contextlib.ExitStack() as stack:
        one = caller(server, "a", "read", tenant="one")
        other = caller(server, "b", "read", tenant="other")
        key = one._headers["Authorization"]
        head = f"GET {API}/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\n\r\n".encode()
        for _ in range(2):
            (listening,) = stack.enter_context(slow_sockets(server, 1, head))
            assert listening.recv(12) == b"HTTP/1.1 200"
        assert one.get(f"{API}/live").status == 429
        (listening,) = stack.enter_context(
            slow_sockets(server, 1, head.replace(key.encode(), other._headers["Authorization"].encode()))
        )
        assert listening.recv(12) == b"HTTP/1.1 200"


def test_bodies_that_arrive_share_a_budget_and_the_oldest_gives_way() -> None:
    """Memory is bounded, whatever the number of connections; what arrives at once is never dropped."""

    async def main() -> None:
        bodies = BodyReader(RequestLimits(unfinished_bytes=1_000, body_seconds=600))
        queues: list[asyncio.Queue[Any]] = [asyncio.Queue() for _ in range(3)]
        reading = [asyncio.ensure_future(bodies.read(queue.get, None)) for queue in queues]
        for queue in queues[:2]:
            queue.put_nowait({"type": "http.request", "body": b"x" * 400, "more_body": True})
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        queues[2].put_nowait({"type": "http.request", "body": b"y" * 400, "more_body": True})
        with pytest.raises(RequestRefused) as refused:
            await reading[0]
        assert refused.value.status == 408
        for queue in queues[1:]:
            queue.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        assert await reading[1] == b"x" * 400
        assert await reading[2] == b"y" * 400
        assert bodies._bytes == 0
        assert not bodies._arriving

    asyncio.run(main())


def test_the_oldest_silent_connections_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_http, "connections_max", lambda: 10)
    with serving(shop(), limits=PATIENT) as server:
        listen = f"GET {API}/live HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with slow_sockets(server, 1, listen) as (listening,):
            assert listening.recv(12) == b"HTTP/1.1 200"
            with slow_sockets(server, 20, b"G") as silent:
                assert server.get("/healthz").status == 200
                assert rest_of(silent[0]) == b""
                listening.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    while said := listening.recv(10_000):
                        pass
                    assert said, "the listener was cut off"
                silent[-1].setblocking(False)
                with pytest.raises(BlockingIOError):
                    silent[-1].recv(1)


@pytest.mark.proof
@pytest.mark.parametrize("sent", [b"G", HEAD + b"{"])
def test_a_thousand_slow_sockets_disturb_nobody(sent: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Others are answered, the slow ones are closed after their deadline, and memory stays small.

    The ratio of the 99th percentiles is printed, not asserted: it depends on what else this machine does.
    """
    buffered_http.allow_many_files()
    buffered_http.connections_max.cache_clear()
    limits = RequestLimits(head_seconds=8.0, body_seconds=8.0)
    with serving(shop(), limits=limits) as server:
        p99(server)
        quiet = p99(server)
        gc.collect()
        tracemalloc.start()
        with slow_sockets(server, 1_000, sent) as sockets:
            used = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            disturbed = p99(server)
            assert server.get("/healthz").status == 200
            assert server.get("/readyz").status == 200
            for one in sockets:
                assert rest_of(one).startswith(b"HTTP/1.1 408")
        assert used < 100 * 1024 * 1024
    with capsys.disabled():
        print(f"\n1,000 sockets after {len(sent)} bytes: p99 {disturbed / quiet:.2f} times quiet, {used >> 20} MiB")


def p99(server: Server) -> float:
    """The 99th percentile of reads and starts, in seconds."""
    seconds = []
    for number in range(300):
        began = time.perf_counter()
        answer = (
            server.get(f"{API}/runs?limit=10")
            if number % 2
            else server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}})
        )
        seconds.append(time.perf_counter() - began)
        assert answer.status in (200, 201)
    return sorted(seconds)[-3]
