"""Commit a plain append, one that has only events, in one call of SQLite on the caller's thread.

The speed of a single run depends on this function. After a commit the processor's caches are cold, so every line of
Python costs several times as much as elsewhere, and this module has as few lines as possible. An append that is not
plain, or that the guard refuses, is committed by ``commit.py``, which judges it again.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from weft.core.ids import HostId
from weft.ports.store import Append
from weft.stores.checksums import event_crc
from weft.stores.judge import has_only_events
from weft.stores.sqlite.commit import GUARD
from weft.stores.sqlite.writer import Writer

EVENTS_MAX = 4
"""Appends with more events are rare, and ``commit.py`` is faster for them."""


def _append_text(events: int, extra: str = "") -> str:
    return (
        "BEGIN IMMEDIATE; "
        f"UPDATE runs SET seq = ?, updated_at = ?{extra} {GUARD}; "
        "INSERT INTO events (run, seq, at, body, crc) "
        f"SELECT * FROM (VALUES {', '.join(['(?, ?, ?, ?, ?)'] * events)}) WHERE changes() = 1; "
        "COMMIT"
    )


_TEXTS = [_append_text(events) for events in range(1, EVENTS_MAX + 1)]
_IDLE_TEXTS = [_append_text(events, ", idle_until = ?") for events in range(1, EVENTS_MAX + 1)]


def try_plain_append(writer: Writer, append: Append, host: HostId) -> bool:
    """Commit a plain append now. Returns False, with nothing written, if it is not plain or the guard refused it."""
    events = append.events
    count = len(events)
    if not 0 < count <= EVENTS_MAX or not has_only_events(append) or not writer.try_acquire():
        return False
    try:
        found = writer.numbers.get(append.uid)
        if found is None:
            return False
        num, uid_sum = found
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
            values += (num, seq, at, body.decode(), event_crc(uid_sum, seq, at, body))
        return writer.run_text(text, values) == count
    finally:
        writer.lock.release()
