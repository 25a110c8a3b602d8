"""The policy and the counts of its limits in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy, WindowCount
from weft.stores.postgres.pool import Pool, fetch, fetch_row, fetch_value
from weft.stores.postgres.session import Record, Session

_SELECT = "SELECT version, body, set_by, set_at, reason FROM policies"
_NEWEST = "SELECT coalesce(max(version), 0) FROM policies"
# Two writers of the same number: the primary key refuses the second.
_PUT = (
    "INSERT INTO policies (version, body, set_by, set_at, reason) "
    f"SELECT $1, $2, $3, $4, $5 WHERE $1 = ({_NEWEST}) + 1 ON CONFLICT DO NOTHING RETURNING 1"
)
_TAKE = (
    "INSERT INTO policy_counts (tenant, name, begins_at, ends_at, used) VALUES ($1, $2, $3, $4, 1) "
    "ON CONFLICT (tenant, name, begins_at) DO UPDATE SET used = policy_counts.used + 1 "
    "WHERE policy_counts.used < $5 RETURNING 1"
)
_GIVE_BACK = "UPDATE policy_counts SET used = used - 1 WHERE tenant = $1 AND name = $2 AND begins_at = $3 AND used > 0"
_FORGET = "DELETE FROM policy_counts WHERE ends_at <= $1"


class _LimitReached(Exception):
    """Rolls the transaction back."""

    def __init__(self, count: WindowCount) -> None:
        self.count = count


class PostgresPolicies:
    """The policy of a Postgres store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def newest(self) -> int:
        return int(await fetch_value(self._pool, _NEWEST))

    async def get(self, version: int) -> StoredPolicy | None:
        row = await fetch_row(self._pool, f"{_SELECT} WHERE version = $1", version)
        return None if row is None else _policy_of_row(row)

    async def history(self, *, upto: int | None = None, limit: int = 100) -> Sequence[StoredPolicy]:
        text = f"{_SELECT} WHERE $1::bigint IS NULL OR version <= $1 ORDER BY version DESC LIMIT $2"
        return [_policy_of_row(row) for row in await fetch(self._pool, text, upto, limit)]

    async def put(self, policy: StoredPolicy) -> bool:
        values = (policy.version, policy.text, policy.by, policy.at, policy.reason)
        return bool(await fetch_value(self._pool, _PUT, *values))

    async def take(self, counts: Sequence[WindowCount], *, now: Millis) -> WindowCount | None:
        # Every transaction locks its rows in the same order, so none waits for another in a circle.
        ordered = sorted(counts, key=lambda count: (count.tenant, count.name, count.begins_at))

        async def work(session: Session) -> WindowCount | None:
            try:
                async with session.transaction():
                    for count in ordered:
                        values = (count.tenant, count.name, count.begins_at, count.ends_at, count.limit)
                        if not await session.fetchval(_TAKE, *values):
                            raise _LimitReached(count)  # noqa: TRY301 - ends the transaction
            except _LimitReached as reached:
                return reached.count
            return None

        await fetch(self._pool, _FORGET, now)
        return await self._pool.run(work)

    async def give_back(self, counts: Sequence[WindowCount]) -> None:
        for count in counts:
            await fetch(self._pool, _GIVE_BACK, count.tenant, count.name, count.begins_at)


def _policy_of_row(row: Record) -> StoredPolicy:
    version, text, by, at, reason = row
    return StoredPolicy(version=version, text=text, by=by, at=at, reason=reason)
