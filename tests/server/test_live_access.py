"""Live connections end when their caller is signed out, revoked, or has other rights than before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import aiohttp
import pytest

from tests.server.keyring import add_key
from tests.server.kit import API, SECONDS_MAX, Server, serving
from tests.server.shop import shop
from weft.errors import Unavailable
from weft.server.access import gate as gate_module
from weft.server.access import sessions as sessions_module
from weft.server.identity import LISTENS, AccessScope, Identity
from weft.server.live import transports
from weft.server.problems import unknown_caller

POLICY_VIOLATION = 1008
ANN = Identity("ann", frozenset({AccessScope.READ}), "acme")


@pytest.fixture(autouse=True)
def _identify_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "IDENTIFY_SECONDS", 0.005)
    monkeypatch.setattr(gate_module, "CACHED_SECONDS", 0.0)
    monkeypatch.setattr(sessions_module, "CACHED_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own: keys close it."""
    with serving(shop()) as running:
        yield running


class Doorman:
    """A gate that answers what it is told to, and counts how often it is asked about open connections."""

    def __init__(self) -> None:
        self.answer: Identity | Exception = ANN
        self.asked = 0

    async def identify(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Identity:
        self.asked += LISTENS in scope
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def both_end(server: Server, headers: Mapping[str, str], then: Callable[[], Any]) -> None:
    """Listen over a WebSocket and to server-sent events, do something, and expect that the server ends both."""
    url = f"{server.url}{API}/live"

    async def main() -> None:
        async with (
            asyncio.timeout(SECONDS_MAX),
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(url) as socket,
            session.get(url) as response,
        ):
            await socket.receive()
            await response.content.readline()
            await asyncio.to_thread(then)
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == POLICY_VIOLATION
            await response.content.read()  # to its proper end, else this raises

    asyncio.run(main())


def test_a_revoked_key_ends_what_listens_with_it(server: Server) -> None:
    text = add_key(server, "ann", "read")
    access = server.app.service.store.access
    [key] = server.inside(access.keys())

    both_end(
        server,
        {"Authorization": f"Bearer {text}"},
        lambda: server.inside(access.revoke(key.id, now=server.app.service.clock.now_ms())),
    )


def test_signing_out_ends_what_listens_with_the_session(server: Server) -> None:
    key = add_key(server, "ann", "read")
    opened = server.post(f"{API}/session", {"key": key}, origin=server.url)
    headers = {"Cookie": opened.headers["set-cookie"].partition(";")[0], "Origin": server.url}

    both_end(server, headers, lambda: server.ask("DELETE", f"{API}/session", **headers))


@pytest.mark.parametrize(
    "answer",
    [
        unknown_caller("This token has expired."),
        Identity("bob", ANN.scopes, ANN.tenant),
        Identity("ann", ANN.scopes, "other"),
        Identity("ann", frozenset({AccessScope.START}), ANN.tenant),
        Identity("ann", frozenset({AccessScope.READ, AccessScope.START}), ANN.tenant),
        RuntimeError("a gate with an error"),
    ],
    ids=["refused", "subject", "tenant", "scope lost", "scope won", "error"],
)
def test_a_caller_with_other_rights_listens_no_longer(answer: Identity | Exception) -> None:
    doorman = Doorman()
    with serving(shop(), gate=doorman) as server:
        both_end(server, {}, lambda: setattr(doorman, "answer", answer))


def test_a_caller_goes_on_listening_while_the_gate_cannot_tell() -> None:
    doorman = Doorman()
    with serving(shop(), gate=doorman) as server:

        async def main() -> None:
            async with (
                asyncio.timeout(SECONDS_MAX),
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{server.url}{API}/live") as socket,
            ):
                await socket.receive()
                await asked_again(doorman)
                doorman.answer = Unavailable("The store is away.")
                await asked_again(doorman)
                doorman.answer = Identity("ann", frozenset({AccessScope.READ, AccessScope.START}), "acme")
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE

        asyncio.run(main())


async def asked_again(doorman: Doorman) -> None:
    """Wait until the gate has answered three more times."""
    seen = doorman.asked
    while doorman.asked < seen + 3:
        await asyncio.sleep(0.001)
