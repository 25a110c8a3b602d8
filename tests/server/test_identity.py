"""Who is let in without keys: programs on this machine, and nobody else. Scopes, where a gate gives some."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.errors import NotAllowed
from weft.server.identity import Identity, OpenHere, Scope, is_loopback
from weft.server.table import ROUTES


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "app.localhost"])
def test_names_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "example.org", "localhost.example.org", "", "127.1"])
def test_names_that_are_not_of_this_machine(host: str) -> None:
    assert not is_loopback(host)


def admitted(server: tuple[str, int | None], **headers: str) -> bool:
    try:
        asyncio.run(OpenHere().identify({"server": server}, headers))
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


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1:8420"])
def test_a_page_from_here_is_let_in(server: Server, origin: str) -> None:
    assert server.get(f"{API}/runs", Origin=origin).status == 200


class OneScope:
    """Callers say which scope they have."""

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        wanted = headers.get("x-scope", "")
        return Identity(wanted, frozenset({Scope(wanted)} if wanted else ()))


def test_every_route_asks_for_its_scope_and_for_no_other() -> None:
    with serving(shop(), gate=OneScope()) as server:
        for route in ROUTES:
            path = route.path.replace("{id}", "x").replace("{name}", "x").replace("{version}", "x")
            path = path.replace("{tag}", "x").replace("{stream}", "x")
            if route.kind == "live" and route.parameters == []:
                path += "?workflow=x&other=1"
            for held in (None, *Scope):
                headers = {"X_Scope": str(held)} if held is not None else {}
                status = server.ask(route.method, path, {} if route.is_write else None, **headers).status
                allowed = route.scope is None or held in (route.scope, Scope.ADMIN)
                assert (status != 403) == allowed, (route.name, held, status)
                assert status < 500 or route.name == "ready"


def test_routes_that_need_nothing_are_few_and_say_nothing() -> None:
    nothing = {route.name for route in ROUTES if route.scope is None}
    # The links prove by themselves who may use them.
    assert nothing == {"alive", "ready", "openapi", "showLink", "followLink", "takeWebhook"}
