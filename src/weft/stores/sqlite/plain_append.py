"""Commit the plain append of one run in one call of SQLite, on the caller's thread.

This decides how fast a single run goes. After a commit the processor's caches are cold, so every line of Python costs
several times as much as elsewhere; this module has as few as possible. An append that is not plain, or that the guard
refuses, is committed by ``commit.py``, which judges it again.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from weft.core.ids import HostId
from weft.ports.store import Append
from weft.stores.checksums import event_crc
from weft.stores.rules import is_plain
from weft.stores.sqlite.commit import GUARD
from weft.stores.sqlite.writer import Writer

EVENTS_MAX = 4
"""More events are rare, and then ``commit.py`` is faster."""


def _text(events: int, more: str = "") -> str:
    return (
        "BEGIN IMMEDIATE; "
        f"UPDATE runs SET seq = ?, updated_at = ?{more} {GUARD}; "
        "INSERT INTO events (run, seq, at, body, crc) "
        f"SELECT * FROM (VALUES {', '.join(['(?, ?, ?, ?, ?)'] * events)}) WHERE changes() = 1; "
        "COMMIT"
    )


_TEXTS = [_text(events) for events in range(1, EVENTS_MAX + 1)]
_IDLE_TEXTS = [_text(events, ", idle_until = ?") for events in range(1, EVENTS_MAX + 1)]


def try_plain_append(writer: Writer, append: Append, host: HostId) -> bool:
    """Commit a plain append now. False: the guard refused it, or it cannot be done here; nothing was written."""
    events = append.events
    count = len(events)
    if not 0 < count <= EVENTS_MAX or not is_plain(append) or not writer.try_acquire():
        return False
    try:
        found = writer.numbers.get(append.uid)
        if found is None:
            return False
        num, of_uid = found
        seq = int(append.seq)
        if append.idle_until is UNSET:
            text = _TEXTS[count - 1]
            values: list[Any] = [seq + count, events[-1].at, num, append.epoch, seq, host]
        else:
            text = _IDLE_TEXTS[count - 1]
            values = [seq + count, events[-1].at, append.idle_until, num, append.epoch, seq, host]
        for event in events:
            seq += 1
            if event.seq != seq:
                return False
            at, body = event.at, event.body
            values += (num, seq, at, body.decode(), event_crc(of_uid, seq, at, body))
        return writer.run_text(text, values) == count
    finally:
        writer.lock.release()
