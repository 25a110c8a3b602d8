"""Keys and tokens: who is known, for what, and for how long; a server without keys is this machine's own."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

import weft
from tests.server.keyring import Caller, add_key, caller
from tests.server.kit import API, Answer, Server, serving
from tests.server.shop import shop
from weft.cache import BoundedCache
from weft.core.ids import Millis
from weft.runtime.clock import SystemClock
from weft.server.access.gate import AccessGate
from weft.server.access.keys import NewKey, key_digest, new_key
from weft.server.access.tokens import REFETCH_SECONDS, Tokens
from weft.server.settings import JwtSettings, read_jwt_settings
from weft.stores.memory import MemoryStore

ISSUER, AUDIENCE = "https://issuer.example", "weft"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own: keys close it."""
    with serving(shop()) as running:
        yield running


def refused(answer: Answer) -> bool:
    assert answer.status in (200, 401), answer.raw
    if answer.status == 401:
        assert answer.code == "access.unknown"
        assert answer.headers["www-authenticate"] == "Bearer"
    return answer.status == 401


# --- keys --------------------------------------------------------------------------------------------------------


def test_with_keys_the_key_decides_and_not_the_origin(server: Server) -> None:
    """A page of another origin has no key by itself, and a browser does not let it read an answer."""
    page = {"Origin": "http://localhost:3000"}
    assert server.get(f"{API}/runs", **page).status == 403  # without keys: nothing for pages of others

    ann = caller(server, "ann", "read", "start")
    new = {"workflow": "hello", "input": {"name": "a"}}
    for answer in (server.get(f"{API}/runs", **page), server.post(f"{API}/runs", new, **page)):
        assert (answer.status, answer.code) == (401, "access.unknown")
    preflight = server.ask("OPTIONS", f"{API}/runs", **page, **{"Access-Control-Request-Method": "POST"})
    known = ann.get(f"{API}/runs", **page)
    assert known.status == 200
    assert ann.post(f"{API}/runs", new, **page).status == 201
    for answer in (preflight, known):
        assert not any(name.lower().startswith("access-control-") for name in answer.headers)


def test_a_key_is_random_and_nothing_of_it_is_kept() -> None:
    (first, kept), (second, _) = (new_key(NewKey(name="ann", scopes=["read"]), Millis(5)) for _ in range(2))

    assert first != second
    assert len(first) > 40
    assert kept.digest == key_digest(first)
    assert first not in str(kept)


@pytest.mark.parametrize(
    "wish",
    [
        {"name": ""},
        {"name": "role:ops"},
        {"name": "a\nb"},
        {"name": "x" * 300},
        {"scopes": []},
        {"scopes": ["read", "everything"]},
        {"groups": ["ops"]},
        {"tenant": "a/b"},
        {"tenant": "../x"},
        {"tenant": "acme", "scopes": ["work"]},
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(wish: dict[str, Any]) -> None:
    with pytest.raises(weft.UsageError):
        new_key(NewKey(**({"name": "ann", "scopes": ["read"]} | wish)), Millis(5))


def test_without_keys_this_machine_may_do_everything_and_the_first_key_ends_that(server: Server) -> None:
    assert server.get(f"{API}/runs").status == 200

    ann = caller(server, "ann", "read")

    assert refused(server.get(f"{API}/runs"))
    assert ann.get(f"{API}/runs").status == 200


def test_what_needs_nothing_needs_no_key(server: Server) -> None:
    add_key(server, "ann", "read")

    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert server.get(path).status == 200


def test_a_revoked_key_opens_nothing_and_the_server_stays_closed(server: Server) -> None:
    ann = caller(server, "ann", "read")
    assert ann.get(f"{API}/runs").status == 200
    access = server.app.service.store.access
    (key,) = server.inside(access.keys())

    server.inside(access.revoke(key.id, now=Millis(5)))
    server.api.services.gate._keys = BoundedCache(1)  # type: ignore[attr-defined]

    assert refused(ann.get(f"{API}/runs"))
    assert refused(server.get(f"{API}/runs"))


def test_an_expired_key_opens_nothing(server: Server) -> None:
    now = server.app.service.clock.now_ms()
    assert refused(caller(server, "ann", "read", expires_at=Millis(now - 1)).get(f"{API}/runs"))
    assert not refused(caller(server, "bob", "read", expires_at=Millis(now + 60_000)).get(f"{API}/runs"))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic YWxhZGRpbg==",
        "Bearer weft_",
        "Bearer weft_x y",
        "weft_x",
        "Bearer é",
        "Bearer " + "x" * 5000,
    ],
)
def test_what_is_no_key_is_refused_also_where_nobody_needs_one(server: Server, header: str) -> None:
    assert refused(server.get(f"{API}/runs", Authorization=header))


