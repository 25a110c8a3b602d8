"""Pinned tools in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ports.tool_pins import ToolPin
from weft.stores.postgres.pool import Pool, fetch, fetch_value
from weft.stores.postgres.session import Record, Session

_SELECT = "SELECT server, tool, accepted, seen, set_by, set_at FROM tool_pins"
_INSERT = "INSERT INTO tool_pins (server, tool, accepted, seen, set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6)"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('weft.tool_pins/' || $1, 0))"
_NOTE = (
    "INSERT INTO tool_pins (server, tool, accepted, seen, set_by, set_at) VALUES ($1, $2, '', $3, '', $4) "
    "ON CONFLICT (server, tool) DO UPDATE SET seen = excluded.seen"
)
_ACCEPT = (
    "UPDATE tool_pins SET accepted = seen, seen = '', set_by = $1, set_at = $2 "
    "WHERE server = $3 AND tool = $4 AND seen = $5 AND seen <> '' RETURNING 1"
)


class PostgresToolPins:
    """The pinned tools of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list(self, server: str = "") -> Sequence[ToolPin]:
        text = f"{_SELECT} WHERE $1 = '' OR server = $1 ORDER BY server, tool"
        return [_pin_of_row(row) for row in await fetch(self._pool, text, server)]

    async def begin(self, pins: Sequence[ToolPin]) -> bool:
        async def work(session: Session) -> bool:
            async with session.transaction():
                for server in sorted({pin.server for pin in pins}):
                    await session.fetchval(_LOCK, server)  # of two hosts that see a server first, one pins its tools
                    if await session.fetchval("SELECT 1 FROM tool_pins WHERE server = $1 LIMIT 1", server):
                        return False
                for pin in pins:
                    values = (pin.server, pin.tool, pin.accepted, pin.seen, pin.by, pin.at)
                    await session.execute(_INSERT, *values)
            return True

        return await self._pool.run(work)

    async def note(self, pin: ToolPin) -> None:
        await fetch(self._pool, _NOTE, pin.server, pin.tool, pin.seen, pin.at)

    async def accept(self, pin: ToolPin) -> bool:
        values = (pin.by, pin.at, pin.server, pin.tool, pin.seen)
        return bool(await fetch_value(self._pool, _ACCEPT, *values))


def _pin_of_row(row: Record) -> ToolPin:
    server, tool, accepted, seen, by, at = row
    return ToolPin(server=server, tool=tool, accepted=accepted, seen=seen, by=by, at=at)
