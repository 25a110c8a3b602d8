"""The ledger of worlds with a hot path: what was acknowledged, when it became durable, and what was lost and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.sim.ledger import Ledger
from weft.core import events as e
from weft.core.ids import HostId, RunUid
from weft.core.unfold import ViewEvent, unfold
from weft.ports.store import Append, Outcome, RunRow
from weft.runtime.host import Host
from weft.stores.hot.policy import EVENT, HotPolicy

SLACK_SECONDS = 6.0
"""How much longer than the policy says a hop may wait: one drain that fails, and the pause after it."""


class AckedEvent(NamedTuple):
    """An event that its owner took for done, while the durable store did not have it."""

    body: bytes
    epoch: int
    host: HostId
    at: float


class HotLedger(Ledger):
    """Knows more than the durable store: what only a WAL had."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.policy: HotPolicy = EVENT
        self.alone = ""
        """``hosts`` or ``redis``: nothing else fails here, so nothing is ever lost."""
        self.waiting: defaultdict[RunUid, dict[int, AckedEvent]] = defaultdict(dict)
        """Acknowledged, and not durable: by run and number."""
        self._last_ack: dict[HostId, float] = {}
        self._lost_by_redis: set[tuple[RunUid, int, int]] = set()
        self._damaged: set[tuple[RunUid, int]] = set()
        self.lost_ages: list[float] = []

    def breach(self, text: str) -> None:
        if text.startswith("the engine says: weft: ") and "may be lost" in text:
            self.reached["a loss was told"] += 1
            return
        super().breach(text)

    # --- what Redis did -----------------------------------------------------------------------------------------------

    def redis_lost(self, appends: Iterable[Append]) -> None:
        for append in appends:
            self._lost_by_redis.update((append.uid, append.epoch, stored.seq) for stored in append.events)

    def redis_damaged(self, appends: Iterable[Append]) -> None:
        self._damaged.update((append.uid, append.epoch) for append in appends)

    # --- what hosts did -----------------------------------------------------------------------------------------------

    def acked(self, append: Append, host: HostId) -> None:
        """A host was told that this append is done."""
        run = self._content.runs[append.uid]
        known = {stored.seq: stored.body for stored in run.events[append.seq :]}
        now = self._loop.time()
        for stored in append.events:
            if stored.seq in known:
                if known[stored.seq] != stored.body:
                    self.breach(f"{run.id}: event {stored.seq} was acknowledged, and its log has another")
                continue
            acked = AckedEvent(stored.body, append.epoch, host, now)
            self.reached["acked by a WAL"] += 1
            self.note("hot", host[-6:], append.uid[-6:], append.epoch, stored.seq)
            self._last_ack[host] = now
            if run.epoch != append.epoch:
                self._lost(append.uid, stored.seq, acked)
                continue
            self.waiting[append.uid][stored.seq] = acked
            for part in unfold(e.decode(stored.body)):
                super()._event(append.uid, stored.seq, part)

    def committed(self, append: Append, host: HostId, outcome: Outcome) -> None:
        super().committed(append, host, outcome)
        if outcome is not Outcome.ACCEPTED:
            return
        waiting = self.waiting[append.uid]
        for stored in append.events:
            acked = waiting.pop(stored.seq, None)
            if acked is not None and acked.body != stored.body:
                self.breach(f"{append.uid}: event {stored.seq} was acknowledged, and another one became durable")

    def _event(self, uid: RunUid, seq: int, event: ViewEvent) -> None:
        if seq not in self.waiting[uid]:  # else it was noted when it was acknowledged
            super()._event(uid, seq, event)

    def claimed(self, rows: Sequence[RunRow], host: HostId) -> None:
        for row in rows:
            missing = {seq: acked for seq, acked in self.waiting.pop(row.uid, {}).items() if seq > row.seq}
            for seq, acked in missing.items():
                if acked.host == host:
                    self.breach(f"{row.id}: its host claimed it again before event {seq} was drained")
                self._lost(row.uid, seq, acked)
            if missing:
                self._forget(row.uid)
        super().claimed(rows, host)

    def heard(self, host: Host, uid: RunUid, seq: int, status: str) -> None:
        durable = self._content.runs[uid].seq
        if seq > durable:
            self.breach(f"{uid}: subscribers were told of event {seq}, and the log ends with {durable}")
        if not self.waiting[uid]:
            super().heard(host, uid, seq, status)
        else:
            self._heard[uid, host.id] = seq

    # --- losses -------------------------------------------------------------------------------------------------------

    def _lost(self, uid: RunUid, seq: int, acked: AckedEvent) -> None:
        run = self._content.runs[uid]
        age = self._last_ack[acked.host] - acked.at
        self.lost_ages.append(age)
        self.reached["a hop was lost"] += 1
        self.note("lost", uid[-6:], seq, acked.epoch)
        if (uid, acked.epoch, seq) not in self._lost_by_redis and (uid, acked.epoch) not in self._damaged:
            self.breach(f"{run.id}: event {seq} was acknowledged and is lost, and Redis did not lose it")
        elif self.alone:
            self.breach(f"{run.id}: event {seq} is lost, and only {self.alone} failed")
        if age > self.policy.age_seconds_max + SLACK_SECONDS:
            self.breach(f"{run.id}: event {seq} is lost, and had waited for {age:.1f} s under {self.policy.name}")
        told = any(run.id in loss.runs for loss in self._content.losses)
        self.reached["a lost hop was named" if told else "a lost hop was too young to be named"] += 1

    def _forget(self, uid: RunUid) -> None:
        """Know of a run what its log says, and no more."""
        for known in (self.scheduled, self.recorded):
            for key in [key for key in known if key[0] == uid]:
                known.pop(key) if isinstance(known, dict) else known.discard(key)
        for stored in self._content.runs[uid].events:
            for part in unfold(e.decode(stored.body)):
                super()._event(uid, stored.seq, part)

    def left_over(self) -> list[str]:
        """What was acknowledged and is neither durable nor known to be lost, at the end of the world."""
        return [
            f"{self._content.runs[uid].id}: event {seq} was acknowledged and never became durable"
            for uid, waiting in self.waiting.items()
            for seq, acked in waiting.items()
            if (uid, acked.epoch, seq) not in self._lost_by_redis and (uid, acked.epoch) not in self._damaged
        ]
