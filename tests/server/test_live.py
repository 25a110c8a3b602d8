"""Live streams: everything in order, again from where a client stood, and a gap for one that is too slow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec
import pytest

import weft
from tests import scale
from tests.server.kit import API, SECONDS_MAX, Server, covers, serving, used
from tests.server.shop import shop
from weft.server.limits import RequestLimits
from weft.server.live import feed as feed_module
from weft.server.live.feed import Filter
from weft.server.live.frames import LiveFrame
from weft.server.live.transports import send_events
from weft.server.problems import RequestRefused


class Heard(NamedTuple):
    id: str
    event: str
    data: Any


async def heard(content: aiohttp.StreamReader) -> AsyncIterator[Heard]:
    """Server-sent events, as a browser would read them."""
    fields: dict[str, str] = {}
    async for line in content:
        text = line.decode().rstrip("\n")
        if not text:
            if "data" in fields:
                yield Heard(fields.get("id", ""), fields["event"], msgspec.json.decode(fields["data"]))
            fields = {}
        elif not text.startswith(":"):
            name, _, value = text.partition(": ")
            fields[name] = value


class Listener:
    """A client of one stream."""

    def __init__(self, server: Server, path: str, last: str | None = None) -> None:
        used("GET", path)
        self._url = server.url + path
        self._headers = {"Last-Event-ID": last} if last is not None else {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS_MAX))
        self._response = await self._session.get(self._url, headers=self._headers)
        self.status = self._response.status
        self._events = heard(self._response.content)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.close()
        await self._session.close()

    async def next(self) -> Heard:
        return await anext(self._events)

    async def all(self) -> list[Heard]:
        return [event async for event in self._events]


def listening(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, SECONDS_MAX))


async def off_loop(work: Any, *args: Any, **options: Any) -> Any:
    return await asyncio.to_thread(work, *args, **options)


# --- one run -----------------------------------------------------------------------------------------------------


@covers("followRun")
def test_the_log_of_a_run_is_followed_to_its_end(server: Server) -> None:
    server.start("order", "live-1", order_id="o")

    async def main() -> list[Heard]:
        async with Listener(server, f"{API}/runs/live-1/live") as client:
            events = [await client.next() for _ in range(2)]
            await off_loop(server.post, f"{API}/runs/live-1/messages", {"name": "quote", "body": 3})
            return events + await client.all()

    events = listening(main())
    assert [event.event for event in events] == [
        "run_started",
        "message_awaited",
        "message_received",
        "messages_taken",
        "run_completed",
        "end",
    ]
    assert [event.id for event in events[:-1]] == ["1", "2", "3", "4", "5"]
    assert events[2].data["data"]["body"] == 3
    assert events[-1].data == {"status": "completed"}


@pytest.mark.parametrize("way", ["header", "query"])
def test_a_client_that_comes_back_goes_on_where_it_stood(server: Server, way: str) -> None:
    server.result(server.start("hello", "live-2", name="a"))
    last = "3" if way == "header" else None
    path = f"{API}/runs/live-2/live" + ("?after=3" if way == "query" else "")

    async def main() -> list[Heard]:
        async with Listener(server, path, last) as client:
            return await client.all()

    assert [event.id for event in listening(main())] == ["4", "5", ""]


@pytest.mark.parametrize("last", ["x", "-1", "9" * 16, "1.5"])
def test_a_place_that_is_none_is_refused(server: Server, last: str) -> None:
    server.start("order", "live-3", order_id="o")

    assert server.get(f"{API}/runs/live-3/live", Last_Event_ID=last).status == 422


@pytest.mark.parametrize("count", scale.first(1, [200, 700]))
def test_a_long_log_is_sent_whole_to_a_client_that_reads_slowly(count: int) -> None:
    """Who follows one run misses nothing: its log is read at the client's own pace."""
    with serving(shop()) as server:
        run = server.start("order", "long", order_id="o")
        server.post(f"{API}/runs/long/pause")
        for n in range(count):
            server.post(f"{API}/runs/long/messages", {"name": "other", "body": "x" * 2_000 + str(n)})

        async def main() -> list[str]:
            async with Listener(server, f"{API}/runs/{run}/live") as client:
                await asyncio.sleep(0.2)
                return [(await client.next()).id for _ in range(count + 3)]

        assert listening(main()) == [str(n) for n in range(1, count + 4)]


