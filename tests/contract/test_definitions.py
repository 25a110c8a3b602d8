"""Definitions: a version never changes, and a tag stands for one."""

import pytest

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.errors import Conflict, NotFound
from weft.ports.store import Definition, Store


def definition(version: str = "1", name: str = "order", body: bytes = b'{"nodes":[]}', at: int = 10) -> Definition:
    return Definition(name=name, version=version, style="graph", body=body, created_at=Millis(at))


def put(store: Store, *definitions: Definition) -> list[bool]:
    return [go(store.definitions.put(one)) for one in definitions]


def test_a_definition_is_kept(store: Store, peer: Store) -> None:
    assert put(store, definition()) == [True]
    assert go(peer.definitions.get("order", "1")) == definition()


def test_what_was_never_put_is_not_there(store: Store) -> None:
    put(store, definition())

    assert go(store.definitions.get("order", "2")) is None
    assert go(store.definitions.get("refund", "1")) is None


def test_the_very_same_definition_is_the_same_version(store: Store) -> None:
    assert put(store, definition(at=10), definition(at=99)) == [True, False]
    assert go(store.definitions.get("order", "1")) == definition(at=10)


def test_a_version_never_changes(store: Store) -> None:
    put(store, definition())

    with pytest.raises(Conflict):
        put(store, definition(body=b"{}"))

    assert go(store.definitions.get("order", "1")) == definition()


def test_versions_are_listed_by_name_and_then_oldest_first(store: Store) -> None:
    put(store, definition("2", at=10), definition("1", at=20), definition("9", name="bill", at=99))
    put(store, definition("b", at=30), definition("a", at=30))

    listed = [(one.name, one.version) for one in go(store.definitions.versions())]

    assert listed == [("bill", "9"), ("order", "2"), ("order", "1"), ("order", "b"), ("order", "a")]
    assert [one.version for one in go(store.definitions.versions("bill"))] == ["9"]
    assert list(go(store.definitions.versions("ghost"))) == []


def test_a_tag_stands_for_a_version(store: Store) -> None:
    put(store, definition("1"), definition("2"))

    go(store.definitions.tag("order", "live", "1"))
    assert go(store.definitions.get("order", "live")) == definition("1")

    go(store.definitions.tag("order", "live", "2"))
    assert go(store.definitions.get("order", "live")) == definition("2")


def test_a_version_comes_before_a_tag_of_that_name(store: Store) -> None:
    put(store, definition("1"), definition("2"))

    go(store.definitions.tag("order", "2", "1"))

    assert go(store.definitions.get("order", "2")) == definition("2")


def test_a_tag_belongs_to_its_workflow(store: Store) -> None:
    put(store, definition(), definition(name="bill"))

    go(store.definitions.tag("order", "live", "1"))

    assert go(store.definitions.get("bill", "live")) is None


def test_a_tag_for_what_is_not_there_is_refused(store: Store) -> None:
    put(store, definition())

    with pytest.raises(NotFound):
        go(store.definitions.tag("order", "live", "2"))

    assert go(store.definitions.get("order", "live")) is None


def test_tags_are_listed_with_what_they_mean(store: Store, peer: Store) -> None:
    go(store.definitions.put(definition(version="1")))
    go(store.definitions.put(definition(version="2")))
    assert go(store.definitions.tags("order")) == {}

    go(store.definitions.tag("order", "live", "1"))
    go(store.definitions.tag("order", "next", "2"))
    go(store.definitions.tag("order", "live", "2"))

    assert go(peer.definitions.tags("order")) == {"live": "2", "next": "2"}
    assert go(store.definitions.tags("refund")) == {}


def test_the_names_of_a_style_are_listed_without_what_they_stand_for(store: Store, peer: Store) -> None:
    assert go(store.definitions.names("graph")) == []
    put(store, definition("2"), definition("1"), definition("b", name="Bill"), definition("a", name="bill"))
    put(store, Definition(name="weft.catalogue", version="1", style="catalogue", body=b"[]", created_at=Millis(1)))

    listed = list(go(peer.definitions.names("graph")))

    assert listed == [("Bill", "b"), ("bill", "a"), ("order", "1"), ("order", "2")]
    assert go(store.definitions.names("catalogue")) == [("weft.catalogue", "1")]
