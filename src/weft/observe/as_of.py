"""Up to when the events of a run are known here, if its host has newer ones in Redis."""

from __future__ import annotations

from weft.core.ids import Millis
from weft.ports.store import RunRow
from weft.runtime.service import RunService


def as_of(service: RunService, row: RunRow) -> Millis | None:
    """Return when the store last got events of a run, if its host may have newer ones; None: the store has them all.

    The host is then asked to bring them into the store now, for whoever looks next. One of this process has done so.
    """
    wals, local = service.store.wals, service.local
    if row.wal is None or (local is not None and local.host == row.owner):
        return None
    if wals is not None:
        wals.ask_to_drain(row.uid)
    return row.updated_at
