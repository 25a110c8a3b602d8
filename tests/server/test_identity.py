"""Who is let in without keys: programs on this machine, and nobody else. Scopes, where a gate gives some."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.errors import NotAllowed
from weft.server.identity import AccessScope, Identity, LoopbackGate, is_loopback
from weft.server.route_table import ROUTES


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "app.localhost"])
def test_names_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.org", "localhost.example.org", "", "127.1"])
def test_names_that_are_not_of_this_machine(host: str) -> None:
    assert not is_loopback(host)


def admitted(server: tuple[str, int | None], **headers: str) -> bool:
    try:
        asyncio.run(LoopbackGate().identify({"server": server}, headers))
    except NotAllowed:
        return False
    return True


def test_only_connections_to_a_loopback_address_are_let_in() -> None:
    assert admitted(("127.0.0.1", 80))
    assert admitted(("::1", 80))
    assert admitted(("weft.sock", None))
    assert not admitted(("10.0.0.5", 80))
    assert not admitted(("192.168.1.1", 80), host="localhost")


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:8420", "10.0.0.1", "[2001:db8::1]:80", "[x"])
def test_a_name_that_is_bound_to_this_address_by_somebody_else_is_turned_away(server: Server, host: str) -> None:
    answer = server.get(f"{API}/runs", Host=host)

    assert (answer.status, answer.code) == (403, "access.not_allowed")


@pytest.mark.parametrize("origin", ["https://attacker.example", "null", "http://localhost.attacker.example", "[", ""])
def test_a_page_of_another_site_is_turned_away(server: Server, origin: str) -> None:
    answer = server.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}}, Origin=origin)

    assert (answer.status, answer.code) == (403, "access.not_allowed")


def asked(server: Server, method: str, origin: str) -> int:
    """The status of a read or a write for a page of this origin."""
    body = {"workflow": "hello", "input": {"name": "a"}} if method == "POST" else None
    return server.ask(method, f"{API}/runs", body, Origin=origin).status


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_pages_of_this_very_server_are_let_in(server: Server, method: str) -> None:
    """Another port of this machine is another site: anybody's development server may be there."""
    assert asked(server, method, f"http://127.0.0.1:{server.port}") in (200, 201)
    for other in (
        "http://localhost:3000",
        f"http://localhost:{server.port}",
        f"https://127.0.0.1:{server.port}",
        f"http://127.0.0.1:{server.port + 1}",
        "http://127.0.0.1",
        f"http://127.0.0.2:{server.port}",
    ):
        assert asked(server, method, other) == 403, other


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_of_the_public_address_are_let_in(server: Server, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_PUBLIC_URL", "https://weft.example.com/flows")

    assert asked(server, method, "https://weft.example.com") in (200, 201)
    assert asked(server, method, "https://weft.example.com:443") in (200, 201)
    assert asked(server, method, "http://weft.example.com") == 403
    assert asked(server, method, "https://weft.example.com:8443") == 403


def test_a_page_of_another_port_cannot_listen_over_a_websocket(server: Server) -> None:
    async def status(origin: str) -> int:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.ws_connect(f"{server.url}{API}/live", origin=origin) as opened:
                    return 101 if not opened.closed else 0
            except aiohttp.WSServerHandshakeError as error:
                return error.status

    assert asyncio.run(status(server.url)) == 101
    assert asyncio.run(status("http://127.0.0.1:3000")) == 403


@pytest.mark.parametrize("name", ["Host", "Authorization", "Origin", "Content-Type", "Idempotency-Key"])
def test_a_header_that_counts_is_given_once(server: Server, name: str) -> None:
    """Something before the server may have believed the other one."""
    value = f"127.0.0.1:{server.port}" if name == "Host" else "application/json"
    answer = raw_answer(server, f"Host: localhost\r\n{name}: {value}\r\n{name}: other.example\r\n")

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"given twice" in answer


def test_other_headers_may_be_given_twice(server: Server) -> None:
    assert raw_answer(server, "Host: localhost\r\nX-A: 1\r\nX-A: 2\r\n").startswith(b"HTTP/1.1 200")


def raw_answer(server: Server, headers: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=200) as client:
        client.sendall(f"GET {API}/runs HTTP/1.1\r\nConnection: close\r\n{headers}\r\n".encode())
        found = b""
        while more := client.recv(10_000):
            found += more
        return found


class OneScope:
    """Callers say which scope they have."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        wanted = headers.get("x-scope", "")
        return Identity(wanted, frozenset({AccessScope(wanted)} if wanted else ()))


def test_every_route_asks_for_its_scope_and_for_no_other() -> None:
    with serving(shop(), gate=OneScope()) as server:
        for route in ROUTES:
            path = route.path.replace("{id}", "x").replace("{name}", "x").replace("{version}", "x")
            path = path.replace("{tag}", "x").replace("{stream}", "x")
            if route.kind == "live" and route.parameters == []:
                path += "?workflow=x&other=1"
            for held in (None, *AccessScope):
                headers = {"X_Scope": str(held)} if held is not None else {}
                status = server.ask(route.method, path, {} if route.is_write else None, **headers).status
                allowed = route.scope is None or held in (route.scope, AccessScope.ADMIN)
                assert (status != 403) == allowed, (route.name, held, status)
                assert status < 500 or route.name == "ready"


def test_routes_that_need_nothing_are_few_and_say_nothing() -> None:
    nothing = {route.name for route in ROUTES if route.scope is None}
    # These prove by themselves who may use them: by a link, a signature, a key or a cookie.
    by_themselves = {"showLink", "followLink", "takeWebhook", "openSession", "endSession"}
    assert nothing == {"alive", "ready", "openapi", "home", "beginSignIn", "finishSignIn"} | by_themselves
