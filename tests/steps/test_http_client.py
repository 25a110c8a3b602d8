"""Servers that hang, lie, flood, loop or break off: each ends in a typed error, soon, and costs little."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from tests.steps.http_kit import ELSEWHERE, HERE, answering, calling, get, go, saying, serving, speaking
from weft.errors import BadValue, LimitExceeded
from weft.steps.http.exchange import HttpRequest, HttpResponse
from weft.steps.http.failures import HttpFailed, HttpUnavailable, is_final
from weft.steps.http.wire import _redirected


async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


def test_a_server_that_hangs_is_given_up_in_time() -> None:
    async def scenario() -> None:
        async with speaking(hang) as base, calling() as client:
            with pytest.raises(HttpUnavailable, match="took longer than 2s") as failed:
                # Longer than a machine stands still before the request is sent.
                await client.send(get(base, timeout_ms=2_000))
            assert failed.value.in_doubt
            assert not is_final(failed.value)

    go(scenario())


def test_a_server_that_drips_for_ever_is_given_up_in_time() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def scenario() -> None:
        async with speaking(drip) as base, calling() as client:
            with pytest.raises(HttpUnavailable, match="took longer"):
                await client.send(get(base, timeout_ms=1_500))

    go(scenario())


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\xff\xfegarbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 " + b"O" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(500)) + b"\r\n",
    ],
)
def test_an_answer_that_is_no_http_is_final(raw: bytes) -> None:
    async def scenario() -> None:
        async with speaking(saying(raw)) as base, calling() as client:
            with pytest.raises(HttpFailed) as failed:
                await client.send(get(base))
            assert is_final(failed.value), failed.value
            assert len(str(failed.value)) < 500

    go(scenario())


def test_headers_without_end_are_cut() -> None:
    sent = 0

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while sent < 500_000_000:
            writer.write(b"X-More: " + b"y" * 4000 + b"\r\n")
            sent += 4010
            await writer.drain()

    async def scenario() -> None:
        async with speaking(flood) as base, calling() as client:
            with pytest.raises(HttpFailed):
                await client.send(get(base))

    go(scenario())
    assert sent < 50_000_000


@pytest.mark.parametrize("headers", [{}, {"Content-Length": str(1 << 30)}])
def test_a_gigabyte_is_cut_while_it_streams(headers: dict[str, str]) -> None:
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for _ in range(1 << 14):
            await response.write(b"x" * 65_536)
            sent += 65_536
        return response

    async def scenario() -> None:
        async with serving(flood) as base, calling(body_bytes_max=1_000_000) as client:
            with pytest.raises(LimitExceeded, match="more than 1,000,000 bytes") as failed:
                await client.send(get(base))
            assert is_final(failed.value)

    go(scenario())
    assert sent < 64 << 20


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_small_body_that_unpacks_to_a_huge_one_is_cut(encoding: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    bomb = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(50)) + packer.flush()
    assert len(bomb) < 100_000

    async def scenario() -> int:
        handler = answering(body=bomb, headers={"Content-Encoding": encoding})
        async with serving(handler) as base, calling(body_bytes_max=2_000_000) as client:
            tracemalloc.start()
            with pytest.raises(LimitExceeded):
                await client.send(get(base))
            return tracemalloc.get_traced_memory()[1]

    try:
        assert go(scenario()) < 10_000_000
    finally:
        tracemalloc.stop()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("data", [b"", b"hello", bytes(range(256)) * 3000, b"\0" * 1_000_003, b"\0" * 65_537])
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("identity", lambda data: data),
        ("gzip", gzip.compress),
        ("gzip", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
    ],
)
def test_a_compressed_body_comes_out_whole(data: bytes, encoding: str, pack: Any) -> None:
    async def scenario() -> HttpResponse:
        handler = answering(body=pack(data), headers={"Content-Encoding": encoding})
        async with serving(handler) as base, calling() as client:
            return await client.send(get(base))

    assert go(scenario()).body == data


def test_a_compressed_body_that_ends_in_the_middle_is_garbage() -> None:
    async def scenario() -> None:
        handler = answering(body=gzip.compress(b"hello" * 1000)[:-9], headers={"Content-Encoding": "gzip"})
        async with serving(handler) as base, calling() as client:
            with pytest.raises(HttpFailed, match="it is incomplete"):
                await client.send(get(base))

    go(scenario())


@pytest.mark.parametrize("how", ["reset", "close", "chunked"])
def test_a_connection_that_breaks_in_the_body_is_tried_again(how: str) -> None:
    async def cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        framing = (
            b"Transfer-Encoding: chunked\r\n\r\n64\r\nhalf" if how == "chunked" else b"Content-Length: 100\r\n\r\nhalf"
        )
        writer.write(b"HTTP/1.1 200 OK\r\n" + framing)
        await writer.drain()
        if how == "reset":
            writer.transport.abort()

    async def scenario() -> None:
        async with speaking(cut) as base, calling() as client:
            with pytest.raises(HttpUnavailable) as failed:
                await client.send(get(base))
            assert failed.value.in_doubt

    go(scenario())


def test_a_connection_that_closes_without_an_answer_is_tried_again() -> None:
    async def scenario() -> None:
        async with speaking(saying(b"")) as base, calling() as client:
            with pytest.raises(HttpUnavailable, match="connection was lost") as failed:
                await client.send(get(base, method="POST", body=b"{}"))
            assert failed.value.in_doubt

    go(scenario())


def test_a_port_where_nobody_listens_is_tried_again_and_nothing_can_have_happened() -> None:
    async def scenario() -> None:
        async with serving(answering(text="x")) as base:
            pass
        async with calling() as client:
            with pytest.raises(HttpUnavailable, match="could not connect") as failed:
                await client.send(get(base, method="POST", body=b"x"))
            assert not failed.value.in_doubt

    go(scenario())


def test_redirects_without_end_fail_for_good() -> None:
    asked = 0

    async def again(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.Response(status=302, headers={"Location": f"/{asked}"})

    async def scenario() -> None:
        async with serving(again) as base, calling(redirects_max=3) as client:
            with pytest.raises(HttpFailed, match="more than 3 times") as failed:
                await client.send(get(base))
            assert is_final(failed.value)

    go(scenario())
    assert asked == 4


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"data"),
        (308, "POST", "POST", b"data"),
        (301, "PUT", "PUT", b"data"),
        (302, "DELETE", "DELETE", b"data"),
        (303, "HEAD", "HEAD", b""),
        (302, "GET", "GET", b""),
    ],
)
def test_a_redirect_keeps_or_changes_the_method_as_the_standard_says(
    status: int, method: str, then: str, body: bytes
) -> None:
    seen: list[tuple[str, bytes, str | None]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/old":
            return web.Response(status=status, headers={"Location": "new?x=1"})
        seen.append((request.method, await request.read(), request.headers.get("Content-Type")))
        return web.Response(text=str(request.rel_url))

    async def scenario() -> HttpResponse:
        async with serving(answer) as base, calling() as client:
            sent = None if method in ("GET", "HEAD") else b"data"
            return await client.send(get(f"{base}/old", method=method, body=sent, headers={"content-type": "text/x"}))

    assert go(scenario()).status == 200
    kind = "text/x" if then == method else None
    assert seen == [(then, body, kind)]


def test_secrets_are_not_sent_on_to_another_origin() -> None:
    seen: list[dict[str, str]] = []

    async def note(request: web.Request) -> web.StreamResponse:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        return web.Response(text="ok")

    async def scenario() -> None:
        headers = {"authorization": "Bearer s", "cookie": "a=b", "x-api-key": "k", "accept": "text/x"}
        async with (
            serving(note, ELSEWHERE) as other,
            calling("127.0.0.0/8") as client,
            serving(answering(status=307, headers={"Location": other})) as base,
        ):
            await client.send(get(base, headers=headers))
        async with serving(redirect_once(note)) as base, calling() as client:
            await client.send(get(f"{base}/old", headers=headers))

    go(scenario())
    assert {"authorization", "cookie", "x-api-key"} & seen[0].keys() == set()
    assert seen[0]["accept"] == "text/x"
    assert seen[1]["authorization"] == "Bearer s"
    assert seen[1]["x-api-key"] == "k"


@pytest.mark.parametrize("host", [HERE, ELSEWHERE], ids=["another_port", "another_host"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_somebody_else_takes_neither_credentials_nor_the_body(host: str, status: int) -> None:
    """A server on another port of the same machine is somebody else too."""
    seen: list[tuple[dict[str, str], bytes]] = []

    async def note(request: web.Request) -> web.StreamResponse:
        seen.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        return web.Response(text="ok")

    async def scenario() -> None:
        headers = {"authorization": "Bearer s", "x-api-key": "k", "content-type": "text/x", "accept": "text/x"}
        async with (
            serving(note, host) as other,
            serving(answering(status=status, headers={"Location": f"{other}/new"})) as base,
            calling("127.0.0.0/8") as client,
        ):
            await client.send(get(base, method="PUT", body=b"secret", headers=headers))

    go(scenario())
    ((headers, body),) = seen
    assert body == b""
    assert {"authorization", "x-api-key", "content-type"} & headers.keys() == set()
    assert headers["accept"] == "text/x"


@pytest.mark.parametrize(
    ("target", "is_kept"),
    [
        ("https://a.example/new", True),
        ("https://a.example:443/new", True),
        ("http://a.example/new", False),
        ("http://a.example:443/new", False),
        ("https://a.example:8443/new", False),
        ("https://b.a.example/new", False),
    ],
)
def test_credentials_and_bodies_stay_with_scheme_host_and_port(target: str, *, is_kept: bool) -> None:
    request = get("https://a.example/old", method="PUT", body=b"secret", headers={"authorization": "Bearer s"})

    following = _redirected(request, 307, URL(request.url), URL(target))

    assert (following.body == b"secret") == is_kept
    assert ("authorization" in following.headers) == is_kept


def redirect_once(then: Any) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/old":
            return web.Response(status=307, headers={"Location": "/new"})
        return await then(request)  # type: ignore[no-any-return]

    return answer


def test_no_cookie_of_one_call_is_sent_with_another() -> None:
    cookies: list[dict[str, str]] = []

    async def note(request: web.Request) -> web.StreamResponse:
        cookies.append(dict(request.cookies))
        return web.Response(headers={"Set-Cookie": "session=1; Path=/"})

    async def scenario() -> None:
        async with serving(note) as base, calling(names={"shop.example": ["127.0.0.1"]}) as client:
            for _ in range(2):
                await client.send(get(base.replace("127.0.0.1", "shop.example")))

    go(scenario())
    assert cookies == [{}, {}]


def test_a_cancelled_call_closes_its_connection() -> None:
    async def scenario() -> bool:
        arrived, left = asyncio.Event(), asyncio.Event()

        async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            arrived.set()
            if await reader.read() == b"":
                left.set()

        async with speaking(wait) as base, calling() as client:
            call = asyncio.create_task(client.send(get(base)))
            await arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(200):
                await left.wait()
            return left.is_set()

    assert go(scenario())


def test_a_call_cancelled_in_the_body_closes_its_connection() -> None:
    async def scenario() -> None:
        begun, left = asyncio.Event(), asyncio.Event()

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            await writer.drain()
            begun.set()
            await reader.read()
            left.set()

        async with speaking(half) as base, calling() as client:
            call = asyncio.create_task(client.send(get(base)))
            await begun.wait()
            await asyncio.sleep(0.02)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(200):
                await left.wait()

    go(scenario())


def test_hosts_that_hang_do_not_hold_up_others() -> None:
    """More calls under way than a pool of a hundred would have."""

    async def scenario() -> int:
        async with speaking(hang) as slow, serving(answering(text="ok")) as base, calling() as client:
            stuck = [asyncio.create_task(client.send(get(slow, timeout_ms=60_000))) for _ in range(150)]
            await asyncio.sleep(0.1)
            answer = await client.send(get(base, timeout_ms=30_000))
            for call in stuck:
                call.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
            return answer.status

    assert go(scenario()) == 200


def test_a_connection_is_used_again_and_a_closed_client_opens_a_new_one() -> None:
    peers: set[Any] = set()

    async def note(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="ok")

    async def scenario() -> None:
        async with serving(note) as base, calling() as client:
            for _ in range(3):
                await client.send(get(base))
            assert len(peers) == 1
            await client.close()
            await client.send(get(base))
            assert len(peers) == 2

    go(scenario())


def test_of_a_long_error_only_the_beginning_is_read() -> None:
    async def scenario() -> HttpResponse:
        async with serving(answering(status=500, body=b"x" * 5_000_000)) as base, calling() as client:
            return await client.send(get(base))

    answer = go(scenario())
    assert answer.status == 500
    assert len(answer.body) == 64 * 1024


def test_a_head_request_reads_no_body_whatever_is_announced() -> None:
    async def scenario() -> HttpResponse:
        raw = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
        async with speaking(saying(raw)) as base, calling() as client:
            return await client.send(get(base, method="HEAD"))

    assert go(scenario()).body == b""


def test_header_bytes_that_are_no_text_do_not_break_the_answer() -> None:
    async def scenario() -> HttpResponse:
        raw = b"HTTP/1.1 200 OK\r\nX-Odd: caf\xe9\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 0\r\n\r\n"
        async with speaking(saying(raw)) as base, calling() as client:
            return await client.send(get(base))

    headers = go(scenario()).headers
    assert headers["x-odd"] == "caf\ufffd"
    assert headers["x-a"] == "1, 2"


@pytest.mark.parametrize(
    "headers",
    [
        {"x": "a\r\nEvil: 1"},
        {"x": "a\nb"},
        {"x": "\0"},
        {"x y": "1"},
        {"": "1"},
        {"x:": "1"},
        {"host": "127.0.0.1"},
        {"content-length": "3"},
        {"transfer-encoding": "chunked"},
        {"connection": "close"},
        {"proxy-authorization": "x"},
        {"x": "y" * 70_000},
    ],
)
def test_a_header_that_would_forge_the_message_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(BadValue):
        HttpRequest(method="GET", url="https://shop.example/", headers=headers)


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "BREW"},
        {"method": "get"},
        {"timeout_ms": 0},
        {"timeout_ms": 10**9},
        {"url": "https://x/" + "y" * 9000},
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        HttpRequest(**{"method": "GET", "url": "https://shop.example/", **fields})


def test_the_parts_of_an_address_that_may_be_secret_are_not_shown() -> None:
    assert get("https://u:p@shop.example:8443/a/b?token=s#f").shown() == "GET https://shop.example:8443/a/b"
    assert get("http://[::1]:80/x").shown() == "GET http://[::1]:80/x"
    assert get("http://[").shown() == "GET a URL that cannot be read"
