"""What people and programs can ask of runs, with or without an engine in this process.

With one, a run in memory here answers at once, and one at rest is taken up first. Without one, or when another host
owns the run, the command travels as mail and its host acts on it. Either way it is durable when the call returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.decider import Machine
from weft.core.goal.plan import decode_plan
from weft.core.ids import RESERVED_KEYS, HostId, Millis, RunId, RunUid, Seq
from weft.core.run.env import Env
from weft.core.run.state import FOLD, OVER, State
from weft.errors import (
    BadValue,
    IdTaken,
    KeyReused,
    NotFound,
    Refused,
    RunFinished,
    StoreError,
    Unavailable,
    UsageError,
)
from weft.ports.clock import Clock, Ids
from weft.ports.store import (
    OVER_STATUSES,
    PENDING,
    Append,
    KeyRow,
    Mail,
    NewRun,
    Outcome,
    Page,
    RunQuery,
    RunRow,
    Sent,
    Store,
    StoredEvent,
)
from weft.runtime.clock import StoreClock
from weft.runtime.commit import RunCreator
from weft.runtime.duties.scheduler import MAIL, RUNS
from weft.runtime.finished import finished
from weft.runtime.local import LocalHost
from weft.runtime.patience import Patience
from weft.runtime.pending import cancel
from weft.runtime.programs import GraphProgram, NoRegistry, new_machine, read_graph
from weft.runtime.run.actor import DEAD_LETTERS
from weft.runtime.run.draft import PendingCommand
from weft.runtime.runs import Ending
from weft.runtime.schemas import check_schema
from weft.runtime.unreadable import Readability, definition_gone, readable, reading, unreadable
from weft.runtime.values import ValueStore
from weft.runtime.words import read_alike
from weft.steps.failures import text_of
from weft.steps.signature import other_facts, same_inputs

if TYPE_CHECKING:
    from weft.runtime.run.actor import Actor

T = TypeVar("T")

EVENTS_PER_PAGE = 500
POLL_SECONDS = 0.05
AGAIN = "Look at the run, or send it again: with the same key it counts once."
"""What to do when nobody knows whether a command was taken."""


class StartedRun(msgspec.Struct, frozen=True):
    """``created`` False: the run of this id was there."""

    uid: RunUid
    id: RunId
    created: bool


class RunService:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, local: LocalHost | None = None) -> None:
        self.store = store
        self.clock = StoreClock(clock, store)
        self.ids = ids
        self.local = local
        """The host of this process, once there is one."""
        self._creator = RunCreator(store.log)
        self.values = ValueStore(put=self._put_blob, get=store.blobs.get)
        self._patience = Patience(self._answered_at)
        self._told_at = 0.0
        """When a command was last written here, by the loop's clock."""
        self._claiming: dict[RunUid, asyncio.Task[Any]] = {}
        self._readability = Readability(self)

    # --- starting -------------------------------------------------------------------------------------------------

    async def start(
        self, start: c.StartRun, *, chosen: bool, existing: str = "attach", delay_ms: int = 0
    ) -> StartedRun:
        """As ``_start``. Raises Unavailable or Full, soon, while the store takes nothing."""
        work = self._start(start, chosen=chosen, existing=existing, delay_ms=delay_ms)
        unknown = f"{start.run_id} may have been started, or not"
        return await self.soon(work, unknown, hint="Start it again under the same id.", run_id=start.run_id)

    async def soon(self, work: Coroutine[Any, Any, T], unknown: str, *, hint: str = "", run_id: str = "") -> T:
        """Wait for something that writes. ``unknown``: what nobody knows if the store does not answer.

        Raises Unavailable or Full: at once while the store takes nothing, else when it has answered nobody for a while.
        """
        trouble = self._trouble()
        if trouble is not None:
            work.close()
            raise trouble
        try:
            return await self._patience.wait_for(work)
        except TimeoutError:
            trouble = self._trouble() or Unavailable("")
            raise type(trouble)(
                f"The store does not answer: {unknown}.", hint=hint, code=trouble.code, run_id=run_id
            ) from None

    def _trouble(self) -> StoreError | None:
        return self.local.committer.trouble() if self.local is not None else None

    def _answered_at(self) -> float:
        there = max(self._creator.answered_at, self._told_at)
        return there if self.local is None else max(there, self.local.committer.answered_at)

    async def _put_blob(self, raw: bytes) -> str:
        return await self.soon(self.store.blobs.put(raw), "a large value may have been stored, or not")

    async def _start(self, start: c.StartRun, *, chosen: bool, existing: str, delay_ms: int) -> StartedRun:
        """Start a run, or find the one that this start made before. ``chosen``: its id was given by the user.

        Raises BadValue for a name that no workflow can have, and IdTaken (with the differences) if the id belongs to
        another workflow or input, or always with ``existing="refuse"``.
        """
        if not start.style:
            check_name(start.workflow)  # nobody knows yet whether there is such a workflow
        raw = bytes(start.input)
        kept = await self.values.keep(raw)
        if kept is not raw:
            start = msgspec.structs.replace(start, input=msgspec.Raw(kept))
        if self.local is not None and start.style != "code":
            await self.local.library.publish()
        if chosen:
            # Looked up first: a run that begins here runs the user's code before the store can refuse its id.
            found = await self._row_or_none(RunId(start.run_id))
            if found is not None:
                return await self._attach(found, start, existing)
        while True:
            try:
                return await self._make(start, delay_ms)
            except IdTaken:
                found = await self._row_or_none(RunId(start.run_id))
            if found is not None:
                return await self._attach(found, start, existing)
            # A start of this id is under way here and not durable yet: whether it will be decides what this one is.
            await asyncio.sleep(POLL_SECONDS / 10)

    async def _make(self, start: c.StartRun, delay_ms: int) -> StartedRun:
        run_id = RunId(start.run_id)
        if self.local is not None and self.local.status.running and not delay_ms and not self.local.runs.is_full():
            return StartedRun(await self.local.starter.begin(start), run_id, created=True)
        uid = RunUid(self.ids.new())
        now = self.clock.now_ms()
        new = NewRun(
            uid=uid,
            id=run_id,
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=now,
            attributes=start.attributes,
            start=c.encode(start),
            wake_at=Millis(now + delay_ms) if delay_ms else None,
        )
        if await self._creator.create(new) is Outcome.ID_TAKEN:
            raise IdTaken(f"{run_id} exists already.", run_id=run_id)
        if self.local is not None and delay_ms < self.local.settings.scan_seconds * 1000:
            # What is due later is seen in time by the next look.
            self.local.wakeups.wake(MAIL, RUNS)
        return StartedRun(uid, run_id, created=True)

    async def _attach(self, row: RunRow, start: c.StartRun, existing: str) -> StartedRun:
        hint = "Choose another id, or omit it for a new run."
        if existing == "refuse":
            raise IdTaken(f"{row.id} exists already.", hint=hint, run_id=row.id)
        if row.workflow != start.workflow:
            raise IdTaken(
                f"{row.id} exists as a run of {row.workflow}, not of {start.workflow}.", hint=hint, run_id=row.id
            )
        before = await self.started_with(row)
        there, here = await self.values.load(bytes(before.input)), await self.values.load(bytes(start.input))
        here = read_alike(here, start.words, there)
        if isinstance(before, c.StartRun):
            there = read_alike(there, before.words, here)
        differences = (other_facts if row.style == "goal" else same_inputs)(there, here)
        if isinstance(start, c.StartGoal):
            goals, wanted = await self._goals_of(row), _goals(start)
            if goals and wanted and goals != wanted:
                differences = {"goals": (goals, wanted), **differences}
        if differences:
            shown = ", ".join(
                f"{k}: {values.shown(a)} there, {values.shown(b)} here" for k, (a, b) in differences.items()
            )
            raise IdTaken(f"{row.id} exists with another input ({shown}).", hint=hint, run_id=row.id)
        return StartedRun(row.uid, row.id, created=False)

    async def _goals_of(self, row: RunRow) -> list[str]:
        """What a goal run is for; nothing if only its host can tell."""
        for stored in await self.store.log.events(row.uid, after=Seq(0), limit=2):
            event = e.decode(stored.body)
            if isinstance(event, e.GoalPlanned):
                return decode_plan(event.plan).goals
        start = await self.started_with(row)
        return _goals(start) if isinstance(start, c.StartGoal) else []

    async def started_with(self, row: RunRow) -> c.StartRun | e.RunStarted:
        """How the run was started: its first event, or the mail that waits to become it."""
        with reading(row):
            events = await self.store.log.events(row.uid, after=Seq(0), limit=1)
            if events:
                first = e.decode(events[0].body)
                assert isinstance(first, e.RunStarted)
                return first
            if row.seq:
                raise unreadable(row, "Event 1 is missing.")
            for mail in await self.store.log.inbox(row.uid):
                command = c.decode(mail.body)
                if isinstance(command, c.StartRun):
                    return command
        return await self.started_with(await self.row(row.id))

    # --- commands -------------------------------------------------------------------------------------------------

    async def tell(self, run_id: RunId, command: c.Mailed, *, key: str | None = None) -> None:
        """Give a run a command. Durable when it returns; the same key twice changes nothing.

        Raises Unavailable or Full, soon, while the store takes nothing.
        """
        await self.soon(self._tell(run_id, command, key), _unknown(run_id), hint=AGAIN, run_id=run_id)

    async def _tell(self, run_id: RunId, command: c.Mailed, key: str | None) -> None:
        row = await self.row(run_id)
        token = _token(row, command, key)
        if token is not None and await self._is_known(row, token):
            return
        actor = await self.take_up(row)
        if actor is not None and self.local is not None:
            await self.local.delivery.tell(actor, PendingCommand(command, key=token))
            return
        if row.status in OVER:
            raise finished(row, command, self.clock.now_ms())
        if await self._readability.is_done(row, command):
            return
        if row.status == PENDING and isinstance(command, c.CancelRun) and await cancel(self, row, command.reason):
            return
        await self._check(row, command)
        mail = Mail(
            id=self.ids.new(),
            to=row.uid,
            body=c.encode(command),
            at=self.clock.now_ms(),
            key=key,
            digest=token.digest if token is not None else "",
            urgent=isinstance(command, c.CancelRun),
        )
        (sent,) = await self.store.log.send([mail])
        self._told_at = asyncio.get_running_loop().time()
        if sent is Sent.OVER:
            raise finished(await self.row(run_id), command, self.clock.now_ms())
        if sent is Sent.KEY_REUSED:
            raise KeyReused(f'The key "{key}" was used for another command to {run_id}.')
        if self.local is not None:
            self.local.wakeups.wake(MAIL, RUNS)

    async def _is_known(self, row: RunRow, token: KeyRow) -> bool:
        """Whether this very command came under its key before. Raises KeyReused if it was another."""
        known = await self.store.directory.key(row.uid, token.key)
        if known is not None and known.digest != token.digest:
            raise KeyReused(f'The key "{token.key}" was used for another command to {row.id}.')
        return known is not None

    async def take_up(self, row: RunRow) -> Actor | None:
        """The run in memory here. One that nobody has, or a host that is dead, is taken up if this host can run it."""
        local = self.local
        if local is None or not local.status.running:
            return None
        actor = local.runs.actors.get(row.uid)
        asleep = row.status not in OVER and row.fault is None and row.seq > 0
        if actor is None and asleep and (row.workflow, row.version) in local.catalogue.programs():
            if row.owner is None or await self.is_dead(row.owner):
                await self._claim(local, row)
            actor = local.runs.actors.get(row.uid)
        return actor

    async def _claim(self, local: LocalHost, row: RunRow) -> None:
        """Take a run up. Who asked for it may give up; a run that is claimed is read to the end all the same."""
        task = self._claiming.get(row.uid)
        if task is None:
            task = self._claiming[row.uid] = local.background.spawn(local.claims.claim([row]), may_fail=True)
            task.add_done_callback(lambda _: self._claiming.pop(row.uid, None))
        await asyncio.shield(task)

    async def is_dead(self, host: HostId) -> bool:
        """Whether nobody hosts runs under this name any more."""
        return host in await self.store.hosts.dead(monotonic=self.clock.monotonic())

    async def _check(self, row: RunRow, command: c.Mailed) -> None:
        """Mail is not answered, so what can be refused is refused here, by the state as it is now."""
        if isinstance(command, c.DeliverMessage | c.CancelRun):
            return
        machine = await self.machine(row)
        now = self.clock.now_ms()
        machine.decide(command, _env(now))

    async def retry(self, run_id: RunId, *, start: str = "") -> None:
        """Try a failed run again."""
        await self.reopen(run_id, c.RetryRun(start))

    async def reopen(
        self, run_id: RunId, command: c.RetryRun | c.RequeueLetter | c.DiscardLetter, *, key: str | None = None
    ) -> None:
        """Change a run that is over. Nobody owns it, so whoever asks writes it, for a host to take up.

        The same key twice changes nothing. Raises Unavailable or Full, soon, while the store takes nothing.
        """
        await self.soon(self._change(run_id, command, key), _unknown(run_id), hint=AGAIN, run_id=run_id)

    async def _change(
        self, run_id: RunId, command: c.RetryRun | c.RequeueLetter | c.DiscardLetter, key: str | None
    ) -> None:
        row = await self.row(run_id)
        token = _token(row, command, key)
        if token is not None and await self._is_known(row, token):
            return
        actor = self.local.runs.actors.get(row.uid) if self.local is not None else None
        if actor is not None and self.local is not None:
            with contextlib.suppress(RunFinished):  # it is over and left memory just now
                await self.local.delivery.tell(actor, PendingCommand(command, key=token))
                return
            row = await self.row(run_id)
        if row.status == PENDING:
            raise Refused(f"{run_id} is pending: no host has taken it up, so there is nothing to try again.")
        problem = await self._readability.problem(row)
        if problem is not None:
            raise problem
        machine = await self.machine(row)
        now = Millis(max(self.clock.now_ms(), machine.state.at))
        decided = machine.decide(command, _env(now))
        if not decided:
            raise Refused(
                f"{run_id} is {row.status}, so it cannot be tried again.", hint="weft explain says what it waits for."
            )
        if row.owner is not None or row.status not in (*OVER_STATUSES, "held"):
            digest = token.digest if token is not None else ""
            body = c.encode(command)
            mail = Mail(id=self.ids.new(), to=row.uid, body=body, at=self.clock.now_ms(), key=key, digest=digest)
            await self.store.log.send([mail])
        else:
            await self._reopen(machine, decided, row, now, [token] if token is not None else [])
        self._told_at = asyncio.get_running_loop().time()
        if self.local is not None:
            self.local.wakeups.wake(MAIL, RUNS)

    async def _reopen(
        self, machine: Machine, decided: Sequence[e.AnyEvent], row: RunRow, now: Millis, keys: Sequence[KeyRow]
    ) -> None:
        events = []
        for event in decided:
            machine.evolve(event, at=now)
            events.append(StoredEvent(Seq(machine.state.seq), now, e.encode(event)))
        letters = getattr(machine.state, "letters", None)
        append = Append(
            uid=row.uid,
            epoch=row.epoch,
            seq=row.seq,
            events=events,
            status=row.status if machine.state.over else "running",
            attributes={DEAD_LETTERS: bool(letters)} if letters is not None else None,
            reopen=now,
            keys=keys,
            mail_taken=row.mail,
        )
        (outcome,) = await self.store.log.commit([append], HostId(f"retry-{self.ids.new()}"))
        if outcome is not Outcome.ACCEPTED:
            raise Refused(f"{row.id} is being tried again by somebody else.")

    # --- looking --------------------------------------------------------------------------------------------------

    async def row(self, run_id: RunId) -> RunRow:
        """The run of this id. Raises NotFound."""
        found = await self._row_or_none(run_id)
        if found is None:
            raise NotFound(
                f"No run {run_id!r} in {self.store.url}.",
                hint="weft list shows what is there; --url names another store.",
            )
        return found

    async def _row_or_none(self, run_id: RunId) -> RunRow | None:
        return await self.store.directory.find(run_id)

    async def by_prefix(self, prefix: str) -> RunRow:
        """The run of this id, or the only one whose id begins so. Raises NotFound, UsageError, Unavailable."""
        return await self.soon(self._by_prefix(prefix), f"whether there is a run {prefix!r} is not known")

    async def _by_prefix(self, prefix: str) -> RunRow:
        found = await self._row_or_none(RunId(prefix))
        if found is not None:
            return found
        page = await self.store.directory.search(RunQuery(id_prefix=prefix, limit=6))
        if len(page.rows) == 1:
            return page.rows[0]
        if page.rows:
            names = ", ".join(row.id for row in page.rows[:5])
            raise UsageError(
                f"{prefix!r} could be {names}{' …' if len(page.rows) > 5 else ''}.", hint="Type more of the id."
            )
        return await self.row(RunId(prefix))

    async def search(self, query: RunQuery) -> Page:
        return await self.store.directory.search(query)

    async def machine(self, row: RunRow) -> Machine:
        """The run as its committed log says it is: a copy to look at.

        Raises NotFound, RunUnreadable.
        """
        with reading(row):
            loaded = await self.store.log.load(row.uid, fold=FOLD)
            if loaded is None:
                raise NotFound(f"No run {row.id!r} in {self.store.url}.")
            for mail in loaded.inbox:
                c.decode(mail.body)
            program = await self.program(row)
            style = row.style
            if style == "graph" and program is None:
                if row.seq:
                    raise definition_gone(row)
                style = ""  # nothing has happened in it
            machine = new_machine(style, program, row.uid, loaded.snapshot.body if loaded.snapshot else None)
        for stored in loaded.events:
            try:
                machine.evolve(e.decode(stored.body), at=stored.at)
            except Exception as error:
                raise unreadable(row, f"Event {stored.seq}: {text_of(error)}") from error
        if not machine.state.started:
            machine.state.run_id = row.id
        return machine

    async def program(self, row: RunRow) -> GraphProgram | None:
        """The version of the graph that a run pins; None for code."""
        if row.style != "graph":
            return None
        known = self.local.catalogue.program(row.workflow, row.version) if self.local is not None else None
        if isinstance(known, GraphProgram):
            return known
        definition = await self.store.definitions.get(row.workflow, row.version)
        if definition is None:
            return None
        return GraphProgram(read_graph(definition).graph, row.version, NoRegistry())

    async def state(self, row: RunRow) -> State:
        return (await self.machine(row)).state

    async def events(self, row: RunRow, *, after: int = 0, follow: bool = False) -> AsyncIterator[StoredEvent]:
        """Committed events in order; with ``follow`` also those to come, until the run is over.

        Raises RunUnreadable at the first that cannot be read.
        """
        seq = Seq(after)
        while True:
            page, problem = await readable(self, row, after=seq, limit=EVENTS_PER_PAGE)
            for event in page:
                yield event
                seq = event.seq
            if problem is not None:
                raise problem
            if len(page) == EVENTS_PER_PAGE:
                continue
            if not follow:
                return
            now = await self.store.directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                return
            if now.seq <= seq:
                await asyncio.sleep(POLL_SECONDS)

    async def ending(self, run_id: RunId, *, timeout: float | None = None) -> Ending:
        """How the run ended, waiting for it; its output as JSON. Raises TimeoutError, NotFound."""
        actor = self.local.runs.by_id.get(run_id) if self.local is not None else None
        if actor is not None and self.local is not None:
            seen = await self.local.runs.wait_for_end(actor.uid, timeout=timeout)
            if seen is not None:
                return msgspec.structs.replace(seen, output=await self.values.load(seen.output))
        row = await self.row(run_id)
        if row.ended_at is None:
            await self._wait(row, timeout)
        last = await self.store.directory.row(row.uid)
        if last is None:
            raise NotFound(f"{run_id} was deleted.")
        match await self._end(last):
            case e.RunCompleted(output=output):
                return Ending("completed", await self.values.load(bytes(output)), None)
            case e.RunFailed(failure=failure):
                return Ending("failed", b"null", failure)
            case e.RunCancelled(reason=reason):
                return Ending("cancelled", b"null", None, reason)
        return await self.ending(run_id, timeout=timeout)

    async def _end(self, row: RunRow) -> e.AnyEvent:
        """The last event of a run, but for dead letters that were discarded since."""
        seq = row.seq
        while True:
            found, problem = await readable(self, row, after=Seq(seq - 1), limit=1)
            if not found:
                raise problem or unreadable(row, f"Event {seq} is missing.")
            event = e.decode(found[0].body)
            if not isinstance(event, e.LetterDiscarded):
                return event
            seq = Seq(seq - 1)

    async def _wait(self, row: RunRow, timeout: float | None) -> None:
        if self.local is not None and self.local.status.running:
            await self.local.runs.wait_for_end(row.uid, timeout=timeout)
            return
        async with asyncio.timeout(timeout):
            while True:
                now = await self.store.directory.row(row.uid)
                if now is None or now.ended_at is not None:
                    return
                await asyncio.sleep(POLL_SECONDS)


def _unknown(run_id: RunId) -> str:
    return f"{run_id} may have got this, or not"


def _goals(start: c.StartGoal) -> list[str]:
    return start.goals or (decode_plan(start.plan).goals if bytes(start.plan) else [])


def _token(row: RunRow, command: c.Mailed, key: str | None) -> KeyRow | None:
    if key is not None and key.startswith(RESERVED_KEYS) and not getattr(command, "answer", False):
        raise BadValue(f"A key may not begin with {RESERVED_KEYS!r}.", code="value.bad_name")
    return KeyRow(key, values.digest(c.encode(_without_id(command))), Seq(row.seq + 1)) if key is not None else None


def _without_id(command: c.Mailed) -> c.Mailed:
    return msgspec.structs.replace(command, id="") if isinstance(command, c.DeliverMessage) else command


def _env(now: int) -> Env:
    return Env(now=now, check=check_schema)
