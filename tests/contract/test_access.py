"""Keys to the API: kept as digests, found by them, revoked once and for all; bytes that all hosts share."""

import asyncio
from typing import Any

import pytest

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.access import ApiKey
from weft.ports.store import Store


def key(id: str = "k1", **fields: Any) -> ApiKey:
    values: dict[str, Any] = {"digest": f"digest of {id}", "name": "ann", "scopes": ["read"], "created_at": 1_000}
    return ApiKey(id=id, **(values | fields))


def test_a_key_is_found_by_its_digest_as_it_was_kept(store: Store) -> None:
    kept = key(tenant="acme", groups=["role:ops", "team:é"], scopes=["read", "start"], expires_at=Millis(9_000))
    go(store.access.add(kept))

    assert go(store.access.find("digest of k1")) == kept
    assert go(store.access.find("digest of k2")) is None
    assert go(store.access.find("k1")) is None


def test_all_keys_are_listed_oldest_first(store: Store) -> None:
    for name, at in (("c", 3), ("a", 1), ("b", 1)):
        go(store.access.add(key(name, created_at=Millis(at))))

    assert [one.id for one in go(store.access.keys())] == ["a", "b", "c"]


@pytest.mark.parametrize("second", [key(), key("k2", digest="digest of k1")])
def test_a_key_cannot_take_the_place_of_another(store: Store, second: ApiKey) -> None:
    go(store.access.add(key()))

    with pytest.raises(Conflict):
        go(store.access.add(second))
    assert go(store.access.keys()) == [key()]


def test_a_revoked_key_stays_and_stays_revoked_since_the_first_time(store: Store) -> None:
    go(store.access.add(key()))

    assert go(store.access.revoke("k1", now=Millis(5_000)))
    assert go(store.access.revoke("k1", now=Millis(6_000)))

    found = go(store.access.find("digest of k1"))
    assert found is not None
    assert found.revoked_at == 5_000


def test_a_key_that_is_not_there_cannot_be_revoked(store: Store) -> None:
    assert not go(store.access.revoke("k1", now=Millis(5_000)))


def test_a_store_is_open_until_the_first_key_and_never_again(store: Store) -> None:
    assert go(store.access.is_open())
    go(store.access.add(key()))
    assert not go(store.access.is_open())
    go(store.access.revoke("k1", now=Millis(5_000)))
    assert not go(store.access.is_open())


def test_the_first_bytes_of_a_name_are_everybodys(store: Store) -> None:
    assert go(store.access.seed("links", b"\x00first")) == b"\x00first"
    assert go(store.access.seed("links", b"second")) == b"\x00first"
    assert go(store.access.seed("other", b"second")) == b"second"


def test_of_many_who_come_at_once_one_is_first(store: Store) -> None:
    async def all_at_once() -> set[bytes]:
        return set(await asyncio.gather(*(store.access.seed("links", b"%d" % n) for n in range(10))))

    assert len(go(all_at_once())) == 1
