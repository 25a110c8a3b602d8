"""Sessions of browsers: opened with a key or at an identity provider, kept from other pages, and ended."""

from __future__ import annotations

import asyncio
import http.client
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import pytest

import weft
from tests.server.keyring import Caller, add_key
from tests.server.kit import API, Answer, Server, covers, serving
from tests.server.provider_process import AUDIENCE, CLIENT
from tests.server.shop import shop
from weft.core.ids import Millis
from weft.ports.web_sessions import SessionOwner
from weft.runtime.clock import SystemClock
from weft.server.access.sessions import AGE_MS_MAX, IDLE_MS_MAX, TOUCH_MS, BrowserSessions, cookie_in
from weft.server.settings import read_oidc_settings
from weft.stores.memory import MemoryStore

SESSION = f"{API}/session"
NEW_RUN = {"workflow": "hello", "input": {"name": "a"}}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own: keys close it."""
    with serving(shop()) as running:
        yield running


class Browser:
    """A page of a server, with its cookies."""

    def __init__(self, server: Server, origin: str = "") -> None:
        self.server = server
        self.origin = origin or server.url
        self.cookies: dict[str, str] = {}
        self.set_cookie = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if method != "GET":
            sent["Origin"] = self.origin
        answer = self.server.ask(method, path, body, **(sent | headers))
        self.set_cookie = answer.headers.get("set-cookie", "")
        if self.set_cookie:
            name, _, value = self.set_cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def sign_in(self, key: str) -> Answer:
        return self.ask("POST", SESSION, {"key": key})


def signed_in(server: Server, *scopes: str, **wish: Any) -> Browser:
    browser = Browser(server)
    assert browser.sign_in(add_key(server, "ann", *scopes, **wish)).status == 200
    return browser


# --- with a key --------------------------------------------------------------------------------------------------


@covers("openSession", "endSession", "getMe")
def test_a_browser_signs_in_with_a_key_and_out_again(server: Server) -> None:
    browser = signed_in(server, "read", "start")

    assert re.fullmatch(r"weft_session=[\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict", browser.set_cookie)
    me = browser.ask("GET", f"{API}/me").json
    assert (me["name"], me["scopes"], me["is_signed_in"]) == ("ann", ["read", "start"], True)
    assert browser.ask("POST", f"{API}/runs", NEW_RUN).status == 201

    kept = dict(browser.cookies)
    assert browser.ask("DELETE", SESSION).json == {"sign_out": ""}
    assert browser.set_cookie.startswith("weft_session=; Max-Age=0;")
    browser.cookies = kept
    assert browser.ask("GET", f"{API}/runs").code == "access.unknown"


def test_a_session_has_the_scopes_and_the_tenant_of_its_key(server: Server) -> None:
    browser = signed_in(server, "read", tenant="acme")

    me = browser.ask("GET", f"{API}/me").json
    assert (me["tenant"], me["hosts"], me["warnings"]) == ("acme", 1, [])
    assert browser.ask("POST", f"{API}/runs", NEW_RUN).status == 403


def test_a_stranger_learns_only_how_to_sign_in(server: Server) -> None:
    add_key(server, "ann", "read")

    me = server.get(f"{API}/me").json
    assert (me["is_open"], me["sign_in"], me["is_signed_in"]) == (False, ["key"], False)
    assert (me["name"], me["scopes"], me["version"], me["store"]) == ("", [], "", "")
    assert Caller(server, "weft_wrong").get(f"{API}/me").status == 401


def test_on_an_open_server_nobody_signs_in(server: Server) -> None:
    me = server.get(f"{API}/me").json
    assert (me["is_open"], me["sign_in"], me["is_signed_in"]) == (True, [], False)

    answer = Browser(server).sign_in("weft_any")
    assert (answer.status, "no keys" in answer.json["detail"]) == (409, True)


def test_a_wrong_key_opens_nothing(server: Server) -> None:
    add_key(server, "ann", "read")
    browser = Browser(server)

    answer = browser.sign_in("weft_wrong")

    assert (answer.status, answer.code, browser.set_cookie) == (401, "access.unknown", "")


def test_a_session_ends_with_its_key(server: Server) -> None:
    browser = signed_in(server, "read")
    access = server.app.service.store.access
    (key,) = server.inside(access.keys())

    server.inside(access.revoke(key.id, now=Millis(5)))
    server.api.services.gate._keys.put(key.digest, (None, 0.0))  # type: ignore[attr-defined]

    assert browser.ask("GET", f"{API}/runs").code == "access.unknown"
    assert browser.ask("GET", f"{API}/me").json["is_signed_in"] is False


def test_nothing_of_the_cookie_is_stored(server: Server) -> None:
    browser = signed_in(server, "read")

    stored = server.app.service.store.content.web_sessions  # type: ignore[attr-defined]
    assert browser.cookies["weft_session"] not in str(stored)


# --- on the wire -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["weft.example.com", "10.0.0.5:8420"])
def test_a_key_is_refused_over_plain_http(server: Server, host: str) -> None:
    key = add_key(server, "ann", "read")

    answer = Browser(server, f"http://{host}").ask("POST", SESSION, {"key": key}, Host=host)

    assert (answer.status, "plain HTTP" in answer.json["detail"]) == (403, True)


def test_behind_a_proxy_with_tls_the_cookie_is_secure_and_below_the_prefix(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_PUBLIC_URL", "https://weft.example.com/a/b")
    browser = Browser(server, "https://weft.example.com")

    assert browser.sign_in(add_key(server, "ann", "read")).status == 200

    assert browser.set_cookie.endswith("; Path=/a/b; HttpOnly; SameSite=Strict; Secure")


# --- forgery -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://attacker.example", "http://localhost:3000", "null"])
def test_pages_of_others_cannot_use_the_cookie(server: Server, origin: str) -> None:
    browser = signed_in(server, "read", "start")
    key = add_key(server, "bob", "read")

    assert browser.ask("GET", f"{API}/runs", Origin=origin).code == "access.not_allowed"
    assert browser.ask("POST", f"{API}/runs", NEW_RUN, Origin=origin).code == "access.not_allowed"
    assert browser.ask("DELETE", SESSION, Origin=origin).code == "access.not_allowed"
    assert browser.ask("POST", SESSION, {"key": key}, Origin=origin).code == "access.not_allowed"
    assert browser.ask("GET", f"{API}/runs").status == 200


def test_whatever_changes_anything_must_say_where_it_comes_from(server: Server) -> None:
    browser = signed_in(server, "admin")
    cookie = f"weft_session={browser.cookies['weft_session']}"

    assert server.ask("POST", f"{API}/runs", NEW_RUN, Cookie=cookie).code == "access.not_allowed"
    assert server.ask("DELETE", SESSION, Cookie=cookie).code == "access.not_allowed"
    assert server.get(f"{API}/runs", Cookie=cookie).status == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_json_is_taken_from_a_page(server: Server, media: str) -> None:
    browser = signed_in(server, "admin")

    answer = browser.ask("POST", f"{API}/runs", NEW_RUN, content_type=media)

    assert (answer.status, answer.code) == (415, "request.wrong_type")


def test_a_websocket_needs_the_cookie_and_the_right_page(server: Server) -> None:
    browser = signed_in(server, "read")
    cookie = f"weft_session={browser.cookies['weft_session']}"

    async def status(**headers: str) -> int:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.ws_connect(f"{server.url}{API}/live", headers=headers) as opened:
                    return 101 if not opened.closed else 0
            except aiohttp.WSServerHandshakeError as error:
                return error.status

    assert asyncio.run(status(Cookie=cookie, Origin=server.url)) == 101
    assert asyncio.run(status(Cookie=cookie)) == 403
    assert asyncio.run(status(Cookie=cookie, Origin="http://127.0.0.1:3000")) == 403
    assert asyncio.run(status(Origin=server.url)) == 403


def test_a_key_in_the_header_needs_no_origin(server: Server) -> None:
    key = add_key(server, "ann", "start")

    assert Caller(server, key).post(f"{API}/runs", NEW_RUN, Origin="https://elsewhere.example").status == 201


# --- time --------------------------------------------------------------------------------------------------------


class FixedClock(SystemClock):
    def __init__(self) -> None:
        self.now = 1_000_000

    def now_ms(self) -> Millis:
        return Millis(self.now)


def test_a_session_ends_after_two_hours_without_use_and_after_twelve_in_any_case() -> None:
    clock, store = FixedClock(), MemoryStore()
    seconds = [0.0]
    sessions = BrowserSessions(lambda: (store.web_sessions, clock), monotonic=lambda: seconds[0])

    async def is_there(token: str, after_ms: int) -> bool:
        clock.now += after_ms
        seconds[0] += after_ms / 1000
        return await sessions.find(token) is not None

    async def scenario() -> None:
        idle, _ = await sessions.open(SessionOwner(name="ann"))
        assert await is_there(idle, IDLE_MS_MAX - 1)
        assert not await is_there(idle, IDLE_MS_MAX)
        used, opened = await sessions.open(SessionOwner(name="ann"))
        for _ in range(11):
            assert await is_there(used, AGE_MS_MAX // 12)
        assert not await is_there(used, AGE_MS_MAX // 12)
        assert opened.expires_at == clock.now

    asyncio.run(scenario())


def test_an_open_live_connection_does_not_count_as_a_use() -> None:
    clock, store = FixedClock(), MemoryStore()
    sessions = BrowserSessions(lambda: (store.web_sessions, clock))

    async def scenario() -> None:
        token, opened = await sessions.open(SessionOwner(name="ann"))
        clock.now += TOUCH_MS
        assert await sessions.find(token, is_request=False) == opened
        assert await store.web_sessions.find(opened.digest) == opened

    asyncio.run(scenario())


def test_the_last_use_is_written_once_a_minute() -> None:
    clock, store = FixedClock(), MemoryStore()
    sessions = BrowserSessions(lambda: (store.web_sessions, clock))

    async def scenario() -> list[int]:
        token, opened = await sessions.open(SessionOwner(name="ann"))
        seen = []
        for after_ms in (TOUCH_MS - 1, 1, 1):
            clock.now += after_ms
            await sessions.find(token)
            found = await store.web_sessions.find(opened.digest)
            assert found is not None
            seen.append(found.seen_at - opened.created_at)
        return seen

    assert asyncio.run(scenario()) == [0, TOUCH_MS, TOUCH_MS]


def test_a_cookie_is_found_among_others() -> None:
    assert cookie_in({"cookie": "a=1; weft_session=x=y; b"}, "weft_session") == "x=y"
    assert cookie_in({"cookie": "my_weft_session=1"}, "weft_session") == ""
    assert cookie_in({}, "weft_session") == ""


# --- at an identity provider -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.server.provider_process"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            yield provider.stdout.readline().strip()
        finally:
            provider.kill()


@pytest.fixture
def closed(issuer: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that knows people only from their identity provider."""
    for name, value in {
        "WEFT_JWT_ISSUER": issuer,
        "WEFT_JWT_AUDIENCE": AUDIENCE,
        "WEFT_JWT_JWKS": f"{issuer}/keys",
        "WEFT_OIDC_CLIENT_ID": CLIENT,
        "WEFT_HTTP_ALLOW": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    with serving(shop()) as running:
        yield running


def visit(url: str) -> str:
    """Go to an address of the provider as a browser does; where it leads."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=120)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        assert answer.status == 302, answer.read()
        return str(answer.getheader("location"))
    finally:
        connection.close()


@covers("beginSignIn", "finishSignIn")
def test_a_person_signs_in_at_the_provider_and_the_browser_holds_no_token(closed: Server) -> None:
    browser = Browser(closed)
    assert closed.get(f"{API}/me").json["sign_in"] == ["key", "oidc"]

    begun = browser.ask("GET", f"{SESSION}/oidc?next=/runs/o-1%3Fsel%3Da")
    assert (begun.status, "SameSite=Lax" in browser.set_cookie, "HttpOnly" in browser.set_cookie) == (302, True, True)
    back = visit(begun.headers["location"])
    assert back.startswith(f"{closed.url}{SESSION}/callback?")
    done = browser.ask("GET", back.removeprefix(closed.url))

    assert urljoin(back, done.headers["location"]) == f"{closed.url}/runs/o-1?sel=a"
    assert "SameSite=Strict" in browser.set_cookie
    me = browser.ask("GET", f"{API}/me").json
    assert (me["name"], me["scopes"], me["groups"]) == ("ann", ["read", "start"], ["role:ops"])
    assert "eyJ" not in str(browser.cookies["weft_session"])
    out = browser.ask("DELETE", SESSION).json["sign_out"]
    assert "/end_session?client_id=weft-ui&post_logout_redirect_uri=" in out
    assert browser.ask("GET", f"{API}/runs").status == 401


def test_an_answer_for_another_browser_or_twice_signs_nobody_in(closed: Server) -> None:
    ann, mallory = Browser(closed), Browser(closed)
    back = visit(ann.ask("GET", f"{SESSION}/oidc").headers["location"]).removeprefix(closed.url)
    mallory.ask("GET", f"{SESSION}/oidc")

    for stranger in (Browser(closed), mallory):
        assert failed(stranger.ask("GET", back)) == "access.unknown"
        assert "weft_session" not in stranger.cookies
    assert ann.ask("GET", back).headers["location"].endswith("../../../")
    assert failed(ann.ask("GET", back)) == "access.provider"
    assert failed(ann.ask("GET", back.partition("?")[0])) == "access.unknown"


def failed(answer: Answer) -> str:
    """The code with which a person is sent back to the page for signing in."""
    assert answer.status == 302
    found = re.fullmatch(r"\.\./\.\./\.\./login\?failed=([\w.]+)", answer.headers["location"])
    assert found is not None, answer.headers["location"]
    return str(found[1])


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "/\\evil.example", "/a%0d%0ab", "runs"])
def test_nobody_is_led_to_another_site(closed: Server, next: str) -> None:
    assert closed.get(f"{SESSION}/oidc?next={next}").status == 422


@pytest.mark.parametrize("next", ["/..//evil", "/a/../..//evil", "/%252E.//evil", "/..", "/a/.", "/..%3Fa", "/./"])
def test_nobody_is_led_out_of_the_web_ui(closed: Server, next: str) -> None:
    assert closed.get(f"{SESSION}/oidc?next={next}").status == 422


@pytest.mark.parametrize("next", ["%0a", "/%0a", "/a%0a", "/a%E2%80%A8", "/%E2%80%A8a", "/a%7f", "/a%C2%85b", "/%00"])
def test_an_address_after_signing_in_has_no_control_characters(closed: Server, next: str) -> None:
    assert closed.get(f"{SESSION}/oidc?next={next}").status == 422


@pytest.mark.parametrize("next", ["", "/", "/runs/a..b/.c", "/runs/%C3%A4%3Fq=/../x%23log", "/runs//a"])
def test_any_address_of_the_web_ui_may_follow_signing_in(closed: Server, next: str) -> None:
    assert closed.get(f"{SESSION}/oidc?next={next}").status == 302


def test_without_a_provider_nobody_is_sent_to_one(server: Server) -> None:
    add_key(server, "ann", "read")

    for path in (f"{SESSION}/oidc", f"{SESSION}/callback?code=1&state=2"):
        assert server.get(path).status == 409


def test_a_provider_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, closed: Server) -> None:
    closed.api.services.gate.provider._settings = read_settings(monkeypatch)  # type: ignore[attr-defined]

    answer = closed.get(f"{SESSION}/oidc")

    assert (answer.status, answer.code) == (503, "access.provider")


def read_settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    from weft.server.settings import read_jwt_settings

    monkeypatch.setenv("WEFT_JWT_ISSUER", "http://127.0.0.1:1")
    return read_oidc_settings(read_jwt_settings())


def test_a_client_without_a_provider_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_OIDC_CLIENT_ID", "weft-ui")

    with pytest.raises(weft.UsageError, match="WEFT_JWT_ISSUER"):
        read_oidc_settings(None)
