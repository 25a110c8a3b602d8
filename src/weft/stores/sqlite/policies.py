"""The policy and the counts of its limits in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy, WindowCount
from weft.stores.sqlite.reader import SqliteReader
from weft.stores.sqlite.writer import Writer

_SELECT = "SELECT version, body, set_by, set_at, reason FROM policies"
_NEWEST = "SELECT coalesce(max(version), 0) FROM policies"
_PUT = (
    f"INSERT INTO policies (version, body, set_by, set_at, reason) SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?1 = ({_NEWEST}) + 1"
)
_USED = "SELECT used FROM policy_counts WHERE tenant = ? AND name = ? AND begins_at = ?"
_TAKE = (
    "INSERT INTO policy_counts (tenant, name, begins_at, ends_at, used) VALUES (?, ?, ?, ?, 1) "
    "ON CONFLICT (tenant, name, begins_at) DO UPDATE SET used = used + 1"
)
_GIVE_BACK = "UPDATE policy_counts SET used = used - 1 WHERE tenant = ? AND name = ? AND begins_at = ? AND used > 0"
_LAST = 2**62


class SqlitePolicies:
    """The policy of a SQLite store."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def newest(self) -> int:
        return self._reader.read(lambda connection: int(connection.execute(_NEWEST).get))

    async def get(self, version: int) -> StoredPolicy | None:
        row = self._reader.read(
            lambda connection: connection.execute(f"{_SELECT} WHERE version = ?", (version,)).fetchone()
        )
        return None if row is None else _stored_policy(row)

    async def history(self, *, upto: int | None = None, limit: int = 100) -> Sequence[StoredPolicy]:
        text = f"{_SELECT} WHERE version <= ? ORDER BY version DESC LIMIT ?"
        values = (_LAST if upto is None else upto, limit)
        return self._reader.read(lambda connection: [_stored_policy(row) for row in connection.execute(text, values)])

    async def put(self, policy: StoredPolicy) -> bool:
        def work(connection: apsw.Connection) -> bool:
            connection.execute(_PUT, (policy.version, policy.text, policy.by, policy.at, policy.reason))
            return bool(connection.changes())

        return await self._writer.small(work)

    async def take(self, counts: Sequence[WindowCount], *, now: Millis) -> WindowCount | None:
        def work(connection: apsw.Connection) -> WindowCount | None:
            connection.execute("DELETE FROM policy_counts WHERE ends_at <= ?", (now,))
            for count in counts:
                used = connection.execute(_USED, _count_key(count)).get
                if used is not None and used >= count.limit:
                    return count
            for count in counts:
                connection.execute(_TAKE, (*_count_key(count), count.ends_at))
            return None

        return await self._writer.small(work)

    async def give_back(self, counts: Sequence[WindowCount]) -> None:
        def work(connection: apsw.Connection) -> None:
            for count in counts:
                connection.execute(_GIVE_BACK, _count_key(count))

        await self._writer.small(work)


def _count_key(count: WindowCount) -> tuple[str, str, int]:
    return count.tenant, count.name, count.begins_at


def _stored_policy(row: tuple[Any, ...]) -> StoredPolicy:
    version, text, by, at, reason = row
    return StoredPolicy(version=version, text=text, by=by, at=at, reason=reason)
