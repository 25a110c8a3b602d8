"""Entries of a WAL as bytes: one batch of appends each. Pure.

An entry is msgpack: ``(format, crc, appends)`` with ``(uid, epoch, seq, [(at, body)…], [refs])`` for each append. The
checksum is over the bytes of ``appends``. An entry is all there or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from weft.core.ids import Epoch, Millis, RunUid, Seq
from weft.errors import Corrupt, NewerSchema
from weft.ports.store import Append, StoredEvent

FORMAT: Final = 1
ENTRY_APPENDS_MAX: Final = 1_000
ENTRY_BYTES_MAX: Final = 1024 * 1024
_ENTRY_BYTES: Final = 16
_APPEND_BYTES: Final = 32
_EVENT_BYTES: Final = 16
_REF_BYTES: Final = 5

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_entry: Final = msgspec.msgpack.Decoder(tuple[int, int, msgspec.Raw]).decode
_decode_appends: Final = msgspec.msgpack.Decoder(list[tuple[str, int, int, list[tuple[int, bytes]], list[str]]]).decode


def size_max(append: Append) -> int:
    """Return the most bytes that an append takes in an entry.

    The sizes of the appends of a batch add up to at most ``ENTRY_BYTES_MAX``. A larger append does not go into a WAL.
    """
    size = _ENTRY_BYTES + _APPEND_BYTES + len(append.uid)
    for event in append.events:
        size += len(event.body) + _EVENT_BYTES
    for ref in append.refs:
        size += len(ref) + _REF_BYTES
    return size


def encode(appends: Sequence[Append]) -> bytes:
    """Return the entry of a batch. Of each append, it holds the events and the references, and nothing else."""
    assert 0 < len(appends) <= ENTRY_APPENDS_MAX
    packed = _encode(
        [
            (one.uid, one.epoch, one.seq, [(event.at, event.body) for event in one.events], list(one.refs))
            for one in appends
        ]
    )
    return _encode((FORMAT, crc32(packed), msgspec.Raw(packed)))


def decode(entry: bytes) -> list[Append]:
    """Return the appends of an entry, each marked as having work in flight.

    Raises:
        Corrupt: the bytes are not what was written.
        NewerSchema: a later version of Weft has written them.
    """
    try:
        version, crc, packed = _read_entry(entry)
        if version != FORMAT:
            raise NewerSchema(
                f"An entry of a write-ahead log has format {version}; this version of Weft reads format {FORMAT}.",
                hint="Run the newest version of Weft on at least one host: it drains the log.",
            )
        if crc32(packed) != crc:
            raise Corrupt("An entry of a write-ahead log does not match its checksum.", hint=_HINT)
        return [_make_append(*fields) for fields in _decode_appends(packed)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"An entry of a write-ahead log cannot be read: {error}.", hint=_HINT) from error


_HINT = "The runs in it go on from their last event in the durable store; other runs are not affected."


def _read_entry(entry: bytes) -> tuple[int, int, Any]:
    """Split an entry. A later format need not have three parts, only its number in front."""
    try:
        return _decode_entry(entry)
    except msgspec.ValidationError:
        parts = msgspec.msgpack.decode(entry)
        if isinstance(parts, list) and parts and isinstance(parts[0], int) and parts[0] != FORMAT:
            return parts[0], 0, b""
        raise


def _make_append(uid: str, epoch: int, seq: int, events: list[tuple[int, bytes]], refs: list[str]) -> Append:
    return Append(
        uid=RunUid(uid),
        epoch=Epoch(epoch),
        seq=Seq(seq),
        events=[StoredEvent(Seq(number), Millis(at), body) for number, (at, body) in enumerate(events, seq + 1)],
        idle_until=None,
        refs=refs,
    )
