"""Output streams: what is written is found by its offset, once, apart from any log."""

from typing import Any

from tests.contract.kit import NOBODY, OTHER, RUN, go, row, start
from weft.core.ids import Millis, RunUid
from weft.ports.store import Store
from weft.ports.streams import Chunk, NewChunk


def chunk(key: str, body: bytes = b'"a"', stream: str = "tokens", uid: str = RUN, **fields: Any) -> NewChunk:
    return NewChunk(uid=RunUid(uid), stream=stream, key=key, body=body, **({"at": Millis(5)} | fields))


def write(store: Store, *chunks: NewChunk) -> None:
    go(store.streams.write(chunks))


def read(store: Store, stream: str = "tokens", uid: str = RUN, after: int = 0, limit: int = 100) -> list[Chunk]:
    return list(go(store.streams.read(RunUid(uid), stream, after=after, limit=limit)))


def bodies(store: Store, **where: Any) -> list[bytes]:
    return [one.body for one in read(store, **where)]


def test_a_chunk_is_read_as_it_was_written(store: Store, peer: Store) -> None:
    start(store)
    write(store, chunk("k", b'{"a":"gr\xc3\xbcn"}', by="pages/~3/fetch#2", attempt=2, at=Millis(77)))

    expected = Chunk(offset=1, at=Millis(77), by="pages/~3/fetch#2", attempt=2, body=b'{"a":"gr\xc3\xbcn"}')
    assert read(peer) == [expected]


def test_offsets_begin_at_one_and_leave_out_none(store: Store) -> None:
    start(store)
    write(store, chunk("a", b"1"), chunk("b", b"2"))
    write(store, chunk("c", b"3"))

    assert [(one.offset, one.body) for one in read(store)] == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_many_chunks_keep_their_order(store: Store) -> None:
    start(store)
    write(store, *(chunk(f"k{n}", b"%d" % n) for n in range(150)))

    assert bodies(store, limit=200) == [b"%d" % n for n in range(150)]


def test_reading_begins_after_an_offset_and_ends_at_the_limit(store: Store) -> None:
    start(store)
    write(store, *(chunk(f"k{n}", b"%d" % n) for n in range(5)))

    assert [one.offset for one in read(store, after=1, limit=2)] == [2, 3]
    assert read(store, after=5) == []
    assert read(store, after=99) == []


def test_the_same_key_twice_is_one_chunk_and_costs_no_offset(store: Store, peer: Store) -> None:
    start(store)
    write(store, chunk("a", b"1"), chunk("a", b"other"))
    write(peer, chunk("a", b"again"), chunk("b", b"2"))

    assert [(one.offset, one.body) for one in read(store)] == [(1, b"1"), (2, b"2")]


def test_streams_and_runs_have_offsets_and_keys_of_their_own(store: Store) -> None:
    start(store)
    start(store, OTHER)
    write(store, chunk("a", b"1"), chunk("a", b"2", stream="log"), chunk("a", b"3", uid=OTHER))

    assert bodies(store) == [b"1"]
    assert bodies(store, stream="log") == [b"2"]
    assert bodies(store, uid=OTHER) == [b"3"]
    assert [one.offset for one in read(store, uid=OTHER)] == [1]


def test_a_run_that_does_not_exist_has_no_streams_and_harms_no_other_chunk(store: Store) -> None:
    start(store)
    write(store, chunk("a", uid=NOBODY), chunk("b", b"2"))

    assert bodies(store) == [b"2"]
    assert read(store, uid=NOBODY) == []
    assert go(store.streams.lengths(NOBODY)) == {}


def test_the_streams_of_a_run_are_listed_with_their_lengths(store: Store) -> None:
    start(store)
    assert go(store.streams.lengths(RunUid(RUN))) == {}

    write(store, chunk("a", stream="log"), chunk("a"), chunk("b"))

    assert go(store.streams.lengths(RunUid(RUN))) == {"log": 1, "tokens": 2}


def test_writing_nothing_is_allowed(store: Store) -> None:
    write(store)


def test_the_log_does_not_notice(store: Store) -> None:
    start(store)
    before = row(store)
    write(store, chunk("a"))

    assert row(store) == before
