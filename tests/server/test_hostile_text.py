"""Text that no store, log or lookup should see: NUL characters and ids without end, refused at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from tests import scale
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from tests.servers import database
from weft.server.limits import RequestLimits
from weft.server.request import FORM_TYPE
from weft.server.route_table import ROUTES
from weft.server.router import ApiRoute

NUL = "a\0b"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("store")
    url = f"sqlite:///{folder / 'weft.db'}" if request.param == "sqlite" else database("hostile_text")
    with serving(shop(url)) as running:
        yield running


def hostile(kind: inspect.Type) -> Iterator[Any]:
    """Values of a type, each with a NUL in one of the places where it has text."""
    if isinstance(kind, inspect.StrType):
        yield NUL
    elif isinstance(kind, inspect.AnyType):
        yield from (NUL, {NUL: 1}, {"deep": [{"er": NUL}]})
    elif isinstance(kind, inspect.DictType):
        yield from ({key: sample(kind.value_type)} for key in hostile(kind.key_type))
        yield from ({"x": value} for value in hostile(kind.value_type))
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        yield from ([value] for value in hostile(kind.item_type))
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from hostile(one)
    elif isinstance(kind, inspect.Metadata):
        yield from hostile(kind.type)


def sample(kind: inspect.Type) -> Any:
    """A value of a type with nothing wrong in it."""
    if isinstance(kind, inspect.UnionType):
        return sample(kind.types[0])
    if isinstance(kind, inspect.Metadata):
        return sample(kind.type)
    if isinstance(kind, inspect.ListType):
        return [sample(kind.item_type)]
    for known, value in ((inspect.StrType, "x"), (inspect.BoolType, True), (inspect.DictType, {})):
        if isinstance(kind, known):
            return value
    return 1


def fields(of: type | None) -> tuple[inspect.Field, ...]:
    if of is None or of is msgspec.Raw:
        return ()
    info = inspect.type_info(of)
    assert isinstance(info, inspect.StructType)
    return info.fields


def path_of(route: ApiRoute, **given: str) -> str:
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", given.get(name, "x"))
    return path


def bodies(route: ApiRoute) -> Iterator[dict[str, Any]]:
    """Bodies of a route, each with a NUL somewhere."""
    known = fields(route.body)
    needed = {one.encode_name: sample(one.type) for one in known if one.required}
    for one in known:
        for value in hostile(one.type):
            yield {**needed, one.encode_name: value}


WRITES = [route for route in ROUTES if route.is_write and route.body not in (None, msgspec.Raw)]


@pytest.mark.parametrize("route", scale.sample(10, WRITES), ids=lambda route: route.name)
def test_a_nul_in_any_text_of_a_body_is_refused(server: Server, route: ApiRoute) -> None:
    for body in bodies(route):
        if route.takes == FORM_TYPE:
            answer = server.ask(route.method, path_of(route), raw=b"reason=a%00b", content_type=FORM_TYPE)
        else:
            answer = server.ask(route.method, path_of(route), body)
        assert answer.status == 422, (body, answer.raw)


@pytest.mark.parametrize(
    ("route", "name"),
    scale.sample(12, [(route, name) for route in ROUTES for name in route.parameters]),
    ids=lambda each: each.name if isinstance(each, ApiRoute) else each,
)
def test_a_nul_in_a_path_is_refused(server: Server, route: ApiRoute, name: str) -> None:
    body = (
        None
        if not fields(route.body)
        else next(iter([{one.encode_name: sample(one.type) for one in fields(route.body)}]))
    )

    answer = server.ask(route.method, path_of(route, **{name: "a%00b"}), body)

    assert answer.status == 422, answer.raw


@pytest.mark.parametrize(
    ("route", "field"),
    scale.sample(12, [(route, field.encode_name) for route in ROUTES for field in fields(route.query)]),
    ids=lambda each: each.name if isinstance(each, ApiRoute) else each,
)
def test_a_nul_in_a_query_is_refused(server: Server, route: ApiRoute, field: str) -> None:
    answer = server.ask(route.method, f"{path_of(route)}?{field}=a%00b")

    assert answer.status == 422, answer.raw


def test_an_escaped_backslash_is_no_nul(server: Server) -> None:
    run = server.start("hello", name="\\u0000")

    assert server.result(run)["output"] == "hello \\u0000!"


@pytest.mark.parametrize(
    "route", scale.sample(10, [route for route in ROUTES if route.parameters]), ids=lambda route: route.name
)
def test_long_paths_and_ids_are_refused_before_anything_is_looked_up(server: Server, route: ApiRoute) -> None:
    """Sixty thousand colons were sixty thousand lookups, all in one turn of the loop."""
    limits = RequestLimits()
    for text in (":" * 60_000, ":" * (limits.parameter_chars + 1)):
        path = path_of(route, **{route.parameters[0]: text})
        with socket.create_connection(("127.0.0.1", server.port), timeout=200) as client:
            client.sendall(f"{route.method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            assert client.recv(12) == b"HTTP/1.1 413"


def test_an_id_of_colons_costs_a_bounded_number_of_lookups(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = server.app.service.store.directory
    real, asked = directory.find, []

    async def find(id: Any) -> Any:
        asked.append(id)
        return await real(id)

    monkeypatch.setattr(directory, "find", find)

    answer = server.post(f"{API}/approvals/{':' * 5_000}/decision", {"approved": True})

    assert answer.status == 404
    assert len(asked) <= 1_000
