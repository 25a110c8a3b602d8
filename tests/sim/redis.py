"""A simulated Redis: it forgets what it had not written to its disk, is emptied, away, replaced, late or silent."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.hot.memory_server import Disk, Held, MemoryWalServer
from tests.sim.hot_ledger import HotLedger
from weft.errors import Corrupt, Unavailable
from weft.ports.store import Append
from weft.ports.wal_server import ServerFacts, WalBroken
from weft.stores.hot.entries import decode
from weft.stores.hot.policy import END, EVENT, HotPolicy, hot_policy
from weft.testing.faults import _SERVER, Rates, StoreCall, _settle
from weft.testing.loop import PROCESS, SimLoop

WRITES = frozenset({"begin", "append", "trim", "seal", "delete", "set_identity"})
ANSWER_SECONDS = 1.0
"""How long a client waits for a server that says nothing."""


@dataclass
class RedisFaults:
    """What goes wrong with Redis in one world."""

    random: Random
    rates: Rates = field(default_factory=Rates)
    window: float = 1.0
    """How much of its last seconds it may forget when its machine loses power."""
    policy: HotPolicy = EVENT
    events: list[tuple[float, str, float]] = field(default_factory=list)
    """When something happens to the server, what, and for how long."""
    seen: Counter[str] = field(default_factory=Counter)
    alone: str = ""
    """``hosts`` or ``redis``: nothing else fails in this world."""
    stays_away: bool = False
    """Whether a server that is away never comes back."""


def draw_redis(seed: int, seconds: float) -> RedisFaults:
    """The faults of a seed."""
    r = Random(f"redis-{seed}")

    def maybe(rate: float, chance: float = 0.5) -> float:
        return rate * r.random() if r.random() < chance else 0.0

    faults = RedisFaults(Random(f"redis-faults-{seed}"))
    faults.policy = r.choice((EVENT, EVENT, hot_policy("2s"), END))
    faults.window = r.choice((0.0, 1.0, 1.0, 30.0))
    faults.rates = Rates(
        before=maybe(0.05), after=maybe(0.05), late=maybe(0.04), slow=maybe(0.6, 0.7), die=maybe(0.02, 0.3),
        late_seconds_max=r.choice((0.3, 3.0)), slow_seconds_max=r.choice((0.002, 0.05, 0.4)),
    )  # fmt: skip
    luck = r.random()
    faults.alone = "hosts" if luck < 0.15 else "redis" if luck < 0.3 else ""
    if faults.alone != "hosts":
        for kind, chance, lengths in (
            ("power", 0.6, (0.0,)), ("power", 0.3, (0.0,)), ("killed", 0.3, (0.0,)), ("emptied", 0.3, (0.0,)),
            ("damaged", 0.2, (0.0,)), ("away", 0.4, (0.3, 3.0, 20.0, 90.0)), ("replaced", 0.2, (1.0, 10.0, 90.0)),
        ):  # fmt: skip
            if r.random() < chance:
                faults.events.append((r.uniform(0.5, seconds), kind, r.choice(lengths)))
        faults.stays_away = r.random() < 0.3
    return faults


class SimRedis:
    """The server of one world."""

    def __init__(self, loop: SimLoop, ledger: HotLedger, faults: RedisFaults) -> None:
        self.loop = loop
        self.ledger = ledger
        self.faults = faults
        self.disk = Disk()
        self.generation = 0
        """Rises when all connections are lost."""
        self._kept: Disk | None = None
        """What the right server holds while another one stands in its place."""
        self._saved: deque[tuple[float, Disk]] = deque([(0.0, Disk())])
        self.unreachable_since: float | None = None

    def start(self) -> None:
        for at, kind, length in self.faults.events:
            self.loop.call_later(at, self._happen, kind, length, context=_SERVER)

    def heal(self) -> None:
        """Nothing more goes wrong; a server that is gone for good stays gone."""
        self.faults.rates = Rates()
        self.faults.events = []
        if not (self.faults.stays_away and self.disk.away):
            self._back()

    # --- what happens to it -------------------------------------------------------------------------------------------

    def _happen(self, kind: str, length: float) -> None:
        if not self.faults.events or self.disk.away or self._kept is not None:
            return
        self.faults.seen[f"redis {kind}"] += 1
        self.ledger.note("redis", kind, length)
        if kind != "damaged":
            self.generation += 1
        match kind:
            case "power":
                self._lose_power()
            case "emptied":
                self._become(Disk())
            case "damaged":
                self._damage()
            case "away":
                self.disk.away, self.unreachable_since = True, self.loop.time()
            case "replaced":
                self._kept, self.unreachable_since = _copy(self.disk), self.loop.time()
                self.disk.empty()
        if length:
            self.loop.call_later(length, self._back, context=_SERVER)

    def _back(self) -> None:
        if not self.disk.away and self._kept is None:
            return
        self.ledger.note("redis back")
        self.generation += 1
        self.disk.away, self.unreachable_since = False, None
        if self._kept is not None and self.disk.identity is None:
            self.disk.restore(self._kept)
        elif self._kept is not None:
            self._tell_lost(self._kept, self.disk)  # meanwhile all have agreed on the other one
        self._kept = None

    def _lose_power(self) -> None:
        moment = self.loop.time() - self.faults.window * self.faults.random.random()
        self._become(next((disk for at, disk in reversed(self._saved) if at <= moment), self._saved[0][1]))

    def _become(self, disk: Disk) -> None:
        self._tell_lost(self.disk, disk)
        self.disk.restore(disk)
        self.wrote()

    def _tell_lost(self, before: Disk, after: Disk) -> None:
        for number, held in before.wals.items():
            left = after.wals[number].entries if number in after.wals else {}
            for n, entry in held.entries.items():
                if n not in left:
                    self.ledger.redis_lost(_read(entry))

    def _damage(self) -> None:
        """Of some entry a byte is wrong: it is lost, and what its runs did later in the same epochs."""
        entries = [(held, n) for held in self.disk.wals.values() for n in held.entries]
        if not entries:
            return
        held, n = self.faults.random.choice(entries)
        self.ledger.redis_damaged(_read(held.entries[n]))
        raw = bytearray(held.entries[n])
        raw[-1] ^= 1
        held.entries[n] = bytes(raw)
        self.wrote()

    def wrote(self) -> None:
        """Remember the state: the server may fall back to it."""
        now = self.loop.time()
        self._saved.append((now, _copy(self.disk)))
        while len(self._saved) > 1 and self._saved[1][0] < now - self.faults.window:
            self._saved.popleft()

    def forced(self, wal: int) -> None:
        """Somebody gave up a WAL; whether that was right, and what it held."""
        since = self.unreachable_since
        held = (self._kept or self.disk).wals.get(wal)
        if held is None or not held.entries:
            return  # it may have been begun after somebody found none: no run is attached to it then
        if since is None or self.loop.time() - since < 60.0:
            self.ledger.breach(f"WAL {wal} was given up while Redis could be asked")
        for entry in held.entries.values():
            self.ledger.redis_lost(_read(entry))


def _read(entry: bytes) -> list[Append]:
    """The appends of an entry; none if it is damaged, which was told before."""
    try:
        return decode(entry)
    except Corrupt:
        return []


def _copy(disk: Disk) -> Disk:
    wals = {number: Held(held.head, held.sealed, dict(held.entries)) for number, held in disk.wals.items()}
    return Disk(wals=wals, identity=disk.identity)


class SimWalServer:
    """One process's connection to the server. Every call may fail, come late, be slow, or be its caller's last."""

    url = "redis://sim"

    def __init__(self, redis: SimRedis) -> None:
        self._redis = redis
        self._inner = MemoryWalServer(redis.disk)
        self._writes_in = -1
        """The generation of the connection on which the WAL is written."""

    async def facts(self) -> ServerFacts:
        return await self._carry("facts")

    async def identity(self) -> str | None:
        return await self._carry("identity")

    async def set_identity(self, value: str, *, replace: str | None = None) -> str:
        return await self._carry("set_identity", value, replace=replace)

    async def begin(self, wal: int) -> None:
        self._writes_in = self._redis.generation
        await self._carry("begin", wal)

    async def append(self, wal: int, n: int, entry: bytes, trim: int | None) -> None:
        await self._write("append", wal, n, entry, trim)

    async def trim(self, wal: int, upto: int) -> None:
        await self._write("trim", wal, upto)

    async def seal(self, wal: int) -> int | None:
        return await self._carry("seal", wal)

    async def read(self, wal: int) -> Any:
        return await self._carry("read", wal)

    async def delete(self, wal: int) -> None:
        await self._carry("delete", wal)

    async def close(self) -> None:
        await self._inner.close()

    # --- how calls travel ---------------------------------------------------------------------------------------------

    async def _write(self, name: str, *args: Any) -> None:
        if self._writes_in != self._redis.generation:
            self._inner._writes_to = None
            raise WalBroken("the connection was lost")
        try:
            await self._carry(name, *args)
        except Unavailable as error:
            self._inner._writes_to = None
            raise WalBroken("no answer") from error

    async def _carry(self, name: str, *args: Any, **options: Any) -> Any:
        redis, faults = self._redis, self._redis.faults
        call = StoreCall(name, getattr(self._inner, name), args, options)
        generation = redis.generation
        if redis.disk.away:
            if faults.random.random() < 0.5:
                await asyncio.sleep(ANSWER_SECONDS)
            raise Unavailable("Redis is away (simulated).")
        fault = self._draw(name)
        if not fault:
            return self._apply(call, generation)
        faults.seen[f"redis {fault}"] += 1
        match fault:
            case "before":
                raise Unavailable("Redis did not get the request (simulated).")
            case "after":
                self._apply(call, generation)
                raise Unavailable("The answer of Redis was lost (simulated).")
            case "late":
                delay = faults.random.uniform(0, faults.rates.late_seconds_max)
                redis.loop.call_later(delay, self._apply_late, call, generation, context=_SERVER)
                raise Unavailable("Redis did not answer (simulated).")
            case "slow":
                return await self._slowly(call, generation)
        if fault == "die_after":
            self._apply(call, generation)
        PROCESS.get().die()
        return await redis.loop.create_future()

    def _draw(self, name: str) -> str:
        rates = self._redis.faults.rates
        luck = self._redis.faults.random.random()
        for kind, rate in (
            ("slow", rates.slow), ("before", rates.before), ("after", rates.after), ("late", rates.late),
            ("die_before", rates.die / 2), ("die_after", rates.die / 2),
        ):  # fmt: skip
            luck -= rate
            if luck < 0:
                return kind
        return ""

    def _apply(self, call: StoreCall, generation: int) -> Any:
        if self._redis.disk.away or generation != self._redis.generation:
            raise Unavailable("The connection to Redis was lost (simulated).")
        try:
            return call.apply()
        finally:
            if call.what in WRITES:
                self._redis.wrote()

    def _apply_late(self, call: StoreCall, generation: int) -> None:
        # The client has closed its own side of the connection, and the server may still read what was sent.
        before = self._inner._writes_to
        if call.what in ("append", "trim"):
            self._inner._writes_to = call.subject
        try:
            self._apply(call, generation)
        except (Unavailable, WalBroken):
            return
        finally:
            self._inner._writes_to = before

    async def _slowly(self, call: StoreCall, generation: int) -> Any:
        redis = self._redis
        answer: asyncio.Future[Any] = redis.loop.create_future()
        there, back = (redis.faults.random.uniform(0, redis.faults.rates.slow_seconds_max) for _ in range(2))
        redis.loop.call_later(there, self._serve, call, generation, answer, back, context=_SERVER)
        return await answer

    def _serve(self, call: StoreCall, generation: int, answer: asyncio.Future[Any], back: float) -> None:
        try:
            result, error = self._apply(call, generation), None
        except Exception as raised:
            result, error = None, raised
        self._redis.loop.call_later(back, _settle, answer, result, error, context=_SERVER)
