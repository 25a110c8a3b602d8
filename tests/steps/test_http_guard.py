"""Nobody is connected to who was not checked: spellings, names, redirects; a listener counts what arrives."""

from __future__ import annotations

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.steps.http_kit import ELSEWHERE, Handler, answering, calling, get, go, serving
from weft.errors import BadValue, WeftError
from weft.steps.http.client import HttpClient
from weft.steps.http.failures import AddressRefused, HttpFailed, HttpUnavailable, is_final
from weft.steps.http.guard import Guard, system_lookup


def counting(hits: list[str]) -> Handler:
    async def count(request: web.Request) -> web.StreamResponse:
        hits.append(request.path)
        return web.Response(text="inside")

    return count


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "0x7f.0.0.1",
        "127.0.0.1.", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[0:0:0:0:0:0:0:1]", "[fe80::1%25lo]", "①②⑦.⓪.⓪.①", "127。0。0。1",
    ],
)  # fmt: skip
def test_loopback_is_not_called_however_it_is_spelled(host: str) -> None:
    hits: list[str] = []

    async def scenario() -> None:
        async with serving(counting(hits)) as base, calling(allow="") as client:
            port = base.rpartition(":")[2]
            with pytest.raises((AddressRefused, BadValue)) as refused:
                await client.send(get(f"http://{host}:{port}/"))
            assert is_final(refused.value)

    go(scenario())
    assert hits == []


@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.2"])
def test_allowing_an_address_does_not_allow_its_disguises_or_neighbours(host: str) -> None:
    async def scenario() -> None:
        async with calling("127.0.0.1") as client:
            with pytest.raises(AddressRefused, match="not a public address"):
                await client.send(get(f"http://{host}:9/"))

    go(scenario())


@pytest.mark.parametrize("addresses", [["127.0.0.2"], ["93.184.216.34", "127.0.0.2"], ["::1"], ["::ffff:10.0.0.1"]])
def test_a_name_with_one_private_address_among_its_addresses_is_not_called(addresses: list[str]) -> None:
    hits: list[str] = []

    async def scenario() -> None:
        names = {"shop.example": addresses}
        async with serving(counting(hits), ELSEWHERE) as base, calling(names=names) as client:
            with pytest.raises(AddressRefused, match=r"shop\.example \("):
                await client.send(get(base.replace(ELSEWHERE, "shop.example")))

    go(scenario())
    assert hits == []


def test_a_name_that_changes_its_address_is_connected_to_where_it_was_checked() -> None:
    """The first answer may be called, every later one may not: it must not be asked a second time."""
    hits: list[str] = []
    asked: list[str] = []

    async def lookup(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else [ELSEWHERE]

    async def scenario() -> None:
        async with serving(answering(text="outside")) as base, calling() as client:
            client._lookup = lookup
            answer = await client.send(get(base.replace("127.0.0.1", "rebind.example")))
            assert answer.body == b"outside"

    go(scenario())
    assert asked == ["rebind.example"]
    assert hits == []


def test_a_host_allowed_by_name_is_called_wherever_it_lives_and_no_other_there() -> None:
    async def scenario() -> None:
        names = {"billing.internal": [ELSEWHERE], "other.example": [ELSEWHERE]}
        async with serving(answering(text="ok"), ELSEWHERE) as base, calling("billing.internal", names=names) as client:
            answer = await client.send(get(base.replace(ELSEWHERE, "billing.internal")))
            assert answer.status == 200
            with pytest.raises(AddressRefused):
                await client.send(get(base.replace(ELSEWHERE, "other.example")))
            with pytest.raises(AddressRefused):
                await client.send(get(base))

    go(scenario())


def test_a_socket_is_checked_where_it_is_made_even_if_the_resolver_was_fooled() -> None:
    hits: list[str] = []

    class Fooled(Guard):
        def check_literal(self, host: str) -> None: ...

    async def scenario() -> None:
        async with serving(counting(hits), ELSEWHERE) as base, calling() as client:
            wire = client._open()
            wire._guard.__class__ = Fooled
            client._wire = wire
            with pytest.raises(AddressRefused):
                await client.send(get(base))

    go(scenario())
    assert hits == []


@pytest.mark.parametrize(
    "target", ["http://127.0.0.2:{port}/x", "//127.0.0.2:{port}/x", "http://[::1]:{port}/", "http://2130706434:{port}/"]
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(target: str, status: int) -> None:
    hits: list[str] = []

    async def scenario() -> None:
        async with serving(counting(hits), ELSEWHERE) as inside, calling() as client:
            location = target.format(port=inside.rpartition(":")[2])
            async with serving(answering(status=status, headers={"Location": location})) as base:
                with pytest.raises(AddressRefused):
                    await client.send(get(base, method="POST", body=b"secret"))

    go(scenario())
    assert hits == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://shop.example/", "file:///etc/passwd", "gopher://x/", "shop.example/x", "//shop.example", "", "http://", "http:///x",
        "http://user:pass@shop.example/", "http://user@shop.example/", "http://x\\@127.0.0.1/", "http://x/\r\nHost: y",
        "http://x:99999/", "http://x:0/", "http://[::1/", "http://[]x@", "http://a..b/", "http://a%00b/",
        f"http://{'a' * 64}.example/", "http://a b/", "http://-a.example/", "http://*/", "javascript:alert(1)", "http://a:b:c/",
    ],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused_and_secrets_in_it_are_not_told(url: str) -> None:
    async def scenario() -> None:
        async with calling(names={}) as client:
            with pytest.raises(BadValue) as refused:
                await client.send(get(url))
            assert "pass" not in str(refused.value).replace("password", "")

    go(scenario())


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://u:p@127.0.0.1/", "http://[::1/", "ftp://x/", "http://\\x"]
)
def test_a_redirect_to_what_is_no_plain_web_address_fails(location: str) -> None:
    async def scenario() -> None:
        async with serving(answering(status=302, headers={"Location": location})) as base, calling() as client:
            with pytest.raises(HttpFailed, match="redirected to") as failed:
                await client.send(get(base))
            assert is_final(failed.value)

    go(scenario())


@given(st.lists(st.text("a1.:@[]/\\?#%é😀 \t。-_xn0", max_size=14), min_size=20, max_size=20))
def test_whatever_stands_for_an_address_ends_in_a_typed_error(texts: list[str]) -> None:
    async def scenario() -> None:
        async with calling("", names={}) as client:
            for text in texts:
                with pytest.raises(WeftError):
                    await client.send(get(f"http://{text}"))

    go(scenario())


def test_a_name_that_does_not_exist_is_tried_again_later() -> None:
    async def scenario() -> None:
        async with calling(names={}) as client:
            with pytest.raises(HttpUnavailable, match="could not connect") as failed:
                await client.send(get("http://nobody.example/path?token=s3cret"))
            assert not is_final(failed.value)
            assert not failed.value.in_doubt
            assert "s3cret" not in str(failed.value)

    go(scenario())


def test_the_environment_says_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.0/8")

    async def scenario() -> int:
        client = HttpClient()
        async with serving(answering(text="x"), ELSEWHERE) as base:
            try:
                return (await client.send(get(base))).status
            finally:
                await client.close()

    assert go(scenario()) == 200


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[str] = []

    async def scenario() -> bytes:
        async with serving(counting(hits), ELSEWHERE) as proxy, serving(answering(text="direct")) as base:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy)
            async with calling() as client:
                return (await client.send(get(base))).body

    assert go(scenario()) == b"direct"
    assert hits == []


def test_the_system_finds_localhost() -> None:
    assert {"127.0.0.1", "::1"} & set(go(system_lookup("localhost")))
