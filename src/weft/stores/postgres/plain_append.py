"""Commit the plain append of one run in one statement. This decides how fast a single run goes.

An append that is not plain, or that the guard refuses, is committed by ``commit.py``, which judges it again.
"""
# ruff: noqa: S608  # only names of ours are put into statements, values are bound

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from weft.core.ids import HostId
from weft.ports.store import Append
from weft.stores.checksums import event_crc, uid_crc
from weft.stores.postgres.session import Session
from weft.stores.rules import is_plain

EVENTS_MAX = 4
"""More events are rare, and then ``commit.py`` is faster."""


def _text(events: int, *more: str) -> str:
    start = 7 + len(more)
    rows = ", ".join(
        f"(${first}::bigint, ${first + 1}::bigint, ${first + 2}::bigint, ${first + 3}::text)"
        for first in range(start, start + 4 * events, 4)
    )
    return (
        f"WITH head AS (UPDATE runs SET {', '.join(('seq = $5', 'updated_at = $6', *more))} "
        "WHERE uid = $1 AND epoch = $2 AND seq = $3 AND owner = $4 RETURNING num) "
        f"INSERT INTO events (run, seq, at, crc, body) SELECT num, e.* FROM head, (VALUES {rows}) AS e"
    )


_TEXTS = [_text(events) for events in range(1, EVENTS_MAX + 1)]
# idle_until is set only when it changes: every append would pay for its index.
_IDLE_TEXTS = [_text(events, "idle_until = $7") for events in range(1, EVENTS_MAX + 1)]


def plain_statement(append: Append, host: HostId) -> tuple[str, list[Any]] | None:
    """Return the statement and its values. None: the append is not plain, or its events are numbered wrongly."""
    events = append.events
    count = len(events)
    if not 0 < count <= EVENTS_MAX or not is_plain(append):
        return None
    of_uid = uid_crc(append.uid)
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
        values += (seq, event.at, event_crc(of_uid, seq, event.at, event.body), event.body.decode())
    return texts[count - 1], values


async def try_plain_append(session: Session, text: str, values: list[Any]) -> bool:
    """Commit a plain append. False: the guard refused it and nothing was written."""
    done: str = await session.execute(text, *values)
    return done != "INSERT 0 0"
