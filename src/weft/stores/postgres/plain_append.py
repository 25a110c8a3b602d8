"""Commit a plain append, one that has only events, in one statement. The speed of a single run depends on it.

An append that is not plain, or that the guard refuses, is committed by ``commit.py``, which judges it again.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from weft.core.ids import HostId
from weft.ports.store import Append
from weft.stores.checksums import event_crc, uid_crc
from weft.stores.judge import has_only_events
from weft.stores.postgres.session import Session

EVENTS_MAX = 4
"""Appends with more events are rare, and ``commit.py`` is faster for them."""


def _append_text(events: int, *extra: str) -> str:
    start = 7 + len(extra)
    rows = ", ".join(
        f"(${first}::bigint, ${first + 1}::bigint, ${first + 2}::bigint, ${first + 3}::text)"
        for first in range(start, start + 4 * events, 4)
    )
    return (
        f"WITH head AS (UPDATE runs SET {', '.join(('seq = $5', 'updated_at = $6', *extra))} "
        "WHERE uid = $1 AND epoch = $2 AND seq = $3 AND owner = $4 RETURNING num) "
        f"INSERT INTO events (run, seq, at, crc, body) SELECT num, e.* FROM head, (VALUES {rows}) AS e"
    )


_TEXTS = [_append_text(events) for events in range(1, EVENTS_MAX + 1)]
# A separate statement, because updating the index of ``idle_until`` would slow down every append.
_IDLE_TEXTS = [_append_text(events, "idle_until = $7") for events in range(1, EVENTS_MAX + 1)]


def plain_statement(append: Append, host: HostId) -> tuple[str, list[Any]] | None:
    """Return the statement and its values; None if the append is not plain or its events are numbered wrongly."""
    events = append.events
    count = len(events)
    if not 0 < count <= EVENTS_MAX or not has_only_events(append):
        return None
    uid_sum = uid_crc(append.uid)
    seq = int(append.seq)
    values: list[Any] = [append.uid, append.epoch, seq, host, seq + count, events[-1].at]
    texts = _TEXTS
    if append.idle_until is not UNSET:
        texts = _IDLE_TEXTS
        values.append(append.idle_until)
    for event in events:
        seq += 1
        if event.seq != seq:
            return None
        values += (seq, event.at, event_crc(uid_sum, seq, event.at, event.body), event.body.decode())
    return texts[count - 1], values


async def try_plain_append(session: Session, text: str, values: list[Any]) -> bool:
    """Commit a plain append. Returns False if the guard refused it and nothing was written."""
    tag: str = await session.execute(text, *values)
    return tag != "INSERT 0 0"