# --- a filter ----------------------------------------------------------------------------------------------------


@covers("followAll")
def test_a_filter_brings_the_events_that_fit(server: Server) -> None:
    async def main() -> list[Heard]:
        path = f"{API}/live?workflow=hello&kind=run_started&kind=run_completed"
        async with Listener(server, path) as client:
            assert (await client.next()).event == "ready"
            await off_loop(server.start, "order", "f-0", order_id="o")
            for n in (1, 2):
                await off_loop(server.result, await off_loop(server.start, "hello", f"f-{n}", name="a"))
            return [await client.next() for _ in range(4)]

    events = listening(main())
    assert [(event.event, event.data["run"]) for event in events] == [
        ("run_started", "f-1"),
        ("run_completed", "f-1"),
        ("run_started", "f-2"),
        ("run_completed", "f-2"),
    ]
    assert events[1].data["status"] == "completed"


def test_a_filter_goes_on_where_the_client_stood(server: Server) -> None:
    async def main() -> tuple[list[Heard], list[Heard]]:
        path = f"{API}/live?workflow=fragile&kind=run_started"
        async with Listener(server, path) as client:
            await client.next()
            await off_loop(server.result, await off_loop(server.start, "fragile", "g-1", n=501))
            seen = [await client.next()]
        for n in (2, 3):
            await off_loop(server.result, await off_loop(server.start, "fragile", f"g-{n}", n=500 + n))
        async with Listener(server, path, seen[-1].id) as client:
            return seen, [await client.next() for _ in range(3)]

    seen, rest = listening(main())
    assert [event.data["run"] for event in seen] == ["g-1"]
    assert [event.event for event in rest] == ["ready", "run_started", "run_started"]
    assert [event.data["run"] for event in rest[1:]] == ["g-2", "g-3"]


@pytest.mark.parametrize("last", ["nonsense", "aaaa.1-5", "x-99999999999999999999"])
def test_a_place_that_is_forgotten_is_a_gap(server: Server, last: str) -> None:
    async def main() -> Heard:
        async with Listener(server, f"{API}/live?workflow=order", last) as client:
            return await client.next()

    first = listening(main())
    assert first.event == "gap"
    assert first.data == {"lost": -1}
    assert first.id


def test_a_client_that_does_not_read_finds_a_gap_and_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "FRAMES_MAX", 50)
    with serving(shop()) as server, _stuck(server, f"{API}/live?kind=message_received") as stuck:

        async def main() -> list[Heard]:
            async with Listener(server, f"{API}/live?kind=message_received") as quick:
                await quick.next()
                server.start("order", "busy", order_id="o")
                server.post(f"{API}/runs/busy/pause")
                got = []
                for n in range(400):
                    body = {"name": "other", "body": f"{n} " + "x" * 30_000}
                    assert (await off_loop(server.post, f"{API}/runs/busy/messages", body)).status == 200
                    got.append(await quick.next())
                return got

        events = listening(main())
        assert [event.event for event in events] == ["message_received"] * 400
        late = stuck.read_until_gap()
        assert 0 < late["lost"] < 400
        (channel,) = server.api.services.feed._channels.values()
        assert len(channel._frames) <= 50