def test_a_key_does_what_its_scopes_say_and_admin_does_all(server: Server) -> None:
    reader, starter, admin = (caller(server, name, name) for name in ("read", "start", "admin"))
    new = {"workflow": "hello", "input": {"name": "a"}}

    assert reader.get(f"{API}/runs").status == 200
    assert reader.post(f"{API}/runs", new).status == 403
    assert starter.post(f"{API}/runs", new).status == 201
    assert starter.get(f"{API}/runs").status == 403
    assert admin.get(f"{API}/runs").status == 200
    assert admin.post(f"{API}/runs", new).status == 201


def test_who_starts_a_run_is_noted_and_cannot_be_invented(server: Server) -> None:
    ann = caller(server, "ann", "start", "read")

    run = ann.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}, "attributes": {"k": 1}}).json["id"]
    forged = ann.post(
        f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}, "attributes": {"weft.started_by": "bob"}}
    )

    assert ann.get(f"{API}/runs/{run}").json["attributes"]["weft.started_by"] == "ann"
    assert (forged.status, forged.code) == (422, "value.bad_name")


def test_what_is_believed_of_keys_is_believed_for_a_second() -> None:
    access, seconds = MemoryStore().access, [0.0]
    gate = AccessGate(lambda: (access, SystemClock()), monotonic=lambda: seconds[0])

    async def open_at(moment: float) -> bool:
        seconds[0] = moment
        return await gate.is_open()

    async def scene() -> list[bool]:
        found = [await open_at(0.0)]
        _, kept = new_key(NewKey(name="ann", scopes=["read"]), Millis(1))
        await access.add(kept)
        return [*found, *[await open_at(moment) for moment in (0.5, 0.9, 1.0, 1.5)]]

    assert asyncio.run(scene()) == [True, True, True, False, False]


def test_the_server_that_creates_or_revokes_a_key_knows_it_at_once(server: Server) -> None:
    server.api.services.gate._monotonic = lambda: 0.0  # type: ignore[attr-defined]
    assert server.get(f"{API}/me").json["is_open"]

    made = server.post(f"{API}/keys", {"name": "ann", "scopes": ["admin"]}).json
    ann = Caller(server, made["secret"])

    assert not server.get(f"{API}/me").json["is_open"]
    assert ann.get(f"{API}/runs").status == 200
    assert ann.ask("DELETE", f"{API}/keys/{made['key']['id']}").status == 200
    assert ann.get(f"{API}/runs").status == 401


# --- tokens ------------------------------------------------------------------------------------------------------


