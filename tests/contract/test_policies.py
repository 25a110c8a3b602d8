"""The policy of an installation: versions in a row, and limits that are never passed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy, WindowCount
from weft.ports.store import Store


def policy(version: int, **fields: Any) -> StoredPolicy:
    values: dict[str, Any] = {"text": f"# é {version}", "by": "ann", "at": 1_000 + version, "reason": "because"}
    return StoredPolicy(version=version, **(values | fields))


def count(name: str = "runs", *, limit: int = 2, **fields: Any) -> WindowCount:
    values: dict[str, Any] = {"tenant": "acme", "begins_at": 0, "ends_at": 1_000}
    return WindowCount(name=name, limit=limit, **(values | fields))


def test_versions_follow_each_other_and_all_are_kept(store: Store) -> None:
    assert go(store.policies.newest()) == 0
    assert go(store.policies.get(1)) is None

    for number in (1, 2, 3):
        assert go(store.policies.put(policy(number)))

    assert go(store.policies.newest()) == 3
    assert go(store.policies.get(2)) == policy(2)
    assert go(store.policies.get(0)) is None
    assert list(go(store.policies.history())) == [policy(3), policy(2), policy(1)]
    assert list(go(store.policies.history(upto=2, limit=1))) == [policy(2)]


def test_a_version_that_does_not_follow_the_newest_is_refused(store: Store) -> None:
    assert not go(store.policies.put(policy(2)))
    assert go(store.policies.put(policy(1)))
    assert not go(store.policies.put(policy(1, text="other")))

    assert go(store.policies.get(1)) == policy(1)


def test_of_two_who_write_the_same_version_one_wins(store: Store) -> None:
    async def both() -> list[bool]:
        return list(await asyncio.gather(*(store.policies.put(policy(1, by=name)) for name in ("ann", "bob"))))

    assert sorted(go(both())) == [False, True]
    assert len(go(store.policies.history())) == 1


def test_a_count_goes_up_to_its_limit(store: Store) -> None:
    taken = [go(store.policies.take([count()], now=Millis(10))) for _ in range(3)]

    assert taken == [None, None, count()]


def test_several_counts_go_up_together_or_not_at_all(store: Store) -> None:
    narrow, wide = count("narrow", limit=1), count("wide", limit=2)

    assert go(store.policies.take([wide, narrow], now=Millis(10))) is None
    assert go(store.policies.take([wide, narrow], now=Millis(10))) == narrow
    assert go(store.policies.take([wide], now=Millis(10))) is None
    assert go(store.policies.take([wide], now=Millis(10))) == wide


def test_tenants_names_and_windows_have_counts_of_their_own(store: Store) -> None:
    one = count(limit=1)
    others = [
        count(limit=1, tenant="other"),
        count("other", limit=1),
        count(limit=1, begins_at=1_000, ends_at=2_000),
    ]

    assert go(store.policies.take([one], now=Millis(10))) is None
    assert [go(store.policies.take([other], now=Millis(10))) for other in others] == [None, None, None]
    assert go(store.policies.take([one], now=Millis(10))) == one


def test_a_raised_limit_counts_on(store: Store) -> None:
    go(store.policies.take([count(limit=1)], now=Millis(10)))

    assert go(store.policies.take([count(limit=2)], now=Millis(10))) is None
    assert go(store.policies.take([count(limit=2)], now=Millis(10))) == count(limit=2)


def test_what_did_not_happen_is_given_back(store: Store) -> None:
    one = count(limit=1)
    go(store.policies.take([one], now=Millis(10)))

    go(store.policies.give_back([one, count("never taken")]))

    assert go(store.policies.take([one], now=Millis(10))) is None
    assert go(store.policies.take([one], now=Millis(10))) == one


def test_many_at_once_never_pass_the_limit(store: Store) -> None:
    async def rush() -> list[WindowCount | None]:
        wanted = [count("a", limit=5), count("b", limit=7)]
        return list(
            await asyncio.gather(
                *(store.policies.take(wanted[:: 1 if n % 2 else -1], now=Millis(10)) for n in range(20))
            )
        )

    assert go(rush()).count(None) == 5
