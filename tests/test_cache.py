"""A cache keeps what was used last and never more than it may, by count or by size."""

import random

from weft.cache import BoundedCache


def test_the_entry_that_was_used_longest_ago_goes_first() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)

    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_an_entry_that_is_put_again_is_the_newest_and_counts_once() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(4, len)
    cache.put("a", b"12")
    cache.put("b", b"1")
    cache.put("a", b"123")

    assert (cache.get("a"), cache.get("b"), len(cache)) == (b"123", b"1", 2)
    cache.put("c", b"1")
    assert cache.get("a") is None


def test_the_newest_entry_stays_however_large_it_is() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(4, len)
    cache.put("a", b"1")
    cache.put("b", b"123456")

    assert (cache.get("a"), cache.get("b")) == (None, b"123456")


def test_entries_together_never_exceed_the_bound() -> None:
    dice = random.Random(1)
    cache: BoundedCache[int, bytes] = BoundedCache(50, len)
    kept: dict[int, bytes] = {}
    for _ in range(2_000):
        key = dice.randrange(30)
        kept[key] = b"x" * dice.randrange(1, 20)
        cache.put(key, kept[key])
        found = {key: cache.get(key) for key in range(30)}

        assert sum(len(value) for value in found.values() if value is not None) <= 50
        assert all(value is None or value == kept[key] for key, value in found.items())