@cache
def rsa_key(kid: str) -> Any:
    """A key by its name: to make one costs more than a test."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    """An identity provider on loopback: its keys, and how often they were fetched."""

    def __init__(self) -> None:
        self.fetched = 0
        self.broken = False
        self.keys: dict[str, Any] = {}
        self.add("one")
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.fetched += 1
                body = b"oops" if provider.broken else json.dumps({"keys": provider.published()}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.settings = JwtSettings(
            issuer=ISSUER, audience=AUDIENCE, jwks=f"http://127.0.0.1:{self.server.server_port}/jwks", tenant=""
        )

    def add(self, kid: str) -> None:
        self.keys[kid] = rsa_key(kid)

    def published(self) -> list[Any]:
        return [
            {**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig", "alg": "RS256"}
            for kid, key in self.keys.items()
        ]

    def token(self, kid: str = "one", *, key: Any = None, alg: str = "RS256", **claims: Any) -> str:
        whole: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ann",
            "exp": time.time() + 3600,
            "scope": "read",
        }
        whole = {name: value for name, value in (whole | claims).items() if value is not None}
        return jwt.encode(whole, key or self.keys[kid], algorithm=alg, headers={"kid": kid})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    running = Provider()
    yield running
    running.close()


@pytest.fixture
def seconds() -> list[float]:
    """The clock by which keys are fetched again."""
    return [100.0]


@pytest.fixture
def guarded(provider: Provider, seconds: list[float]) -> Iterator[Server]:
    """A server that takes tokens of the provider."""
    app = shop()
    tokens = Tokens(provider.settings, monotonic=lambda: seconds[0])
    gate = AccessGate(lambda: (app.service.store.access, app.service.clock), tokens=tokens)
    with serving(app, gate=gate) as running:
        yield running


def test_a_token_says_who_it_is_and_what_it_may_do(guarded: Server, provider: Provider) -> None:
    ann = Caller(guarded, provider.token(scope="read start unknown", roles=["ops"], groups=["sales"]))

    assert ann.get(f"{API}/runs").status == 200
    run = ann.post(f"{API}/runs", {"workflow": "hello", "input": {"name": "a"}}).json["id"]
    assert ann.get(f"{API}/runs/{run}").json["attributes"]["weft.started_by"] == "ann"
    assert ann.post(f"{API}/runs/{run}/cancel", {}).status == 403
    assert refused(guarded.get(f"{API}/runs"))


def other_key() -> Any:
    return rsa_key("other")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"nbf": time.time() + 86_400},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "role:ops"},
        {"sub": 7},
        {"scope": {"read": True}},
        {"roles": "x" * 10_000},
        {"key": other_key},
        {"kid": "one", "key": "s" * 64, "alg": "HS256"},
        {"kid": "one", "key": ec.generate_private_key(ec.SECP256R1()), "alg": "ES256"},
    ],
)
def test_a_token_that_is_not_for_us_or_not_good_is_refused(
    guarded: Server, provider: Provider, claims: dict[str, Any]
) -> None:
    made = {name: value() if callable(value) else value for name, value in claims.items()}
    assert refused(Caller(guarded, provider.token(**made)).get(f"{API}/runs"))


def test_a_token_without_a_signature_or_of_garbage_is_refused(guarded: Server, provider: Provider) -> None:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 3600, "scope": "admin"}
    bare = jwt.encode(claims, "", algorithm="none", headers={"kid": "one"})
    head, body, _ = provider.token().split(".")
    for token in (bare, f"{head}.{body}.", f"{head}.{body}.AAAA", "a.b.c", "...", "x"):
        assert refused(Caller(guarded, token).get(f"{API}/runs"))


def test_keys_are_fetched_once_and_again_when_a_new_one_signs(
    guarded: Server, provider: Provider, seconds: list[float]
) -> None:
    for _ in range(3):
        assert not refused(Caller(guarded, provider.token()).get(f"{API}/runs"))
    assert provider.fetched == 1

    provider.add("two")
    seconds[0] += REFETCH_SECONDS
    assert not refused(Caller(guarded, provider.token("two")).get(f"{API}/runs"))
    assert provider.fetched == 2


def test_unknown_keys_do_not_make_a_storm_of_fetches(guarded: Server, provider: Provider, seconds: list[float]) -> None:
    token = provider.token(key=other_key())
    stranger = jwt.encode({"sub": "x"}, other_key(), algorithm="RS256", headers={"kid": "nobody"})
    for one in (token, stranger) * 5:
        assert refused(Caller(guarded, one).get(f"{API}/runs"))
    assert provider.fetched == 1


def test_a_provider_that_is_away_takes_nothing_from_those_it_vouched_for(
    guarded: Server, provider: Provider, seconds: list[float]
) -> None:
    assert not refused(Caller(guarded, provider.token()).get(f"{API}/runs"))
    provider.broken = True
    seconds[0] += 10_000
    assert not refused(Caller(guarded, provider.token()).get(f"{API}/runs"))
    assert provider.fetched == 2


def test_a_key_that_the_provider_took_back_signs_nothing_any_more(
    guarded: Server, provider: Provider, seconds: list[float]
) -> None:
    old = provider.token()
    assert not refused(Caller(guarded, old).get(f"{API}/runs"))
    provider.add("two")
    del provider.keys["one"]
    seconds[0] += 10_000
    assert refused(Caller(guarded, old).get(f"{API}/runs"))


def test_symmetric_keys_in_a_published_set_are_of_no_use(provider: Provider, guarded: Server) -> None:
    secret = "s" * 43
    provider.published = lambda: [{"kty": "oct", "k": secret, "kid": "one", "alg": "HS256"}]  # type: ignore[method-assign]
    key = jwt.utils.base64url_decode(secret)
    assert refused(Caller(guarded, provider.token(key=key, alg="HS256")).get(f"{API}/runs"))


def test_other_public_keys_do(provider: Provider, guarded: Server) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    published = {**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": "one"}
    provider.published = lambda: [published]  # type: ignore[method-assign]
    assert not refused(Caller(guarded, provider.token(key=key, alg="ES256")).get(f"{API}/runs"))


@pytest.mark.parametrize("claims", [{}, {"org": ""}, {"org": "a/b"}, {"org": 7}])
def test_where_tenants_are_named_by_a_claim_a_token_without_one_is_refused(
    provider: Provider, claims: dict[str, Any]
) -> None:
    settings = JwtSettings(issuer=ISSUER, audience=AUDIENCE, jwks=provider.settings.jwks, tenant="org")
    app = shop()
    tokens = Tokens(settings, monotonic=time.monotonic)
    with serving(app, gate=AccessGate(lambda: (app.service.store.access, app.service.clock), tokens=tokens)) as server:
        assert refused(Caller(server, provider.token(**claims)).get(f"{API}/runs"))
        assert not refused(Caller(server, provider.token(org="acme")).get(f"{API}/runs"))


def test_half_of_the_settings_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_jwt_settings() is None
    monkeypatch.setenv("WEFT_JWT_ISSUER", ISSUER)
    with pytest.raises(weft.UsageError, match="WEFT_JWT_JWKS"):
        read_jwt_settings()
    monkeypatch.setenv("WEFT_JWT_AUDIENCE", AUDIENCE)
    monkeypatch.setenv("WEFT_JWT_JWKS", "file:///etc/passwd")
    with pytest.raises(weft.UsageError, match="not a URL"):
        read_jwt_settings()
    monkeypatch.setenv("WEFT_JWT_JWKS", "https://issuer.example/jwks")
    assert read_jwt_settings() == JwtSettings(issuer=ISSUER, audience=AUDIENCE, jwks="https://issuer.example/jwks")
