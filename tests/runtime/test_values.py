"""The cache of blobs: bounded by bytes, oldest out first, and never wrong."""

from weft.runtime.values import BlobCache


def test_what_was_added_is_there() -> None:
    cache = BlobCache(100)
    cache.add("a", b"1")
    assert cache.get("a") == b"1"
    assert cache.get("b") is None


def test_the_oldest_leave_when_it_is_full() -> None:
    cache = BlobCache(10)
    for name in "abcd":
        cache.add(name, b"x" * 4)
    assert [cache.get(name) is not None for name in "abcd"] == [False, False, True, True]


def test_the_newest_stays_however_large_it_is() -> None:
    cache = BlobCache(10)
    cache.add("a", b"x")
    cache.add("huge", b"x" * 1000)
    assert cache.get("huge") is not None
    assert cache.get("a") is None
    cache.add("b", b"y")
    assert cache.get("b") == b"y"
    assert cache.get("huge") is None


def test_adding_again_makes_it_young() -> None:
    cache = BlobCache(10)
    cache.add("a", b"x" * 4)
    cache.add("b", b"x" * 4)
    cache.add("a", b"x" * 4)
    cache.add("c", b"x" * 4)
    assert cache.get("a") is not None
    assert cache.get("b") is None
