"""The contract over a hot store: Redis before a memory store, and before Postgres.

The store of a test has a WAL for HERE, so that plain hops of HERE's runs are hot. A peer sees what is drained; before
it looks, everything is. Nobody but its owner can claim a run whose WAL is not drained; before somebody else claims one,
its host gives up its WAL. No test knows of any of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.contract.kit import HERE, THERE, go
from tests.hot.kit import LIMIT_S
from tests.hot.memory_server import Disk, MemoryWalServer
from tests.redis_server import shared_redis
from weft.ports.store import Store
from weft.stores.hot.address import redis_address
from weft.stores.hot.redis_wal_server import RedisWalServer
from weft.stores.hot.store import HotStore


class _Looked:
    """A port. Before each call of a peer, everything is drained."""

    def __init__(self, inner: Any, ready: Callable[[str, tuple[Any, ...]], Awaitable[None]]) -> None:
        self._inner = inner
        self._ready = ready

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            await self._ready(name, args)
            return await method(*args, **options)

        return call


class HotContract:
    """A hot store as the contract's tests use it."""

    def __init__(self, store: HotStore, all: list[HotContract]) -> None:
        """``all`` are the stores over the same content; the first is the one that a test begins with."""
        self.store = store
        self._all = all

    async def open(self) -> None:
        await self.store.open()

    async def begin(self) -> None:
        """Open a WAL for HERE."""
        if self is self._all[0]:
            await self.store.keeper.start(HERE, 60.0)
            while self.store.hot_lane.wal is None:
                await asyncio.sleep(0.01)  # on a busy machine it takes longer than a host waits for it

    async def close(self) -> None:
        await self.store.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in {"log", "directory", "inboxes", "tasks", "retention", "holds", "starts", "blobs"}:
            return found
        return _Looked(found, self._ready)

    async def _ready(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "write_together" or (name == "claim" and args[1] in {HERE, THERE}):
            claimant = args[1] if name == "claim" else None
            for each in self._all:
                host = each.store.keeper.host
                if host in {HERE, THERE} and host != claimant:
                    await each.store.keeper.leave(host)
            return
        first = self._all[0]
        looks = self is not first or name in {"search", "claimable", "sweep"}
        if looks and first.store.keeper.host in {None, HERE}:  # else a test has hosts of its own
            await first.store.through_lane.flush()


class Opening:
    """Opens hot stores over stores that share their content."""

    def __init__(self, durable: Callable[[], Store], server: Callable[[Store], Any]) -> None:
        """``server`` makes a connection to the WAL server, for each durable store."""
        self._durable = durable
        self._server = server
        self._opened: list[HotContract] = []

    def __call__(self) -> HotContract:
        return self.over(self._durable())

    def over(self, durable: Store) -> HotContract:
        """Make a hot store over a durable one that is given."""
        made = HotContract(HotStore(durable, self._server(durable)), self._opened)
        self._opened.append(made)
        return made


def over_memory(durable: Callable[[], Store]) -> Opening:
    """Return what opens hot stores over stores that share their content, and one WAL server in memory."""
    disk = Disk()
    return Opening(durable, lambda _: MemoryWalServer(disk))


def over_redis(durable: Callable[[], Store]) -> Opening:
    """Return what opens hot stores over stores that share their content, and a real server."""
    address = redis_address(shared_redis().url)

    def server(store: Store) -> RedisWalServer:
        async def namespace() -> str:
            assert store.wals is not None
            return await store.wals.namespace()

        return RedisWalServer(address, namespace, limit_s=LIMIT_S)

    return Opening(durable, server)


def begin(store: Store) -> None:
    """Let a store have a WAL, if it is a hot one."""
    if isinstance(store, HotContract):
        go(store.begin())
