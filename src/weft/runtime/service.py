"""The interface to runs for handles, clients, the server and the command line, with or without a host in this process.

With a host, a run in memory answers at once, and a run without an owner is loaded first. Without a host, or when
another host owns the run, the command is sent as mail. Either way the command is durable when the call returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.ids import RESERVED_KEYS, HostId, RunId, RunUid, Seq
from weft.core.run.env import Env
from weft.errors import (
    BadPlan,
    BadValue,
    KeyReused,
    NotFound,
    Refused,
    RunFinished,
    StoreError,
    Unavailable,
    UnknownStep,
    UsageError,
)
from weft.ports.boundary import boundary
from weft.ports.clock import Clock, Ids
from weft.ports.rate_buckets import RateBuckets
from weft.ports.retention import AuditEntry
from weft.ports.run_query import RunQuery
from weft.ports.store import (
    IMPORTED,
    MOVED,
    OVER_STATUSES,
    PENDING,
    Append,
    KeyRow,
    Mail,
    Outcome,
    Page,
    RunRow,
    Sent,
    Store,
)
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.clock import StoreClock
from weft.runtime.commit_feed import CommitFeed
from weft.runtime.compiled_documents import CompiledDocuments
from weft.runtime.finished_error import finished_error, imported_error, moved_error, moved_to_text
from weft.runtime.orders import StartOrder, pin_version, start_of
from weft.runtime.patch_limits import DEFAULT_LIMITS, PatchLimits
from weft.runtime.policy import CurrentPolicy
from weft.runtime.programs import AnyProgram, is_published, needs_definition, store_definition
from weft.runtime.reader import RunReader, unknown_run
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.append_extras import ASKING
from weft.runtime.run.draft import PendingCommand
from weft.runtime.runs import Ending
from weft.runtime.schema_check import check_schema
from weft.runtime.start_rules import DeclaredRule, stored_rule
from weft.runtime.start_support import StartOptions, StartResult
from weft.runtime.starts import Starts
from weft.runtime.status import HostStatus
from weft.runtime.store_timeout import StoreTimeout
from weft.runtime.tags import WorkflowTags
from weft.runtime.unowned import Decision, UnownedRuns
from weft.runtime.values import ValueStore
from weft.runtime.version_refs import is_version_ref

if TYPE_CHECKING:  # parts of a host, which a program that only declares workflows does not load
    from weft.runtime.local import LocalRuns, LocalWork
    from weft.runtime.run.actor import Actor
    from weft.runtime.step_keeper import StepKeeper
    from weft.runtime.store_steps import StoreSteps
    from weft.runtime.streams import StreamWriter

T = TypeVar("T")

POLL_SECONDS = 0.05
AGAIN = "Look at the run, or send it again: with the same key it counts once."
"""The hint for a command whose outcome is unknown."""
UNCHECKED = (c.DeliverMessage, c.CancelRun)
"""Commands that no open run refuses, so that they may be sent without reading its log."""
REOPENING = (c.RetryRun, c.RequeueLetter, c.DiscardLetter)
"""Commands that a run accepts even when it is over."""
CHANGING = (c.DeclareSchedule, c.PatchRun, c.SetResult, c.RaiseBudget)
"""Commands that change a run that is over, and leave it over."""


class RunService:
    """Starts runs, gives them commands, and answers questions about them."""

    tenant = ""
    """The tenant whose runs these are; empty for the operator."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        beside: RunService | None = None,
        *,
        limits: PatchLimits = DEFAULT_LIMITS,
    ) -> None:
        """``beside`` is a service whose host and limits this one also uses."""
        self.patch_limits: PatchLimits = beside.patch_limits if beside is not None else limits
        self.compiled: CompiledDocuments = beside.compiled if beside is not None else CompiledDocuments()
        self.store = store
        self.clock = StoreClock(clock, store)
        self.ids = ids
        self.status: HostStatus = beside.status if beside is not None else HostStatus()
        """The status of the host of this process; not running without one."""
        self.commits: CommitFeed = beside.commits if beside is not None else CommitFeed()
        """The commits of the host of this process."""
        self.local: LocalRuns | None = beside.local if beside is not None else None
        """The runs of the host of this process, once there is one. The same holds for the attributes below."""
        self.work: LocalWork | None = beside.work if beside is not None else None
        self.steps: StepKeeper | StoreSteps | None = beside.steps if beside is not None else None
        self.streams: StreamWriter | None = beside.streams if beside is not None else None
        self.retry_until_available: RetryUntilAvailable = (
            beside.retry_until_available if beside is not None else _call_without_retry
        )
        """Repeat a call to the store until it answers; without a host, try once."""
        self.policy: CurrentPolicy = beside.policy if beside is not None else CurrentPolicy(store.policies)
        """What is permitted, as the host of this process knows it."""
        self.rate_buckets: RateBuckets | None = beside.rate_buckets if beside is not None else None
        """The token buckets that all servers of this deployment share, if there are any."""
        self.declared: HostCatalogue | None = None
        """The workflows of the app in this process, where there is no host."""
        self.tags = WorkflowTags(store.tags, self.tenant, self.clock)
        self.values = ValueStore(put=self._put_blob, get=store.blobs.get)
        self._store_timeout = StoreTimeout(self._answered_at)
        self._told_at = 0.0
        """When a command was last written here, by the loop's clock."""
        self.reader = RunReader(store, self._local_program)
        self._starts = Starts(self)
        self._unowned = UnownedRuns(
            store,
            self.clock,
            ids,
            self.reader,
            self.tell,
            patches_max=self.patch_limits.patches,
            hooks=lambda: self.known_code.hooks() if self.known_code is not None else None,
        )

    def _local_program(self, workflow: str, version: str) -> AnyProgram | None:
        return self.local.catalogue.program(workflow, version) if self.local is not None else None

    @property
    def known_code(self) -> HostCatalogue | None:
        """The workflows whose code is in this process: those of its host, else those of its app."""
        return self.local.catalogue if self.local is not None else self.declared

    @property
    def whole_store(self) -> Store:
        """The store with its hosts and queues, which belong to no tenant."""
        return self.store

    # --- starting -------------------------------------------------------------------------------------------------

    async def start(self, order: StartOrder, catalogue: HostCatalogue | None = None) -> StartResult:
        """Start a workflow by its name, or goals; or find the run that this order made before.

        ``catalogue`` says what names mean where there is no host; with neither, the host of the run checks the input.

        Raises UnknownWorkflow, BadValue, BadPlan or UsageError for an order that cannot be, NotFound for an unknown
        tag, IdTaken for the id of another run, and Unavailable or Full, soon, while the store takes nothing.
        """
        if is_version_ref(order.workflow):
            order = await pin_version(order, self.tags)
        start, rule = await self._start_of(order, catalogue)
        if self.local is None and catalogue is not None and needs_definition(start.style):
            await self._keep_definition(start, catalogue)
        if self.local is None and catalogue is None and not order.goals:
            body = await self.store.starts.rule(start.workflow)
            rule = stored_rule(body) if body is not None else None
        delay_ms = order.delay_ms or (order.burst_ms if rule is None else 0)
        options = StartOptions(chosen=order.id is not None, existing=order.existing, delay_ms=delay_ms, rule=rule)
        return await self.create(start, options)

    async def _start_of(
        self, order: StartOrder, catalogue: HostCatalogue | None
    ) -> tuple[c.StartRun, DeclaredRule | None]:
        local, definitions = self.local, self.store.definitions
        if local is None:
            return await start_of(order, catalogue, definitions, self.ids)
        try:
            return await start_of(order, local.catalogue, definitions, self.ids)
        except (UnknownStep, BadPlan):
            # The missing workflow or step may have been registered in the store meanwhile.
            if not order.goals or self.steps is None or not await self.steps.refresh():
                raise
        return await start_of(order, local.catalogue, definitions, self.ids)

    async def _keep_definition(self, start: c.StartRun, catalogue: HostCatalogue) -> None:
        """Store the graph of a run that another process will host. A host stores its own graphs."""
        for definition in catalogue.definitions(self.clock.now_ms()):
            if (definition.name, definition.version) == (start.workflow, start.version):
                await store_definition(self.store.definitions, definition)

    def create(self, start: c.StartRun, options: StartOptions) -> Coroutine[Any, Any, StartResult]:
        """Create the run of a start, or find it.

        Raises IdTaken, RunOpen; Unavailable or Full, soon, if the store fails.
        """
        work = self._starts.create(start, options)
        unknown = f"{start.run_id} may or may not have been started"
        return self.wait_for_store(work, unknown, hint="Start it again under the same id.", run_id=start.run_id)

    def wait_for_store(
        self, work: Coroutine[Any, Any, T], unknown: str, *, hint: str = "", run_id: str = ""
    ) -> Coroutine[Any, Any, T]:
        """Wait for a call to the store. ``unknown`` says, for the error, what is unknown without an answer.

        Raises Unavailable or Full: at once if the store does not accept writes, else when it has not answered for long.
        """
        trouble = self.trouble()
        if trouble is not None:
            work.close()
            raise trouble
        return self._store_timeout.wait_for(work, lambda: self._no_answer(unknown, hint, run_id))

    def _no_answer(self, unknown: str, hint: str, run_id: str) -> StoreError:
        trouble = self.trouble() or Unavailable("")
        return type(trouble)(f"The store does not answer: {unknown}.", hint=hint, code=trouble.code, run_id=run_id)

    def trouble(self) -> StoreError | None:
        """Return why nothing can be written now, as far as the host of this process knows."""
        return self.work.trouble() if self.work is not None else None

    def _answered_at(self) -> float:
        there = max(self._starts.answered_at, self._told_at)
        return there if self.work is None else max(there, self.work.answered_at())

    async def _put_blob(self, raw: bytes) -> str:
        return await self.wait_for_store(self.store.blobs.put(raw), "a large value may have been stored, or not")

    # --- commands -------------------------------------------------------------------------------------------------

    async def tell(self, run_id: RunId, command: c.Mailed, *, key: str | None = None) -> None:
        """Give a command to a run. It is durable when this returns. A key that was used before changes nothing.

        Raises Unavailable or Full soon if the store does not accept writes.
        """
        await self.wait_for_store(
            self._tell_or_send(run_id, command, key), _unknown_outcome_text(run_id), hint=AGAIN, run_id=run_id
        )

    async def _tell_or_send(self, run_id: RunId, command: c.Mailed, key: str | None) -> None:
        if self.local is None and isinstance(command, UNCHECKED):
            row = await self._send_to(run_id, command, key)
            if row is None:
                return
        else:
            row = await self.row(run_id)
        if row.status == IMPORTED:
            raise imported_error(row)
        token = _key_row(command, key, row.seq)
        if token is not None and await self._is_known(row, token):
            return
        if row.status == MOVED:
            raise moved_error(row, command)
        actor = await self._find_actor(row, command)
        if actor is not None and self.local is not None and row.mail > actor.mail_taken:
            actor = await self.local.take_mail(actor)  # it was accepted before this command
        if actor is not None and self.local is not None:
            try:
                await self.local.tell(actor, PendingCommand(command, key=token))
                return
            except RunFinished:
                if not isinstance(command, (*REOPENING, *CHANGING)):
                    raise
                row = await self.row(run_id)  # the run has just ended and left memory
        if isinstance(command, REOPENING):
            await self._reopen_run(row, command, token)
        elif row.status in OVER_STATUSES and (isinstance(command, CHANGING) or _is_about_review(row, command)):
            await self._unowned.reopen(row, command, token)
        elif row.status in OVER_STATUSES:
            raise finished_error(row, command, self.clock.now_ms())
        elif not await self._settle_here(row, command, token):
            await self._check_by_state(row, command)
            await self._send_mail(row, command, token)
        self._told_at = asyncio.get_running_loop().time()
        self.wake()

    async def _settle_here(self, row: RunRow, command: c.Mailed, token: KeyRow | None) -> bool:
        """Return whether a command was carried out here, because no host could act on it."""
        return (
            await self._unowned.settle_unreadable(row, command)
            or await self._cancel_pending(row, command)
            or await self._patch_unowned(row, command, token)
        )

    async def _patch_unowned(self, row: RunRow, command: c.Mailed, token: KeyRow | None) -> bool:
        """Return whether this patched a code run that has no living host. Mail would wait for one with the old code."""
        if not isinstance(command, c.PatchRun) or is_published(row.style):
            return False
        if row.owner is not None and not await self.is_dead(row.owner):
            return False
        return await self._unowned.patch(row, command, token)

    async def patch_left_behind(self, row: RunRow, command: c.PatchRun, key: str) -> bool:
        """Return whether this carried out a patch of a code run that was sent to a host which has died since.

        Other hosts read the mail of a run only if they have the version that it follows. Raises PatchRefused.
        """
        now = await self.store.directory.row(row.uid)
        if is_published(row.style) or now is None or now.owner is None or not await self.is_dead(now.owner):
            return False
        sent = next((mail for mail in await self.store.log.inbox(row.uid) if mail.key == key), None)
        return sent is not None and await self._unowned.patch(now, command, _key_row(command, key, now.seq), sent)

    async def _cancel_pending(self, row: RunRow, command: c.Mailed) -> bool:
        """Return whether this cancelled a run that no host had claimed."""
        if row.status != PENDING or not isinstance(command, c.CancelRun):
            return False
        return await self._unowned.cancel_pending(row, command)

    async def _send_to(self, run_id: RunId, command: c.Mailed, key: str | None) -> RunRow | None:
        """Send a command to a run that a host owns, in one call. Returns the row if nothing was sent: no host owns it.

        Raises NotFound.
        """
        mail = self._make_mail(RunUid(""), command, _key_row(command, key))
        done = await self.store.inboxes.send_to(run_id, mail)
        if done.row is None:
            raise unknown_run(run_id, self.store.url)
        if done.sent is None:
            return done.row
        await self._check_sent(done.sent, done.row, command, key)
        self._told_at = asyncio.get_running_loop().time()
        return None

    async def _send_mail(self, row: RunRow, command: c.Mailed, token: KeyRow | None) -> None:
        mail = self._make_mail(row.uid, command, token)
        (sent,) = await self.store.log.send([mail])
        await self._check_sent(sent, row, command, token.key if token is not None else None)
        if sent is Sent.ACCEPTED and self.local is not None:
            self.local.post(mail)  # if the run is loaded here meanwhile, the next command must not overtake this one

    def _make_mail(self, to: RunUid, command: c.Mailed, token: KeyRow | None) -> Mail:
        return Mail(
            id=self.ids.new(),
            to=to,
            body=c.encode(command),
            at=self.clock.now_ms(),
            key=token.key if token is not None else None,
            digest=token.digest if token is not None else "",
            urgent=isinstance(command, c.CancelRun),
        )

    async def _check_sent(self, sent: Sent, row: RunRow, command: c.Mailed, key: str | None) -> None:
        if sent is Sent.OVER:
            raise finished_error(await self.row(row.id), command, self.clock.now_ms())
        if sent is Sent.KEY_REUSED:
            raise KeyReused(f'The key "{key}" was used for another command to {row.id}.')

    def wake(self) -> None:
        """Let the host of this process look for mail and runs now."""
        if self.work is not None:
            self.work.wake()

    async def _is_known(self, row: RunRow, token: KeyRow) -> bool:
        """Return whether this command was sent under its key before. Raises KeyReused if it was another command."""
        known = await self.store.directory.key(row.uid, token.key)
        if known is not None and known.digest != token.digest:
            raise KeyReused(f'The key "{token.key}" was used for another command to {row.id}.')
        return known is not None

    async def _find_actor(self, row: RunRow, command: c.Mailed) -> Actor | None:
        """Return the run in memory here. A run is not loaded for a retry, which needs only the store."""
        if not isinstance(command, REOPENING):
            return await self.load_here(row)
        return self.local.find(row.uid) if self.local is not None else None

    async def load_here(self, row: RunRow) -> Actor | None:
        """Return the run in memory here. A run without a living owner is claimed if this host can run it."""
        local = self.local
        if local is None or not self.status.running:
            return None
        actor = local.find(row.uid)
        asleep = row.status not in OVER_STATUSES and row.fault is None and row.seq > 0
        if actor is None and asleep and local.can_claim(row):
            if row.owner is None or await self.is_dead(row.owner):
                await local.claim(row)
            actor = local.find(row.uid)
        return actor

    async def is_dead(self, host: HostId) -> bool:
        """Return whether this host is dead."""
        return host in await self.store.hosts.find_dead(monotonic=self.clock.monotonic())

    async def _check_by_state(self, row: RunRow, command: c.Mailed) -> None:
        """Refuse a command by the run's current state, as far as possible, because mail gets no answer."""
        if isinstance(command, c.SetResult):
            await self._unowned.decide(row, command)  # this loads a large result
        elif not isinstance(command, (*UNCHECKED, c.PatchRun)):  # a patch was judged before it was sent
            machine = await self.reader.machine(row)
            machine.decide(command, Env(now=self.clock.now_ms(), check=check_schema))

    async def judge(self, row: RunRow, command: c.Mailed, blobs: Mapping[str, bytes] | None = None) -> Decision:
        """Decide a command on a copy of a run, and change nothing. ``blobs`` are not stored yet. Raises the refusal."""
        return await self._unowned.judge(row, command, blobs, retry=isinstance(command, REOPENING))

    async def _reopen_run(self, row: RunRow, command: c.Mailed, token: KeyRow | None) -> None:
        """Retry a run that is over or held. A run that a host owns gets the command by mail."""
        if row.status == PENDING:
            raise Refused(f"{row.id} is pending: no host has claimed it, so there is nothing to retry.")
        problem = await self._unowned.problem(row)
        if problem is not None:
            raise problem
        if row.owner is None and row.status in (*OVER_STATUSES, "held"):
            await self._unowned.reopen(row, command, token)
            return
        await self._unowned.decide(row, command)
        await self._send_mail(row, command, token)

    def stored_id(self, run_id: str) -> RunId:
        """Return the id of a run as the store and its log have it."""
        return RunId(run_id)

    async def write_run(self, run: Append) -> Outcome:
        """Create a run with its whole log, which any host continues. The outcome is unknown after Unavailable."""
        boundary("write_run.before")
        outcome = await self.store.log.write_run(run)
        boundary("write_run.after")
        self.wake()
        return outcome

    async def write_together(self, batch: Sequence[Append], entry: AuditEntry | None = None) -> Sequence[Outcome]:
        """Write appends to several runs, all or none, and the entry once. The outcome is unknown after Unavailable."""
        boundary("write_together.before")
        outcomes = await self.store.log.write_together(batch, entry)
        boundary("write_together.after")
        if self.local is not None:
            self.local.forget([append.uid for append in batch])
        self.wake()
        return outcomes

    # --- reads ----------------------------------------------------------------------------------------------------

    async def row(self, run_id: RunId) -> RunRow:
        """Return the run with this id. Raises NotFound."""
        found = await self._row_or_none(run_id)
        if found is None:
            raise unknown_run(run_id, self.store.url)
        return found

    async def _row_or_none(self, run_id: RunId) -> RunRow | None:
        return await self.store.directory.find(run_id)

    async def by_prefix(self, prefix: str) -> RunRow:
        """Return the run with this id, or the only run with this prefix. Raises NotFound, UsageError, Unavailable."""
        return await self.wait_for_store(self._by_prefix(prefix), f"it is unknown whether there is a run {prefix!r}")

    async def _by_prefix(self, prefix: str) -> RunRow:
        found = await self._row_or_none(RunId(prefix))
        if found is not None:
            return found
        page = await self.store.directory.search(RunQuery(id_prefix=prefix, internal=True, limit=6))
        if len(page.rows) == 1:
            return page.rows[0]
        if page.rows:
            names = ", ".join(row.id for row in page.rows[:5])
            raise UsageError(
                f"{prefix!r} could be {names}{' …' if len(page.rows) > 5 else ''}.", hint="Give more of the id."
            )
        return await self.row(RunId(prefix))

    async def search(self, query: RunQuery) -> Page:
        return await self.store.directory.search(query)

    async def ending(self, run_id: RunId, *, timeout: float | None = None) -> Ending:
        """Wait until a run has ended. Returns how, with its output as JSON. Raises TimeoutError, NotFound."""
        actor = self.local.find_by_id(run_id) if self.local is not None else None
        if actor is not None and self.local is not None:
            seen = await self.local.wait_for_end(actor.uid, timeout=timeout)
            if seen is not None:
                output = values.inline_json(seen.output)
                if output is seen.output:
                    return seen
                return msgspec.structs.replace(seen, output=output or await self.values.load(seen.output))
        row = await self.row(run_id)
        if row.ended_at is None:
            await self._wait_for_end(row, timeout)
        last = await self.store.directory.row(row.uid)
        if last is None:
            raise NotFound(f"{run_id} was deleted.")
        match await self.reader.ending_of(last):
            case e.RunCompleted(output=output):
                return Ending("completed", await self.values.load(bytes(output)), None)
            case e.RunFailedEvent(failure=failure):
                return Ending("failed", b"null", failure)
            case e.RunCancelledEvent(reason=reason):
                return Ending("cancelled", b"null", None, reason)
            case e.RunMoved():
                return Ending(MOVED, b"null", None, moved_to_text(last))
        if last.status == IMPORTED:
            return Ending(IMPORTED, b"null", None)  # it had not ended when it was exported
        return await self.ending(run_id, timeout=timeout)

    async def _wait_for_end(self, row: RunRow, timeout: float | None) -> None:
        if self.local is not None and self.status.running:
            await self.local.wait_for_end(row.uid, timeout=timeout)
            return
        async with asyncio.timeout(timeout):
            while True:
                now = await self.store.directory.row(row.uid)
                if now is None or now.ended_at is not None:
                    return
                await asyncio.sleep(POLL_SECONDS)


