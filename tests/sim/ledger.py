"""What really happened, written down outside the engine.

Every body that began and ended, every write that the store took, every answer. It believes nobody: ownership, commits
and effects are noted where they happen, and what may never happen is noted as a breach at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.sim.shadow import Shadow
from weft.core import events as e
from weft.core.ids import Epoch, HostId, RunUid
from weft.core.unfold import ViewEvent, unfold
from weft.ports.new_run import NewRun
from weft.ports.store import Append, Mail, Outcome, Release, RunRow, Sent
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.host import Host
from weft.runtime.programs import new_machine
from weft.runtime.worker.flight import Flight
from weft.stores.memory.content import MemoryContent
from weft.stores.memory.log import MemoryLog
from weft.testing.loop import SimLoop


class Ledger:
    """One world's."""

    def __init__(self, loop: SimLoop, content: MemoryContent, catalogue: HostCatalogue) -> None:
        self._loop = loop
        self._content = content
        self._catalogue = catalogue
        self.trace: list[tuple[Any, ...]] = []
        self.breaches: list[str] = []
        self.reached: Counter[str] = Counter()
        self.owners: dict[tuple[RunUid, int], HostId] = {}
        self.last_owner: dict[RunUid, HostId] = {}
        self.recorded: set[tuple[RunUid, int]] = set()
        """Tasks whose success the log has."""
        self.scheduled: dict[tuple[RunUid, int], tuple[int, int, bool]] = {}
        """Tasks that the log has: attempts and deliveries that it allows, and whether they may begin early."""
        self.begun: Counter[str] = Counter()
        self.last_begun: dict[tuple[RunUid, int], tuple[int, int]] = {}
        """The newest hand-out of each task that began."""
        self.gave: defaultdict[tuple[RunUid, int], set[tuple[int, int]]] = defaultdict(set)
        """Attempts and deliveries of a task that came back with a result."""
        self.returned: dict[str, tuple[RunUid, int]] = {}
        """Keys under which a body came to its end, and whose task it was."""
        self.acks: dict[str, dict[str, float]] = {}
        """What was acknowledged: kind to (name to when)."""
        self.refused: dict[str, dict[str, str]] = {}
        self.shadows: dict[RunUid, Shadow] = {}
        self._heard: dict[tuple[RunUid, HostId], int] = {}
        """How far a host knows that the log of a run has come."""
        self.unknown: set[str] = set()
        """Commands of which at least one try had an unknown outcome."""

    # --- the trace ------------------------------------------------------------------------------------------------

    def note(self, what: str, *details: Any) -> None:
        self.trace.append((round(self._loop.time(), 6), what, *details))

    def digest(self) -> str:
        return hashlib.blake2b(repr(self.trace).encode(), digest_size=16).hexdigest()

    def breach(self, text: str) -> None:
        self.breaches.append(f"{self._loop.time():.3f}: {text}")

    def ack(self, kind: str, name: str) -> None:
        self.acks.setdefault(kind, {}).setdefault(name, self._loop.time())
        self.reached[f"acked {kind}"] += 1
        self.note("ack", kind, name)

    def refuse(self, kind: str, name: str, why: str) -> None:
        self.refused.setdefault(kind, {})[name] = why
        self.reached[f"refused {kind}"] += 1
        self.note("refused", kind, name, why)

    # --- the store ------------------------------------------------------------------------------------------------

    def committed(self, append: Append, host: HostId, outcome: Outcome) -> None:
        self.reached[f"commit {outcome}"] += 1
        kinds = [event.body[9 : event.body.index(b'"', 9)].decode() for event in append.events]
        self.note("commit", host[-6:], append.uid[-6:], append.epoch, append.seq, kinds, str(outcome))
        if outcome is not Outcome.ACCEPTED:
            return
        if append.reopen is None:
            self._owned(append.uid, append.epoch, host)
            epoch = self._content.runs[append.uid].epoch
            if epoch != append.epoch:
                self.breach(f"an append of epoch {append.epoch} was accepted in epoch {epoch} of {append.uid}")
        self.reached.update(kinds)
        shadow = self._shadow(append.uid)
        for stored in append.events:
            event = e.decode(stored.body)
            if isinstance(event, e.RunPatched):
                self._learn(append.uid, event.version)
            for part in unfold(event):
                self._event(append.uid, stored.seq, part)
            self._wrong(append.uid, shadow.take(event, stored.at))
        self._wrong(append.uid, shadow.unbalanced())

    def _learn(self, uid: RunUid, version: str) -> None:
        """Know the version that a patch leads to: it is in the store before the patch is."""
        found = self._content.definitions.get((self._content.runs[uid].new.workflow, version))
        if found is not None:
            self._catalogue.learn(found)

    def _shadow(self, uid: RunUid) -> Shadow:
        shadow = self.shadows.get(uid)
        if shadow is None:
            new = self._content.runs[uid].new
            program = self._catalogue.program(new.workflow, new.version)
            shadow = self.shadows[uid] = Shadow(new_machine(new.style, program, uid))
        return shadow

    def _wrong(self, uid: RunUid, found: Iterable[str]) -> None:
        for text in found:
            self.breach(f"{self._content.runs[uid].id}: {text}")

    def heard(self, host: Host, uid: RunUid, seq: int, _: str) -> None:
        """A host has heard that an append of its own is durable; if it has decided nothing since, it is at the log."""
        self._heard[uid, host.id] = seq
        actor = host.runs.actors.get(uid)
        shadow = self.shadows[uid]
        if actor is None or actor.drafts or actor.in_flight is not None or shadow.seq != seq:
            return
        self.reached["memory compared with the log"] += 1
        if actor.machine.snapshot() != shadow.machine.snapshot():
            self.breach(f"{actor.id}: what is in memory is not what its log says")

    def _owned(self, uid: RunUid, epoch: int, host: HostId) -> None:
        before = self.owners.setdefault((uid, epoch), host)
        if before != host:
            self.breach(f"epoch {epoch} of {uid} has two owners: {before} and {host}")
        self.last_owner[uid] = host

    def _event(self, uid: RunUid, seq: int, event: ViewEvent) -> None:
        match event:
            case e.TaskScheduled(early=early):
                self.scheduled[uid, seq] = (1, 1, early)
            case e.UndoScheduled():
                self.scheduled[uid, seq] = (1, 1, False)
            case e.TaskFailed(task=task, retry_at=retry_at) if retry_at:
                attempt, delivery, early = self.scheduled[uid, task]
                self.scheduled[uid, task] = (attempt + 1, delivery, early)
            case e.TaskLost(task=task, delivery=delivery):
                attempt, _, early = self.scheduled[uid, task]
                self.scheduled[uid, task] = (attempt, delivery, early)
            case e.TaskSucceeded(task=task):
                if (uid, task) in self.recorded:
                    self.breach(f"task {task} of {uid} succeeded twice")
                attempt, delivery, _ = self.scheduled[uid, task]
                if not any(given[0] == attempt and given[1] <= delivery for given in self.gave[uid, task]):
                    self.breach(f"task {task} of {uid} has a result from an attempt that was given up")
                self.recorded.add((uid, task))

    def claimed(self, rows: Sequence[RunRow], host: HostId) -> None:
        for row in rows:
            self.reached["claim"] += 1
            self.note("claim", host[-6:], row.uid[-6:], row.epoch)
            self._owned(row.uid, row.epoch, host)

    def released(self, release: Release, outcome: Outcome) -> None:
        self.reached[f"release {outcome}"] += 1
        self.note("release", release.uid[-6:], release.epoch, str(outcome))

    def sent(self, mail: Mail, outcome: Sent) -> None:
        self.reached[f"mail {outcome}"] += 1
        self.note("mail", mail.to[-6:], mail.body, str(outcome))

    def made(self, new: NewRun, outcome: Outcome) -> None:
        self.reached[f"create {outcome}"] += 1
        self.note("create", new.id, str(outcome))

    # --- bodies ---------------------------------------------------------------------------------------------------

    def began(self, flight: Flight, host: HostId) -> None:
        """A body begins.

        Its hand-out must be in the log, and its success must not be, unless its host was deposed meanwhile.
        """
        effect, uid = flight.effect, flight.uid
        self.note("begin", host[-6:], effect.key, effect.attempt, effect.delivery)
        self.begun[effect.key] += 1
        self.last_begun[uid, effect.task] = (effect.attempt, effect.delivery)
        if effect.policy.effect == "irreversible" and self.begun[effect.key] > 1:
            self.breach(f"{effect.key} is irreversible and began {self.begun[effect.key]} times")
        known = self.scheduled.get((uid, effect.task))
        if known is None:
            if not effect.inline:
                self.breach(f"{effect.key} began before the log had it")
            return
        attempt, delivery, early = known
        if not early and (effect.attempt > attempt or effect.delivery > delivery):
            self.breach(f"{effect.key} began as {effect.attempt}.{effect.delivery}, the log has {attempt}.{delivery}")
        if (uid, effect.task) in self.recorded and self.last_owner.get(uid) == host:
            self.breach(f"{effect.key} began again after its success was recorded")
        left = self.shadows[uid].gone.get(effect.task)
        if left is not None and left <= self._heard.get((uid, host), 0):
            self.breach(f"{effect.key} began when its host knew that nobody waits for it")

    def ended(self, flight: Flight, host: HostId, how: str) -> None:
        self.note("end", host[-6:], flight.effect.key, how)
        self.reached[f"body {how}"] += 1
        if how == "returned":
            self.returned[flight.effect.key] = (flight.uid, flight.effect.task)
            self.gave[flight.uid, flight.effect.task].add((flight.effect.attempt, flight.effect.delivery))


