"""Pinned tools in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from weft.ports.tool_pins import ToolPin
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT server, tool, accepted, seen, set_by, set_at FROM tool_pins"
_INSERT = "INSERT INTO tool_pins (server, tool, accepted, seen, set_by, set_at) VALUES (?, ?, ?, ?, ?, ?)"
_NOTE = (
    "INSERT INTO tool_pins (server, tool, accepted, seen, set_by, set_at) VALUES (?, ?, '', ?, '', ?) "
    "ON CONFLICT (server, tool) DO UPDATE SET seen = excluded.seen"
)
_ACCEPT = (
    "UPDATE tool_pins SET accepted = seen, seen = '', set_by = ?, set_at = ? "
    "WHERE server = ? AND tool = ? AND seen = ? AND seen <> ''"
)


class SqliteToolPins:
    """The pinned tools of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def list(self, server: str = "") -> Sequence[ToolPin]:
        text = f"{_SELECT} WHERE ?1 = '' OR server = ?1 ORDER BY server, tool"
        return self._reader.read(lambda connection: [_pin_of_row(row) for row in connection.execute(text, (server,))])

    async def begin(self, pins: Sequence[ToolPin]) -> bool:
        def work(connection: apsw.Connection) -> bool:
            for server in {pin.server for pin in pins}:
                if connection.execute("SELECT 1 FROM tool_pins WHERE server = ?", (server,)).fetchone() is not None:
                    return False
            for pin in pins:
                connection.execute(_INSERT, (pin.server, pin.tool, pin.accepted, pin.seen, pin.by, pin.at))
            return True

        return await self._writer.small(work)

    async def note(self, pin: ToolPin) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute(_NOTE, (pin.server, pin.tool, pin.seen, pin.at))

        await self._writer.small(work)

    async def accept(self, pin: ToolPin) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(_ACCEPT, (pin.by, pin.at, pin.server, pin.tool, pin.seen))
            return bool(connection.changes())

        return await self._writer.small(work)


def _pin_of_row(row: tuple[str, str, str, str, str, int]) -> ToolPin:
    server, tool, accepted, seen, by, at = row
    return ToolPin(server=server, tool=tool, accepted=accepted, seen=seen, by=by, at=at)  # type: ignore[arg-type]