def _is_about_review(row: RunRow, command: c.Mailed) -> bool:
    """Return whether a command may be about the patch of a failed run, which is being reviewed."""
    return isinstance(command, c.DecideAsk | c.WithdrawPatch) and bool(row.attributes.get(ASKING))


async def _call_without_retry(call: Callable[[], Awaitable[T]]) -> T:
    return await call()


def _unknown_outcome_text(run_id: RunId) -> str:
    return f"{run_id} may or may not have received this"


def _key_row(command: c.Mailed, key: str | None, seq: int = 0) -> KeyRow | None:
    if key is not None and key.startswith(RESERVED_KEYS) and not getattr(command, "answer", False):
        raise BadValue(f"A key may not begin with {RESERVED_KEYS!r}.", code="value.bad_name")
    if key is None:
        return None
    return KeyRow(key, values.digest(c.encode(_command_without_varying_fields(command))), Seq(seq + 1))


def _command_without_varying_fields(command: c.Mailed) -> c.Mailed:
    if isinstance(command, c.PatchRun):
        # How it was judged depends on the moment, and it may be judged again until it applies.
        return msgspec.structs.replace(command, base="", prepared=e.ABSENT, expect="")
    return msgspec.structs.replace(command, id="") if isinstance(command, c.DeliverMessage) else command