class _Stuck:
    """A client that asked and then does not read."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read_until_gap(self) -> Any:
        """Read at last, as far as the gap."""
        text = b""
        while b"event: gap\ndata: " not in text or not text.rpartition(b"event: gap\ndata: ")[2].count(b"\n"):
            got = self._connection.recv(1 << 20)
            assert got, "the connection ended without a gap"
            text += got
        return msgspec.json.decode(text.partition(b"event: gap\ndata: ")[2].partition(b"\n")[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _stuck(server: Server, path: str) -> _Stuck:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS_MAX)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    # Its place in the channel is taken when the answer begins.
    assert connection.recv(1024).startswith(b"HTTP/1.1 200")
    return _Stuck(connection)


def test_a_stream_that_fails_after_its_first_bytes_ends_once() -> None:
    sent: list[dict[str, Any]] = []

    async def batches() -> AsyncIterator[list[LiveFrame]]:
        yield []
        raise RuntimeError("the store is gone")

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def allowed() -> bool:
        return True

    asyncio.run(send_events(receive, send, batches(), allowed))

    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert not sent[-1]["more_body"]


def test_many_different_filters_are_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "CHANNELS_MAX", 0)

    answer = server.get(f"{API}/live?workflow=never-seen")

    assert answer.status == 429
    assert answer.code == "limit.busy"


def test_different_filters_are_counted_per_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for many does not keep others out, and what nobody listens to any more gives way."""
    monkeypatch.setattr(feed_module, "CHANNELS_EACH_MAX", 2)

    async def main() -> None:
        feed = feed_module.Feed()
        stack = contextlib.ExitStack()

        def listens(workflow: str, caller: str) -> bool:
            try:
                stack.enter_context(feed.subscribe(Filter(workflow=workflow), caller))
            except RequestRefused:
                return False
            return True

        assert [listens(name, "a") for name in ("x", "y", "z")] == [True, True, False]
        assert [listens(name, "b") for name in ("x", "y", "z", "v", "w")] == [True, True, True, True, False]
        with pytest.raises(RequestRefused), feed.subscribe(Filter(workflow="u"), "b"):
            pass
        for number in range(10):
            with feed.subscribe(Filter(workflow=f"c{number}"), "c"):
                pass
        assert len(feed._channels) == 6
        stack.close()

    asyncio.run(main())


def test_clients_that_listen_are_limited_and_leaving_makes_room() -> None:
    with serving(shop(), limits=RequestLimits(live=1)) as server:

        async def main() -> None:
            async with Listener(server, f"{API}/live") as client:
                await client.next()
                assert (await off_loop(server.get, f"{API}/live")).status == 429
                assert (await off_loop(server.get, f"{API}/runs")).status == 200
            while (await _status_of(server)) == 429:
                await asyncio.sleep(0.01)

        listening(main())


async def _status_of(server: Server) -> int:
    async with Listener(server, f"{API}/live") as client:
        return client.status


def test_a_server_that_stops_lets_its_listeners_go() -> None:
    async def main(server: Server) -> None:
        async with Listener(server, f"{API}/live") as client:
            await client.next()
            server.loop.call_soon_threadsafe(asyncio.ensure_future, server.api.services.close())
            assert await client.all() == []

    with serving(shop()) as server:
        listening(main(server))


# --- output streams ----------------------------------------------------------------------------------------------


@covers("listStreams", "readStream", "followStream")
def test_an_output_stream_is_read_by_offset_and_followed(server: Server) -> None:
    server.start("talk", "talk-1", words=["a", "b", "c"])

    async def main() -> list[Heard]:
        async with Listener(server, f"{API}/runs/talk-1/streams/tokens/live") as client:
            events = [await client.next() for _ in range(4)]
            await off_loop(server.post, f"{API}/runs/talk-1/messages", {"name": "enough"})
            return events + await client.all()

    events = listening(main())
    assert [(event.id, event.event) for event in events] == [(str(n), "chunk") for n in (1, 2, 3, 4)] + [("", "end")]
    assert [event.data["chunk"] for event in events[:-1]] == ["begin", "a", "b", "c"]

    assert server.get(f"{API}/runs/talk-1/streams").json == {"streams": {"tokens": 4}}
    page = server.get(f"{API}/runs/talk-1/streams/tokens?after=1&limit=2").json
    assert [chunk["chunk"] for chunk in page["chunks"]] == ["a", "b"]
    assert page["after"] == 3
    assert server.get(f"{API}/runs/talk-1/streams/nothing").json == {"chunks": [], "after": None}
    assert [event for event in server.get(f"{API}/runs/talk-1/events").json["events"] if "begin" in str(event)] == []