class ObservedLog(MemoryLog):
    """A memory log that tells the ledger what it took, at the moment it did."""

    def __init__(self, content: MemoryContent, ledger: Ledger) -> None:
        super().__init__(content)
        self._ledger = ledger

    async def commit(self, batch: Sequence[Append], host: HostId) -> Sequence[Outcome]:
        outcomes = await super().commit(batch, host)
        for append, outcome in zip(batch, outcomes, strict=True):
            self._ledger.committed(append, host, outcome)
        return outcomes

    async def claim(
        self, uids: Sequence[RunUid], host: HostId, *, expected: Mapping[RunUid, Epoch]
    ) -> Sequence[RunRow]:
        rows = await super().claim(uids, host, expected=expected)
        self._ledger.claimed(rows, host)
        return rows

    async def release(self, releases: Sequence[Release]) -> Sequence[Outcome]:
        outcomes = await super().release(releases)
        for release, outcome in zip(releases, outcomes, strict=True):
            self._ledger.released(release, outcome)
        return outcomes

    async def send(self, mail: Sequence[Mail]) -> Sequence[Sent]:
        outcomes = await super().send(mail)
        for piece, outcome in zip(mail, outcomes, strict=True):
            self._ledger.sent(piece, outcome)
        return outcomes

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        outcomes = await super().create(runs)
        for new, outcome in zip(runs, outcomes, strict=True):
            self._ledger.made(new, outcome)
        return outcomes
