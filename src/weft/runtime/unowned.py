"""Carry out commands to runs without a host: each run is claimed for one append, and released in it.

These are runs that are over (retry, requeue, discard), runs that no host has claimed yet (cancel), and runs that no
host can read (resume, cancel with force).

Rules: docs/internals/engine.md#rule-32.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from weft.cache import BoundedCache
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.ids import EntryId, HostId, Millis, RunId, RunUid, Seq, tenant_prefix
from weft.core.ledger import Move
from weft.core.machine import Machine
from weft.core.run import lifecycle, messages
from weft.core.run.covers import OpenCovers
from weft.core.run.env import Env
from weft.core.run.state import FOLD
from weft.core.schedule.calendar import ATTRIBUTE, schedule_id
from weft.errors import NotFound, Refused, RunOpen, RunUnreadable
from weft.ports.boundary import boundary
from weft.ports.clock import Clock, Ids
from weft.ports.new_run import NewRun
from weft.ports.run_query import RunQuery
from weft.ports.store import PENDING, Append, KeyRow, Mail, Outcome, Release, Resolved, RunRow, Store, StoredEvent
from weft.runtime.decision_inputs import DecisionInputs
from weft.runtime.hooks import HookTable
from weft.runtime.programs import has_dead_letters
from weft.runtime.reader import RunReader
from weft.runtime.run.append_extras import ASKING, DEAD_LETTERS, version_marks
from weft.runtime.run.deliveries import deliveries_of
from weft.runtime.run.log_reading import needs_log
from weft.runtime.schema_check import check_schema

Decision = tuple[Machine, DecisionInputs, Sequence[e.AnyEvent]]
"""A copy of a run, the environment of its decisions, and the events that a command causes."""

CHECKED_MAX = 10_000


class UnownedRuns:
    """Carries out commands to runs without a host."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        reader: RunReader,
        tell: Callable[[RunId, c.Mailed], Awaitable[None]],
        *,
        patches_max: int,
        hooks: Callable[[], HookTable | None],
    ) -> None:
        """``tell`` gives a command to a run on any host. ``patches_max``: how many patches a run can have.

        ``hooks`` returns the hooks of this process, if it has any.
        """
        self._hooks = hooks
        self._patches_max = patches_max
        self._store = store
        self._clock = clock
        self._ids = ids
        self._reader = reader
        self._tell = tell
        self._checked: BoundedCache[RunUid, int] = BoundedCache(CHECKED_MAX)
        """Runs that were checked, with their epoch: one check per epoch is enough."""

    def _claimant_host(self) -> HostId:
        """Return a host name for one claim. No living host has it, so other hosts can take over the claim."""
        return HostId(f"client-{self._ids.new()}")

    # --- runs that are over ---------------------------------------------------------------------------------------

    async def reopen(self, row: RunRow, command: c.Mailed, token: KeyRow | None) -> None:
        """Change a run that is over or held. The append claims the run, and leaves it for any host to claim.

        The decision is valid only for this epoch and event number; the store refuses the append if either has changed.
        """
        machine, inputs, decided = await self.decide(row, command)
        now = Millis(inputs.env.now)
        events: list[StoredEvent] = []
        hooks, deliveries = self._hooks(), list[NewRun]()
        covers, moves = OpenCovers(machine.state), list[Move]()
        while decided:
            for event in decided:
                machine.evolve(event, at=now)
                if machine.state.accounted:
                    moves += covers.moves(machine.state, event, ())
                events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
                if hooks is not None:
                    deliveries += deliveries_of(machine, event, hooks, None, now)
            inputs.record(decided)
            # The answer to a review is followed by the patch.
            decided = await inputs.decided(machine.follow) if isinstance(command, c.DecideAsk) else ()
        version = machine.state.version if machine.state.revisions else ""
        if isinstance(command, c.DeclareSchedule):
            version = command.version
        append = Append(
            uid=row.uid,
            epoch=row.epoch,
            seq=row.seq,
            events=events,
            status=row.status if machine.state.over else "running",
            attributes=_changed_attributes(machine, row),
            reopen=now,
            resolved=Resolved(version, row.style) if version else None,
            keys=[token] if token is not None else [],
            children=deliveries,
            refs=await inputs.write(),
            mail_taken=row.mail,
            ledger=moves,
        )
        (outcome,) = await self._store.log.commit([append], self._claimant_host())
        if outcome is Outcome.SLOT_TAKEN:
            raise RunOpen(
                f"{row.id} cannot go on: another run with its key is open.",
                hint="Cancel that run, or wait until it has ended.",
                run_id=row.id,
            )
        if outcome is not Outcome.ACCEPTED:
            raise Refused(f"{row.id} is already being retried by another process.")

    async def decide(self, row: RunRow, command: c.Mailed) -> Decision:
        """Decide a command to a run that is over or held, and change nothing. Raises Refused."""
        return await self.judge(row, command, retry=True)

    async def judge(
        self, row: RunRow, command: c.Mailed, blobs: Mapping[str, bytes] | None = None, *, retry: bool = False
    ) -> Decision:
        """Decide a command on a copy of a run, and change nothing. Raises the refusal.

        ``blobs`` are contents that the command refers to and that are not stored yet. With ``retry``, a command without
        an effect is refused too.
        """
        machine = await self._reader.machine(row)
        now = max(self._clock.now_ms(), machine.state.at)
        judges = needs_log(machine, command) or isinstance(command, c.DecideAsk)
        past = await self._reader.past(row) if judges else None
        read = partial(self._reader.read_versions, row)
        inputs = DecisionInputs(self._store.blobs, now, past, read, patches_max=self._patches_max)
        inputs.know(blobs or {})
        if retry:
            return machine, inputs, await inputs.decided(lambda env: decide_unowned_retry(machine, row, command, env))
        return machine, inputs, await inputs.decided(lambda env: machine.decide(command, env))

    # --- runs that no host has claimed ----------------------------------------------------------------------------

    async def cancel_pending(self, row: RunRow, command: c.CancelRun) -> bool:
        """End a run that no host has claimed. Returns False if a host has claimed it meanwhile."""
        if row.owner is not None:
            return False
        host = self._claimant_host()
        if not await self._store.log.claim([row.uid], host, expected={row.uid: row.epoch}):
            return False
        while True:
            loaded = await self._store.log.load(row.uid, fold=FOLD)
            # This claim belongs to no living host, so a host may have taken over the run meanwhile.
            if loaded is None or loaded.row.owner != host:
                return False
            now = Millis(max(self._clock.now_ms(), row.updated_at))
            append = _end_of_pending(loaded.row, loaded.inbox, command, now)
            (outcome,) = await self._store.log.commit([append], host)
            if outcome is not Outcome.MAIL_WAITING:
                return outcome is Outcome.ACCEPTED

    # --- code runs that no host has -------------------------------------------------------------------------------

    async def patch(self, row: RunRow, command: c.PatchRun, token: KeyRow | None, sent: Mail | None = None) -> bool:
        """Let a code run follow another version. Returns False if a host has claimed it meanwhile.

        ``sent``: the mail in which the patch waits, if it was sent to a host.

        A host with that version goes on. If the last host is gone, it takes the run over as one of a dead host. Raises
        PatchRefused.
        """
        machine = await self._reader.machine(row)
        seq, now = Seq(machine.state.seq), Millis(max(self._clock.now_ms(), machine.state.at))
        decided = machine.decide(command, Env(now=now, check=check_schema, patches_max=self._patches_max))
        if not isinstance(decided[0], e.RunPatched):
            return False  # it waits, or people are asked: that is for the next host
        events = []
        for event in decided:
            machine.evolve(event, at=now)
            events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
        host = self._claimant_host()
        claimed = await self._store.log.claim([row.uid], host, expected={row.uid: row.epoch})
        if not claimed:
            return False
        append = Append(
            uid=row.uid,
            epoch=claimed[0].epoch,
            seq=seq,
            events=events,
            status=machine.state.status,
            # The run has something to do: its code goes on with the other version.
            idle_until=None,
            resolved=Resolved(command.version, row.style),
            keys=[token] if token is not None else [],
            taken=[sent.id] if sent is not None else [],
        )
        boundary("commit.before")
        (outcome,) = await self._store.log.commit([append], host)
        boundary("commit.after")
        if row.owner is None:
            await self._release_run(claimed[0], Seq(machine.state.seq) if outcome is Outcome.ACCEPTED else seq, now)
        return outcome is Outcome.ACCEPTED

    async def _release_run(self, row: RunRow, seq: Seq, now: Millis) -> None:
        """Leave a run that was claimed here to any host. Without an answer, it is left as by a dead host."""
        boundary("release.before")
        await self._store.log.release(
            [Release(uid=row.uid, epoch=row.epoch, seq=seq, mail_taken=row.mail, wake_at=now, snapshot=None)]
        )

    # --- runs that cannot be read ---------------------------------------------------------------------------------

    async def problem(self, row: RunRow) -> RunUnreadable | None:
        """Return why the run cannot be read, so that no host could act on a command to it; None if it can be read."""
        if row.fault is None and self._checked.get(row.uid) == row.epoch:
            return None
        if row.fault is None and row.owner is not None:
            found = None
        else:
            found = await self._reader.problem(row)
        if found is None:
            self._checked.put(row.uid, row.epoch)
        return found

    async def settle_unreadable(self, row: RunRow, command: c.Mailed) -> bool:
        """Return whether a command to a run that cannot be read was carried out here.

        Two commands are: ``resume`` tries to read the run again, and ``cancel --force`` ends it by its row alone.
        Raises RunUnreadable for all other commands, because no host could act on them.
        """
        problem = await self.problem(row)
        if problem is None:
            return False
        if isinstance(command, c.CancelRun) and command.force:
            await self._end_by_row(row, command.reason, str(problem.context["why"]))
            return True
        if row.fault is None or not isinstance(command, c.ResumeRun):
            raise problem
        if await self._retry_reading(row) in ("paused", "held"):
            await self._tell(row.id, command)
        return True

    async def _retry_reading(self, row: RunRow) -> str:
        """Let a run with a fault continue if it can be read now. Returns its status. Raises RunUnreadable."""
        machine = await self._reader.machine(row)
        status = machine.state.status if row.seq else PENDING
        # The claim belongs to no living host, so a host takes over the run as one of a dead host.
        host = self._claimant_host()
        await self._store.log.claim([row.uid], host, expected={row.uid: row.epoch})
        await self._store.log.mark_fault(row.uid, None, status=status)
        return status

    async def _end_by_row(self, row: RunRow, reason: str, why: str) -> None:
        """Cancel a run that cannot be read. Nothing is undone. Cancels its children and reports to its parent."""
        # The fault also keeps hosts from claiming the run meanwhile.
        await self._store.log.mark_fault(row.uid, row.fault or why)
        host = self._claimant_host()
        while True:
            now = await self._store.directory.row(row.uid)
            if now is None or now.ended_at is not None:
                break
            for claimed in await self._store.log.claim([now.uid], host, expected={now.uid: now.epoch}):
                (outcome,) = await self._store.log.commit([await self._forced_end(claimed, reason)], host)
                if outcome is Outcome.ACCEPTED:
                    break
        offers = await self._store.tasks.rows(row.uid)
        await self._store.tasks.withdraw(row.uid, [offer.task for offer in offers])
        await self._stop_children(row, reason)

    async def _forced_end(self, row: RunRow, reason: str) -> Append:
        at = Millis(max(self._clock.now_ms(), row.updated_at))
        seq = Seq(row.seq + 1)
        told = await self._told_schedule(row)
        entry = await self._place_in_parent(row)
        ended = c.ReportRunEnded(uid=row.uid, status="cancelled")
        report = c.ReportChildEnded(child=EntryId(entry), status="cancelled")
        parent = (
            [Mail(id=f"{row.uid}/{seq}", to=row.parent, body=c.encode(report), at=at)] if row.parent and entry else []
        )
        return Append(
            uid=row.uid,
            epoch=row.epoch,
            seq=row.seq,
            events=[StoredEvent(seq, at, e.encode(e.RunCancelledEvent(reason=reason)))],
            status="cancelled",
            mail_taken=row.mail,
            mail=[*parent, *(Mail(id=f"{row.uid}/{seq}", to=uid, body=c.encode(ended), at=at) for uid in told)],
        )

    async def _told_schedule(self, row: RunRow) -> Sequence[RunUid]:
        """Return the schedule that started this run, if there is one: it waits for the end."""
        name = row.attributes.get(ATTRIBUTE)
        if not isinstance(name, str):
            return ()
        found = await self._store.directory.find(RunId(f"{tenant_prefix(row.id)}{schedule_id(name)}"))
        return () if found is None else (found.uid,)

    async def _place_in_parent(self, row: RunRow) -> int:
        """Return the entry of the parent that waits for this run; 0 if there is none."""
        parent = await self._store.directory.row(row.parent) if row.parent is not None else None
        if parent is None or parent.ended_at is not None:
            return 0
        with contextlib.suppress(RunUnreadable, NotFound):
            children = (await self._reader.state(parent)).children
            return next((number for number, child in children.items() if child.uid == row.uid), 0)
        return 0

    async def _stop_children(self, row: RunRow, reason: str) -> None:
        after: str | None = None
        while True:
            page = await self._store.directory.search(RunQuery(parent=row.uid, after=after))
            for child in page.rows:
                if child.ended_at is not None:
                    continue
                with contextlib.suppress(Refused):
                    try:
                        await self._tell(child.id, c.CancelRun(reason))
                    except RunUnreadable:
                        await self._tell(child.id, c.CancelRun(reason, force=True))
            after = page.cursor
            if after is None:
                return


