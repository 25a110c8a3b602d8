"""Random worlds of the ledger, on every store: ``python -m tests.agents.budget_soak [WORLDS] [STORE ...]``.

A store is ``memory``, ``sqlite`` or ``postgres``, in a place of its own; without one, all are soaked in turn. With
``--random`` the worlds are others each time.

A world is a tree of runs with budgets, on two hosts. Calls are reserved, settled, lost, repeated and released, appends
are repeated by hosts that no longer own their run, answers of the store are lost, and limits are raised. At every
moment, spent and reserved do not pass a limit by more than calls cost beyond their estimates, and spent is at least
what was billed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tests import servers
from weft.core.budgets import Amounts, Cover
from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.core.ledger import (
    Granted,
    HandOut,
    LedgerRow,
    Move,
    ReleaseCover,
    Reserve,
    SetLimits,
    Settle,
    cost_with,
)
from weft.ports.new_run import NewRun
from weft.ports.store import Append, Outcome, RunRow, Store, StoredEvent
from weft.stores import open_store

STORES = ("memory", "sqlite", "postgres")
WORLDS = 20_000
HOSTS = (HostId("one"), HostId("two"))
MOVES = 40
WORLDS_PER_STORE = 200
"""They are played at once. A store in memory is a new one each time, so that it does not grow."""
UNITS = {"tokens": 60_000, "money:USD": 200_000, "calls": 40, "tools": 20, "tool:helper": 10}
"""The units, with the highest limit of each."""


class Call(msgspec.Struct):
    """A call that a host has made, or believes that it may make."""

    out: HandOut
    cover: Cover
    granted: dict[str, int]
    billed: dict[str, int]


class BudgetedRun(msgspec.Struct):
    """One run: who owns it, and its calls."""

    uid: RunUid
    scopes: list[str]
    epoch: int = 1
    seq: int = 1
    owner: HostId = HOSTS[0]
    tasks: int = 0
    calls: list[Call] = []


class SharedLedger:
    """Joins the appends of worlds that are played at once in batches, as hosts do, and what they read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._appends: dict[HostId, dict[RunUid, tuple[Append, asyncio.Future[Outcome]]]] = {host: {} for host in HOSTS}
        self._claims: dict[HostId, dict[RunUid, tuple[Epoch, asyncio.Future[RunRow]]]] = {host: {} for host in HOSTS}
        self._reads: list[tuple[Sequence[str], asyncio.Future[list[LedgerRow]]]] = []
        self._serving: asyncio.Task[None] | None = None
        self._unanswered: set[asyncio.Future[Any]] = set()

    async def commit(self, append: Append, owner: HostId) -> Outcome:
        """Write an append with those of other worlds. A run waits for its append before it makes another."""
        answer: asyncio.Future[Outcome] = self._new_answer()
        self._appends[owner][append.uid] = append, answer
        return await answer

    async def claim(self, uid: RunUid, taker: HostId, epoch: Epoch) -> RunRow:
        """Take a run over."""
        answer: asyncio.Future[RunRow] = self._new_answer()
        self._claims[taker][uid] = epoch, answer
        return await answer

    async def read(self, scopes: Sequence[str]) -> list[LedgerRow]:
        """Return the rows of scopes."""
        answer: asyncio.Future[list[LedgerRow]] = self._new_answer()
        self._reads.append((scopes, answer))
        return await answer

    def _new_answer(self) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return answer

    async def _serve(self) -> None:
        try:
            while self._reads or any(self._appends.values()) or any(self._claims.values()):
                for host in HOSTS:
                    await self._claim(host)
                    await self._commit(host)
                await self._read()
        except Exception as error:  # nobody may wait for an answer that never comes
            for answer in [one for one in self._unanswered if not one.done()]:
                answer.set_exception(error)

    async def _claim(self, host: HostId) -> None:
        claims, self._claims[host] = self._claims[host], {}
        if claims:
            expected = {uid: epoch for uid, (epoch, _) in claims.items()}
            rows = {row.uid: row for row in await self.store.log.claim(list(claims), host, expected=expected)}
            for uid, (_, answer) in claims.items():
                answer.set_result(rows[uid])

    async def _commit(self, host: HostId) -> None:
        batch, self._appends[host] = list(self._appends[host].values()), {}
        if batch:
            outcomes = await self.store.log.commit([append for append, _ in batch], host)
            for (_, answer), outcome in zip(batch, outcomes, strict=True):
                answer.set_result(outcome)

    async def _read(self) -> None:
        reads, self._reads = self._reads, []
        rows: defaultdict[str, list[LedgerRow]] = defaultdict(list)
        for row in await self.store.budgets.read([scope for scopes, _ in reads for scope in scopes]):
            rows[row.scope].append(row)
        for scopes, answer in reads:
            answer.set_result([row for scope in scopes for row in rows[scope]])


