"""Definitions: a version never changes."""

import pytest

from tests.contract.kit import append, commit, go, start
from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.definitions import VERSION_MARK, Definition, Origin
from weft.ports.store import Store
from weft.ports.tags import Tag, TagKey, TagMove


def definition(
    version: str = "1", name: str = "order", body: bytes = b'{"nodes":[]}', at: int = 10, origin: Origin = "hosted"
) -> Definition:
    return Definition(name=name, version=version, style="graph", body=body, created_at=Millis(at), origin=origin)


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


def test_a_version_says_how_it_came_into_the_store(store: Store, peer: Store) -> None:
    put(store, definition("1", origin="run"), definition("2"))

    found = {one.version: one.origin for one in go(peer.definitions.versions("order"))}

    assert found == {"1": "run", "2": "hosted"}


def test_the_origin_of_a_version_is_only_ever_raised(store: Store, peer: Store) -> None:
    put(store, definition("1", origin="run"))

    for origin, after in (
        ("run", "run"),
        ("patch", "patch"),
        ("run", "patch"),
        ("hosted", "hosted"),
        ("patch", "hosted"),
    ):
        go(store.definitions.promote("order", "1", origin, at=Millis(20)))
        known = go(peer.definitions.get("order", "1"))
        assert known is not None
        assert known.origin == after
    go(store.definitions.promote("order", "2", "hosted", at=Millis(20)))
    assert go(store.definitions.get("order", "2")) is None


def test_the_names_of_a_style_are_listed_without_what_they_stand_for(store: Store, peer: Store) -> None:
    assert go(store.definitions.names("graph")) == []
    put(store, definition("2"), definition("1"), definition("b", name="Bill"), definition("a", name="bill"))
    put(store, Definition(name="weft.catalogue", version="1", style="catalogue", body=b"[]", created_at=Millis(1)))

    listed = list(go(peer.definitions.names("graph")))

    assert listed == [("Bill", "b"), ("bill", "a"), ("order", "1"), ("order", "2")]
    assert go(store.definitions.names("catalogue")) == [("weft.catalogue", "1")]


def unused(store: Store, before: int = 100) -> list[str]:
    return [version for _, version in go(store.definitions.unused("graph", before=Millis(before), limit=50))]


def test_a_version_that_nothing_names_is_removed_when_it_is_old(store: Store, peer: Store) -> None:
    put(store, definition("1", at=10), definition("2", at=50))
    go(store.definitions.promote("order", "1", "run", at=Millis(40)))

    assert (unused(store, 40), unused(store, 41), unused(store)) == ([], ["1"], ["1", "2"])
    assert go(store.definitions.remove("order", "1", before=Millis(40))) is False
    assert go(store.definitions.remove("order", "1", before=Millis(41))) is True
    assert go(peer.definitions.get("order", "1")) is None
    assert go(store.definitions.remove("order", "1", before=Millis(41))) is False
    assert put(store, definition("1", at=99)) == [True]


def test_what_a_run_or_a_tag_names_stays(store: Store) -> None:
    put(store, *(definition(version) for version in "123456"), definition("1", name="other"))
    start(store, count=1, version="1")
    commit(store, append(seq=1, attributes={f"{VERSION_MARK}2": True}))
    key = TagKey("acme", "order", "live")
    for n, (before, after) in enumerate([("", "3"), ("3", "4")], 1):
        tag = Tag(key=key, version=after, cursor=n, moves=n, revision=n, at=Millis(1))
        go(store.tags.write(tag, TagMove(number=n, before=before, after=after, at=Millis(1))))

    assert go(store.definitions.unused("graph", before=Millis(100), limit=50)) == [
        ("order", "5"),
        ("order", "6"),
        ("other", "1"),
    ]
    assert len(go(store.definitions.unused("graph", before=Millis(100), limit=1))) == 1
    assert not any(go(store.definitions.remove("order", version, before=Millis(100))) for version in "1234")


def test_only_those_of_the_style_are_found(store: Store) -> None:
    put(store, Definition(name="weft.catalogue", version="1", style="steps", body=b"{}", created_at=Millis(1)))

    assert unused(store) == []