def _changed_attributes(machine: Machine, row: RunRow) -> dict[str, object] | None:
    """Return the attributes of a row that change with its run."""
    found: dict[str, object] = {}
    if DEAD_LETTERS in row.attributes:
        found[DEAD_LETTERS] = has_dead_letters(machine)
    if bool(machine.state.questions) is not bool(row.attributes.get(ASKING)):
        found[ASKING] = True if machine.state.questions else None
    return {**found, **version_marks(machine)} or None


def decide_unowned_retry(machine: Machine, row: RunRow, command: c.Mailed, env: Env) -> Sequence[e.AnyEvent]:
    """Decide the events of a retry. Raises Refused, MissingInputs."""
    decided = machine.decide(command, env)
    if not decided:
        raise Refused(
            f"{row.id} is {row.status}, so it cannot be retried.",
            hint=f"To see what it waits for: weft explain {row.id}",
        )
    return decided


def _end_of_pending(row: RunRow, inbox: Sequence[Mail], cancel: c.CancelRun, now: Millis) -> Append:
    """Make the append with the whole log of a run that was cancelled before it began. Reports to its parent."""
    machine = CodeMachine.fresh(row.uid)
    commands = [(c.decode(piece.body), piece) for piece in inbox]
    start = next(command for command, _ in commands if isinstance(command, c.StartRun))
    decided = [*lifecycle.decide_start(machine.state, msgspec.structs.replace(start, run_id=row.id, refused=""), now)]
    keys: list[KeyRow] = []
    for command, piece in commands:
        # Messages were accepted, so they are recorded as if the run had begun.
        if isinstance(command, c.DeliverMessage):
            decided += messages.decide_message(machine.state, command)
            if piece.key is not None:
                keys.append(KeyRow(piece.key, piece.digest, Seq(len(decided))))
    decided += [
        e.CancelRequested(reason=cancel.reason, by=cancel.by),
        e.RunCancelledEvent(reason=cancel.reason, never_begun=True),
    ]
    events: list[StoredEvent] = []
    mail: list[Mail] = []
    for event in decided:
        machine.evolve(event, at=now)
        events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
        for letter in machine.mail(event):
            body = c.encode(letter.command)
            mail.append(Mail(id=f"{row.uid}/{machine.state.seq}", to=RunUid(letter.to), body=body, at=now))
    return Append(
        uid=row.uid,
        epoch=row.epoch,
        seq=row.seq,
        events=events,
        status="cancelled",
        mail_taken=row.mail,
        taken=[piece.id for piece in inbox],
        keys=keys,
        mail=mail,
    )