class LedgerWorld:
    """A tree of runs that spend from each other's budgets."""

    def __init__(self, shared: SharedLedger, seed: int) -> None:
        self._shared = shared
        self._dice = random.Random(seed)
        self._name = f"soak-{seed}"
        self._runs: list[BudgetedRun] = []
        self._billed: dict[str, Counter[str]] = {}
        self.seen: Counter[str] = Counter()

    async def play(self) -> None:
        """Let things happen, and check the ledger after each."""
        for depth in range(self._dice.randint(1, 3)):
            await self._start(depth)
        for _ in range(MOVES):
            run = self._dice.choice(self._runs)
            await self._dice.choice([self._call, self._call, self._end, self._lose, self._release, self._odd])(run)
            await self._check()

    async def _start(self, depth: int) -> None:
        above = self._runs[-1].scopes if self._runs else []
        uid = RunUid(f"{self._name}-{depth}")
        limits = {unit: self._dice.randint(0, most) for unit, most in UNITS.items()}
        run = BudgetedRun(uid, [*above, uid])
        new = NewRun(
            uid=uid,
            id=RunId(uid),
            workflow="soak",
            version="1",
            style="code",
            created_at=Millis(1),
            owner=run.owner,
        )
        first = Append(
            uid=uid,
            epoch=Epoch(1),
            seq=Seq(0),
            create=new,
            status="running",
            events=[StoredEvent(Seq(1), Millis(1), b"{}")],
            ledger=[SetLimits(uid, limits)],
        )
        assert await self._shared.commit(first, run.owner) is Outcome.ACCEPTED
        self._runs.append(run)
        self._billed[uid] = Counter()

    async def _append(self, run: BudgetedRun, moves: Sequence[Move]) -> Append | None:
        """Write moves with an event. Sometimes the host has lost its run, and nothing is written."""
        stale = self._dice.random() < 0.1
        epoch = Epoch(run.epoch - 1 if stale else run.epoch)
        events = [StoredEvent(Seq(run.seq + 1), Millis(1), b"{}")]
        append = Append(uid=run.uid, epoch=epoch, seq=Seq(run.seq), events=events, ledger=list(moves))
        outcome = await self._shared.commit(append, run.owner)
        self.seen[outcome.value] += 1
        if outcome is not Outcome.ACCEPTED:
            assert stale
            return None
        run.seq += 1
        return append

    async def _call(self, run: BudgetedRun) -> None:
        """Hand out several calls in one append, as parallel tools are."""
        moves: list[Reserve] = []
        for _ in range(self._dice.choice([1, 1, 3])):
            run.tasks += 1
            moves.append(Reserve(HandOut(run.tasks, 1, 1), self._cover(), list(run.scopes)))
        append = await self._append(run, moves)
        if append is not None:
            self._grant(run, moves, append)

    def _grant(self, run: BudgetedRun, moves: Sequence[Reserve], append: Append) -> None:
        for move, answer in zip(moves, append.answers, strict=True):
            self.seen[type(answer).__name__] += 1
            if isinstance(answer, Granted):
                granted = cost_with(move.cover, answer.output)
                # The provider bills what was sent, and at most what was covered.
                billed = {unit: self._dice.randint(0, amount) for unit, amount in granted.items()}
                run.calls.append(Call(move.call, move.cover, granted, billed))
                for scope in run.scopes:
                    self._billed[scope].update(billed)

    def _cover(self) -> Cover:
        if self._dice.random() < 0.2:  # a child run or a person that an agent calls as a tool
            return Cover(amounts=Amounts(tools=1, per_tool={"helper": 1}))
        prompt, output = self._dice.randint(1, 1_500), self._dice.randint(256, 2_500)

        def cost(tokens: int) -> Amounts:
            return Amounts(tokens=prompt + tokens, money=prompt + 3 * tokens, currency="USD", calls=1)

        if self._dice.random() < 0.3:
            return Cover(amounts=cost(output), output=output)
        return Cover(amounts=cost(output), least=cost(256), output=output, output_least=256)

    async def _end(self, run: BudgetedRun) -> None:
        if run.calls:
            call = self._dice.choice(run.calls)
            if await self._append(run, [Settle(call.out, list(run.scopes), call.billed)]) is not None:
                run.calls.remove(call)

    async def _lose(self, run: BudgetedRun) -> None:
        """The host of a run dies: the next one settles what was in hands, and hands it out again."""
        taker = self._dice.choice(HOSTS)
        row = await self._shared.claim(run.uid, taker, Epoch(run.epoch))
        run.epoch, run.owner = row.epoch, row.owner or HOSTS[0]
        lost, run.calls = run.calls, []
        moves: list[Move] = [Settle(call.out, list(run.scopes)) for call in lost]
        again = [
            Reserve(HandOut(call.out.task, 1, call.out.delivery + 1), call.cover, list(run.scopes)) for call in lost
        ]
        append = await self._append(run, [*moves, *again])
        if append is None:
            run.calls = lost
        else:
            self._grant(run, again, append)

    async def _release(self, run: BudgetedRun) -> None:
        """A call is cancelled while it waits for its next attempt: it was never sent."""
        run.tasks += 1
        move = Reserve(HandOut(run.tasks, 2, 1), self._cover(), list(run.scopes))
        if await self._append(run, [move]) is not None:
            while await self._append(run, [ReleaseCover(move.call)]) is None:
                pass

    async def _odd(self, run: BudgetedRun) -> None:
        """A limit is raised, a reservation is made again, or a call is settled twice."""
        unit = self._dice.choice(list(UNITS))
        raised = SetLimits(run.uid, {unit: self._dice.randint(0, 400)}, raises=True)
        moves: list[Move] = [raised, Settle(HandOut(9_999, 1, 1), list(run.scopes))]
        if run.calls:
            call = self._dice.choice(run.calls)
            moves.append(Reserve(call.out, call.cover, list(run.scopes)))
        await self._append(run, moves)

    async def _check(self) -> None:
        rows = await self._shared.read([run.uid for run in self._runs])
        open_units: dict[str, Counter[str]] = {run.uid: Counter() for run in self._runs}
        for run in self._runs:
            for call in run.calls:
                for scope in run.scopes:
                    open_units[scope].update(call.granted)
        for row in rows:
            self._check_row(row, open_units[row.scope][row.unit])

    def _check_row(self, row: LedgerRow, in_hands: int) -> None:
        assert row.limit is not None
        assert row.spent + row.reserved <= row.limit, row
        assert row.reserved == in_hands, row
        billed = self._billed[row.scope][row.unit]
        assert row.spent + row.reserved >= billed, (row, billed)


