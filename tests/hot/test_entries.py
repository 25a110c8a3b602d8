"""An entry of a WAL comes back as it was written, or not at all."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.ids import Epoch, Millis, RunUid, Seq
from weft.errors import Corrupt, NewerSchema
from weft.ports.store import Append, StoredEvent
from weft.stores.hot.entries import ENTRY_APPENDS_MAX, FORMAT, decode, encode, size_max

INT = st.integers(min_value=0, max_value=2**53)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    seq = draw(INT)
    bodies = draw(st.lists(st.tuples(INT, st.binary(max_size=50)), min_size=1, max_size=4))
    return Append(
        uid=RunUid(draw(st.text(alphabet="0123456789abcdef", min_size=1, max_size=32))),
        epoch=Epoch(draw(INT)),
        seq=Seq(seq),
        events=[StoredEvent(Seq(number), Millis(at), body) for number, (at, body) in enumerate(bodies, seq + 1)],
        idle_until=None,
        refs=draw(st.lists(st.text(max_size=64), max_size=3)),
    )


def one(body: bytes = b'{"k":1}') -> Append:
    return Append(
        uid=RunUid("a1"), epoch=Epoch(3), seq=Seq(7), events=[StoredEvent(Seq(8), Millis(5), body)], idle_until=None
    )


@given(st.lists(appends(), min_size=1, max_size=5))
def test_a_batch_comes_back_as_it_was_written(batch: list[Append]) -> None:
    assert decode(encode(batch)) == batch


@given(st.lists(appends(), min_size=1, max_size=5))
def test_an_entry_is_never_larger_than_was_said(batch: list[Append]) -> None:
    assert len(encode(batch)) <= sum(size_max(append) for append in batch)


@given(st.data())
def test_damage_is_found_wherever_it_is(data: st.DataObject) -> None:
    entry = bytearray(encode([one()]))
    place = data.draw(st.integers(min_value=0, max_value=len(entry) - 1))
    entry[place] ^= data.draw(st.integers(min_value=1, max_value=255))
    with pytest.raises((Corrupt, NewerSchema)):
        decode(bytes(entry))


def test_damage_that_makes_a_text_of_a_number_is_found() -> None:
    entry = bytearray(encode([one()]))
    entry[2] ^= 118
    with pytest.raises(Corrupt):
        decode(bytes(entry))


@pytest.mark.parametrize("length", range(len(encode([one()]))))
def test_an_entry_that_was_cut_is_damaged(length: int) -> None:
    with pytest.raises(Corrupt, match="cannot be read"):
        decode(encode([one()])[:length])


@pytest.mark.parametrize("later", [(FORMAT + 1, 0, []), (FORMAT + 1,), (FORMAT + 1, {"a": 1}, "b", "c")])
def test_a_later_format_is_not_taken_for_damage(later: tuple[object, ...]) -> None:
    with pytest.raises(NewerSchema, match=f"format {FORMAT + 1}"):
        decode(msgspec.msgpack.encode(later))


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"\xc0",
        b"text",
        msgspec.msgpack.encode(("a", 1, [])),
        msgspec.msgpack.encode([]),
        b"\x91" * 5_000,
        b"\x93\x01\x00" + b"\x91" * 5_000 + b"\xc0",
    ],
)
def test_what_was_never_an_entry_is_damaged(other: bytes) -> None:
    with pytest.raises(Corrupt):
        decode(other)


def test_a_batch_has_at_most_a_thousand_appends() -> None:
    assert len(decode(encode([one()] * ENTRY_APPENDS_MAX))) == ENTRY_APPENDS_MAX
    for count in (0, ENTRY_APPENDS_MAX + 1):
        with pytest.raises(AssertionError):
            encode([one()] * count)
