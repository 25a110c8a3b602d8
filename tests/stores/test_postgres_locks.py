"""Nobody waits in a circle.

Every two operations at once, over the same runs in opposite orders, started against a lock that somebody holds.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests import scale, servers
from tests.contract.kit import HERE, THERE, append, mail, new, release
from weft.core.ids import Epoch, HostId, Millis, RunUid
from weft.errors import StoreError
from weft.ports.store import OVER_STATUSES, RunRow
from weft.ports.tasks import QueueLimits, TaskOffer
from weft.stores.postgres import PostgresStore

pytestmark = scale.MARKS

RUNS = [f"run {number}" for number in range(6)]
HELD = RUNS[::2]

Operation = Callable[["Side"], Awaitable[Any]]


class Side:
    """One of two hosts; each looks at the runs in an order of its own."""

    def __init__(self, store: PostgresStore, host: HostId, uids: list[str]) -> None:
        self.store, self.host, self.uids = store, host, [RunUid(uid) for uid in uids]
        self._numbers = itertools.count()

    async def rows(self) -> list[RunRow]:
        found = [await self.store.directory.row(uid) for uid in self.uids]
        return [row for row in found if row is not None]

    def name(self) -> str:
        return f"{self.host} {next(self._numbers)}"


async def claim(side: Side) -> None:
    expected = {row.uid: row.epoch for row in await side.rows()}
    await side.store.log.claim(side.uids, side.host, expected=expected)


async def hop(side: Side) -> None:
    batch = [append(row.uid, seq=row.seq, epoch=row.epoch) for row in await side.rows()]
    await side.store.log.commit(batch, side.host)


async def gossip(side: Side) -> None:
    """Every run writes to every other."""
    batch = [
        append(row.uid, seq=row.seq, epoch=row.epoch, mail=[mail(side.name(), to=uid) for uid in side.uids])
        for row in await side.rows()
    ]
    await side.store.log.commit(batch, side.host)


async def family(side: Side) -> None:
    row = (await side.rows())[0]
    names = ["kid b", "kid a"] if side.host == HERE else ["kid a", "kid b"]
    children = [new(side.name(), id=name, owner=None, start=b"1") for name in names]
    await side.store.log.commit([append(row.uid, seq=row.seq, epoch=row.epoch, children=children)], side.host)


async def finish(side: Side) -> None:
    batch = [
        append(row.uid, seq=row.seq, epoch=row.epoch, status="failed", mail_taken=row.mail) for row in await side.rows()
    ]
    await side.store.log.commit(batch, side.host)


async def rest(side: Side) -> None:
    rows = await side.rows()
    await side.store.log.release(
        [release(row.uid, seq=row.seq, epoch=row.epoch, mail_taken=row.mail, wake_at=1) for row in rows]
    )


async def send(side: Side) -> None:
    await side.store.log.send([mail(side.name(), to=uid) for uid in side.uids])


async def make(side: Side) -> None:
    names = ["x", "y", "z"] if side.host == HERE else ["z", "y", "x"]
    await side.store.log.create([new(side.name(), id=name, owner=None) for name in names])


def _task(row: RunRow, number: int) -> TaskOffer:
    return TaskOffer(
        uid=row.uid, task=number, attempt=1, delivery=1, step="s", queue="q", body=b"1", epoch=Epoch(row.epoch)
    )


async def offer(side: Side) -> None:
    await side.store.tasks.offer([_task(row, number) for row in await side.rows() for number in (2, 1)])


async def take(side: Side) -> None:
    queues = ["q", "r", "s"] if side.host == HERE else ["s", "r", "q"]
    await side.store.tasks.take(side.host, queues=queues, steps=["s"], now=Millis(0), limit=5)


async def limit(side: Side) -> None:
    names = ["q", "r", "s"] if side.host == HERE else ["s", "r", "q"]
    for number, name in enumerate(names):
        await side.store.tasks.limit(name, QueueLimits(concurrency=number + 1, rate=100, priority=number % 2))


async def settle(side: Side) -> None:
    held = sorted(await side.store.tasks.taken_by([HERE, THERE], limit=3), key=lambda one: side.uids.index(one[1].uid))
    reports = (side.store.tasks.settle(host, task, mail(side.name(), to=task.uid)) for host, task in held)
    await asyncio.gather(*reports)


async def withdraw(side: Side) -> None:
    for uid in side.uids:
        await side.store.tasks.withdraw(uid, [2, 1])


OPERATIONS: list[Operation] = [
    claim, hop, gossip, family, finish, rest, send, make, limit, offer, take, settle, withdraw,
]  # fmt: skip


def test_no_two_operations_wait_for_each_other_in_a_circle() -> None:
    async def scenario() -> None:
        url = servers.database("locks")
        stores = [PostgresStore(url, durability="fast") for _ in range(2)]
        for store in stores:
            await store.open()
        await asyncio.to_thread(servers.empty, url)
        await stores[0].log.create([new(uid, owner=None) for uid in RUNS])
        sides = [Side(stores[0], HERE, RUNS), Side(stores[1], THERE, RUNS[::-1])]
        holder = await asyncpg.connect(url, server_settings={"search_path": "weft"})
        for number, (one, other) in enumerate(itertools.combinations_with_replacement(OPERATIONS, 2)):
            await _reopen(sides[0])
            for held in scale.scaled([HELD[number % len(HELD)]], HELD):
                try:
                    await _collide(holder, held, one(sides[0]), other(sides[1]))
                except StoreError as error:
                    raise AssertionError(f"{one.__name__} against {other.__name__}: {error}") from error  # type: ignore[attr-defined]
        await holder.close()
        for store in stores:
            await store.close()

    asyncio.run(scenario())


async def _collide(holder: Any, held: str, *operations: Awaitable[Any]) -> None:
    """Let both come as far as they can while one run is locked, and then on."""
    async with holder.transaction():
        await holder.execute("SELECT 1 FROM runs WHERE uid = $1 FOR UPDATE", held)
        tasks = [asyncio.ensure_future(operation) for operation in operations]
        while sum(task.done() for task in tasks) + await holder.fetchval(_BLOCKED) < len(tasks):
            await asyncio.sleep(0.001)
    await asyncio.gather(*tasks)


_BLOCKED = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"


async def _reopen(side: Side) -> None:
    for row in await side.rows():
        if row.status in OVER_STATUSES:
            change = append(row.uid, seq=row.seq, epoch=row.epoch, status="running", reopen=Millis(0))
            await side.store.log.commit([change], side.host)
    # Half of the runs belong to each.
    for row, host in zip(await side.rows(), [HERE, THERE] * 3, strict=True):
        await side.store.log.claim([row.uid], host, expected={row.uid: row.epoch})