async def soak(url: str, seeds: Sequence[int]) -> Counter[str]:
    """Play one world for each seed, in one store, several at once. Returns how often what happened."""
    seen = Counter[str]()
    for first in range(0, len(seeds), WORLDS_PER_STORE):
        store = open_store(url, durability="fast")
        await store.open()
        try:
            shared = SharedLedger(store)
            for found in await asyncio.gather(*(_play(shared, n) for n in seeds[first : first + WORLDS_PER_STORE])):
                seen += found
        finally:
            await store.close()
    return seen


async def _play(shared: SharedLedger, seed: int) -> Counter[str]:
    world = LedgerWorld(shared, seed)
    try:
        await world.play()
    except AssertionError as error:
        raise AssertionError(f"world {seed}: {error}") from error
    return world.seen


@contextlib.contextmanager
def empty_store(name: str) -> Iterator[str]:
    """Yield the URL of an empty store of this kind."""
    if name == "postgres":
        yield servers.database("budget_soak")
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/weft.db" if name == "sqlite" else f"{name}://"


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--random"]
    worlds = int(words[0]) if words else WORLDS
    first = random.Random().randrange(10**9) if "--random" in sys.argv else 0
    for name in words[1:] or STORES:
        began = time.monotonic()
        with empty_store(name) as url:
            seen = asyncio.run(soak(url, range(first, first + worlds)))
        print(f"{worlds:,} worlds in {time.monotonic() - began:.0f} s over {name}: {dict(seen)}", flush=True)


if __name__ == "__main__":
    main()