def test_what_code_emits_as_its_last_act_reaches_who_listens() -> None:
    """The event that ends the run is durable before that output is."""
    app = weft.App("memory://")

    @app.workflow
    async def last_words(ctx: weft.Context) -> None:
        await ctx.receive("go")
        await ctx.emit("out", "last")

    with serving(app) as server:
        real = app.service.store.streams.write

        async def slowly(chunks: Any) -> None:
            await asyncio.sleep(0.2)  # the store takes its time, so that the run is over before
            await real(chunks)

        app.service.store.streams.write = slowly  # type: ignore[method-assign]
        run = server.start("last_words", "last-1")

        async def main() -> list[Heard]:
            async with Listener(server, f"{API}/runs/{run}/streams/out/live") as client:
                await off_loop(server.post, f"{API}/runs/{run}/messages", {"name": "go"})
                return await client.all()

        told = listening(main())
    assert [event.event for event in told] == ["chunk", "end"]


@pytest.mark.parametrize("what", ["live", "streams/tokens/live"])
def test_a_client_that_has_seen_all_of_a_run_that_is_over_is_told_to_stop(server: Server, what: str) -> None:
    """A browser reconnects for ever, but for this answer."""
    run = server.start("talk", words=["a", "b"])
    server.post(f"{API}/runs/{run}/messages", {"name": "enough"})
    server.result(run)

    async def last_id() -> str:
        async with Listener(server, f"{API}/runs/{run}/{what}") as client:
            return [event.id for event in await client.all() if event.id][-1]

    seen = listening(last_id())
    again = server.get(f"{API}/runs/{run}/{what}", Last_Event_ID=seen)
    assert (again.status, again.raw) == (204, b"")
    before = server.get(f"{API}/runs/{run}/{what}", Last_Event_ID=str(int(seen) - 1))
    assert before.status == 200
    assert b"event: end" in before.raw


def test_an_output_stream_goes_on_where_the_client_stood(server: Server) -> None:
    server.start("talk", "talk-2", words=["a", "b"])
    server.until("talk-2", "message_awaited")
    server.post(f"{API}/runs/talk-2/messages", {"name": "enough"})
    server.result("talk-2")

    async def main() -> list[Heard]:
        async with Listener(server, f"{API}/runs/talk-2/streams/tokens/live", "2") as client:
            return await client.all()

    assert [event.data for event in listening(main())][-1] == {"status": "completed"}


# --- sockets -----------------------------------------------------------------------------------------------------


def test_a_socket_brings_the_same_as_the_events() -> None:
    with serving(shop()) as server:
        server.start("order", "ws-1", order_id="o")

        async def main() -> list[Any]:
            async with aiohttp.ClientSession() as session:
                url = f"{server.url}{API}/runs/ws-1/live?after=1"
                async with session.ws_connect(url) as connection:
                    got = [await connection.receive_json()]
                    await off_loop(server.post, f"{API}/runs/ws-1/messages", {"name": "quote", "body": 3})
                    got += [message.json() async for message in connection]
                    assert connection.close_code == 1000
                    return got

        got = listening(main())
        kinds = ["message_awaited", "message_received", "messages_taken", "run_completed", "end"]
        assert [message["event"] for message in got] == kinds
        assert [message["id"] for message in got] == ["2", "3", "4", "5", ""]
        assert got[1]["data"]["data"]["body"] == 3


def test_a_socket_of_a_filter_is_resumed_by_its_cursor() -> None:
    with serving(shop()) as server:

        async def connected(session: aiohttp.ClientSession, after: str = "") -> aiohttp.ClientWebSocketResponse:
            return await session.ws_connect(f"{server.url}{API}/live?kind=run_started{after}")

        async def main() -> list[Any]:
            async with aiohttp.ClientSession() as session:
                async with await connected(session) as connection:
                    ready = await connection.receive_json()
                server.start("order", "ws-2", order_id="o")
                async with await connected(session, f"&after={ready['id']}") as connection:
                    return [(await connection.receive_json())["event"] for _ in range(2)]

        assert listening(main()) == ["ready", "run_started"]


@pytest.mark.parametrize("path", ["/runs/nobody/live", "/runs", "/nowhere", "/live?other=1"])
def test_a_socket_that_cannot_be_is_refused(server: Server, path: str) -> None:
    async def main() -> int:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{server.url}{API}{path}")
            return refused.value.status

    assert listening(main()) == 403
