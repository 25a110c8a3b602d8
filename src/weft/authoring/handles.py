"""Handles, with which programs wait for runs, control them, and read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from weft.agents.budget import Budget, amounts_of
from weft.authoring.policies import Duration
from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.commands import CancelEntry
from weft.core.durations import duration_ms, time_of
from weft.core.ids import RunId
from weft.core.run.lifecycle import NEVER_BEGAN, UNDONE
from weft.core.run.patch_plan import PatchPlan
from weft.errors import Failure, RunCancelled, RunFailed, RunFinished, TimedOut, UsageError
from weft.observe.event_parts import follow_parts
from weft.observe.explain import explain
from weft.observe.explanation import Explanation
from weft.observe.step_logs import LogLine, follow_lines
from weft.observe.usage import RunUsage, usage_of
from weft.ports.step_logs import LogQuery
from weft.ports.store import IMPORTED, MOVED
from weft.runtime.asked_patches import PatchRequest, PatchRequests
from weft.runtime.by_hand import GivenResult, set_result
from weft.runtime.deletion import DeletedTree, DeletionService, LegalHold
from weft.runtime.fork_order import ForkOptions, ForkOrder
from weft.runtime.forks import ForkService
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.raise_budget import raise_command
from weft.runtime.requests import send_request, wait_for_answer
from weft.runtime.run_versions import RunVersion
from weft.runtime.runs import Ending
from weft.runtime.service import RunService
from weft.steps.codec import Codec
from weft.steps.failures import recorded_hint
from weft.steps.task import release_slot

if TYPE_CHECKING:
    from weft.core.code.state import Entry
    from weft.runtime.run.driver import CodeDriver

R = TypeVar("R")
Status = str


class Event(msgspec.Struct, frozen=True):
    """One event of a run's log.

    A record may stand for several events. ``part`` numbers them from 1; it is 0 if the event is the only one.
    """

    seq: int
    at: datetime
    kind: str
    data: dict[str, Any]
    part: int = 0


class Handle(Generic[R]):
    """A handle of a run. When a method returns, its effect is durable."""

    def __init__(self, service: RunService, run_id: RunId, result: Codec[R]) -> None:
        self.id: str = run_id
        self._service = service
        self._result = result

    def __repr__(self) -> str:
        return f"<weft run {self.id}>"

    @property
    def codec(self) -> Codec[R]:
        """The codec of the result."""
        return self._result

    async def result(self, *, timeout: Duration | None = None) -> R:
        """Wait for the end of the run and return its result. Raises RunFailed, RunCancelled, TimedOut."""
        seconds = duration_ms(timeout) / 1000 if timeout is not None else None
        try:
            with release_slot():
                ending = await self._service.ending(RunId(self.id), timeout=seconds)
        except TimeoutError as error:
            raise TimedOut(f"{self.id} did not end in time; it is still running.", code="wait.timed_out") from error
        return self.read(ending)

    def read(self, ending: Ending) -> R:
        """Return the result of a run that ended, or raise its failure."""
        if ending.status == "completed":
            return self._result.decode(ending.output, what=f"{self.id} returned")
        if ending.failure is not None:
            raise RunFailed(
                f"{self.id} failed: {_describe(ending.failure)}",
                run_id=self.id,
                failure=ending.failure,
                hint=_next_steps(self.id, ending.failure),
            )
        if ending.status == IMPORTED:
            raise RunFinished(
                f"{self.id} was imported and had not ended, so it has no result.",
                hint=f"Fork it: weft fork {self.id}",
                code="run.imported",
                run_id=self.id,
            )
        if ending.status == MOVED:
            raise RunFinished(
                f"{self.id} was moved{ending.reason}, so it has no result here.",
                hint="Ask for the result where it is.",
                code="run.moved",
                run_id=self.id,
            )
        raise RunCancelled(
            f"{self.id} was cancelled{f': {ending.reason}' if ending.reason else ''}.",
            run_id=self.id,
            reason=ending.reason,
        )

    async def status(self) -> Status:
        """Return the status of the run.

        This is pending, running, paused, cancelling, rolling_back, held, completed, failed, cancelled, moved or
        imported.
        """
        return (await self._service.row(RunId(self.id))).status

    async def send(self, name: str, body: Any = None, *, key: str | None = None) -> None:
        """Send a message. The run receives it even if it does not wait for it yet.

        Two messages with the same key count as one.
        """
        raw = await self._service.values.keep(values.encode(body, what=f'the message "{check_name(name)}" has'))
        message = c.DeliverMessage(self._service.ids.new(), name, msgspec.Raw(raw))
        await self._service.tell(RunId(self.id), message, key=key)

    async def request(
        self, name: str, body: Any = None, *, timeout: Duration | None = None, key: str | None = None
    ) -> Any:
        """Send a message and wait for the run's answer. Two requests with the same key count as one.

        Raises:
            TimedOut: there is no answer yet. Another request with the same key waits for it again.
            RunFinished: the run ended without an answer.
            BadValue: the message has the wrong type.
        """
        raw = await self._service.values.keep(values.encode(body, what=f'the message "{check_name(name)}" has'))
        request = await send_request(self._service, RunId(self.id), name, raw, key=key)
        seconds = duration_ms(timeout) / 1000 if timeout is not None else None
        try:
            with release_slot():
                answer = await wait_for_answer(self._service, RunId(self.id), request, timeout=seconds)
        except TimeoutError as error:
            raise request_timed_out(self.id, name) from error
        return values.decode(answer)

    async def decide(
        self,
        ask: str,
        *,
        approved: bool,
        by: str = "",
        reason: str = "",
        form: Any = None,
        digest: str = "",
        key: str | None = None,
    ) -> None:
        """Answer an open question of the run. With ``digest``, the answer counts only if the subject still has it."""
        values.encode([ask, by, reason, digest], what="the answer has")
        raw = values.seal(values.encode(form, what="the form has"))
        command = c.DecideAsk(ask, approved, by, reason, msgspec.Raw(raw), digest=digest)
        await self._service.tell(RunId(self.id), command, key=key)

    async def cancel(self, reason: str = "", *, force: bool = False, by: str = "") -> None:
        """Ask the run to stop. Its code may clean up, then its completed steps are undone.

        ``force`` ends the run without giving its code a chance to clean up. Its completed steps are undone, and its
        child runs are asked to stop.
        """
        values.encode([reason, by], what="the reason has")
        await self._service.tell(RunId(self.id), c.CancelRun(reason, force, by))

    async def pause(self, reason: str = "", *, by: str = "") -> None:
        """Start no new work until the run is resumed. Results that arrive meanwhile are kept."""
        values.encode([reason, by], what="the reason has")
        await self._service.tell(RunId(self.id), c.PauseRun(reason, by))

    async def resume(self, reason: str = "", *, by: str = "") -> None:
        """Continue a paused or held run."""
        values.encode([reason, by], what="the reason has")
        await self._service.tell(RunId(self.id), c.ResumeRun(reason, by))

    async def retry(
        self,
        reason: str = "",
        *,
        start: str = "",
        approved: Sequence[str] = (),
        force: bool = False,
        by: str = "",
    ) -> None:
        """Retry a failed run. With ``start``, everything from that location on is repeated.

        An irreversible step that may have been performed before waits for a person to approve it, except at the places
        in ``approved``. While such a step is in flight, a retry from there needs ``force``.
        """
        values.encode([start, *approved, reason, by], what="the retry has")
        command = c.RetryRun(start, list(approved), force=force, reason=reason, by=by)
        await self._service.tell(RunId(self.id), command)

    async def patch(
        self,
        /,
        ops: Sequence[Mapping[str, Any]] | None = None,
        *,
        dry_run: bool = False,
        expect: str = "",
        by: str = "",
        reason: str = "",
        wait: Duration | None = None,
        at: str = "",
        review: Sequence[str] = (),
        key: str | None = None,
        **fields: Any,
    ) -> PatchPlan:
        """Let the run follow another definition from where it stands.

        ``ops`` are JSON Patch operations on its document; ``document=`` or ``to=`` (a version or tag) name a whole new
        one. The other ``fields`` are those of a patch, such as ``move`` or ``rename``. With ``dry_run``, only return
        the plan. With ``expect``, apply only the plan with this digest.

        With ``wait``, a patch that is not allowed now is tried again after every event, for that long; with ``at`` it
        waits until all tokens of a graph are at that node. With ``review``, one of these people or groups must agree,
        and not ``by``. The plan then has ``asked``, the number under which ``patch_requests`` lists the patch.

        Raises:
            PatchRefused: the patch does not fit the run as it stands; ``plan`` has all reasons.
            StaleBase: it was written against another version.
            BadPatch, BadGraph: the patch or the new document is not valid.
        """
        options = PatchOptions(
            by=by,
            reason=reason,
            expect=expect,
            dry_run=dry_run,
            key=key,
            wait_ms=duration_ms(wait) if wait is not None else 0,
            at=at,
            review=list(review),
        )
        return await PatchService(self._service).patch(self.id, patch_document(ops, fields), options)

    async def undo_patch(
        self,
        *,
        redo: bool = False,
        ends: bool = False,
        dry_run: bool = False,
        expect: str = "",
        by: str = "",
        reason: str = "",
    ) -> PatchPlan:
        """Undo the last patch, or with ``redo`` the last undo. Judged like every patch.

        With ``ends``, the undo may complete a goal run.
        """
        options = PatchOptions(by=by, reason=reason, expect=expect, dry_run=dry_run)
        return await PatchService(self._service).undo(self.id, options, redo=redo, ends=ends)

    async def withdraw_patch(self, asked: int = 0, *, by: str = "", reason: str = "") -> PatchRequest:
        """Drop a patch that waits or is being reviewed. Without its number, the only one."""
        return await PatchRequests(self._service).withdraw(self.id, asked, by=by, reason=reason)

    async def patch_requests(self) -> list[PatchRequest]:
        """Return the patches that had to wait or to be reviewed, oldest first, and what became of them."""
        return await PatchRequests(self._service).all(self.id)

    async def versions(self) -> list[RunVersion]:
        """Return the versions that the run has followed, oldest first."""
        return await PatchService(self._service).versions(self.id)

    async def delete(self, reason: str, *, by: str = "") -> DeletedTree:
        """Delete the run and all runs below it, for good. Raises NotOver, RunKept."""
        return await DeletionService(self._service).delete(RunId(self.id), reason, by=by)

    async def keep(self, reason: str, *, by: str = "") -> LegalHold:
        """Keep the run and its whole tree from deletion, by anybody, until ``end_keep``."""
        return await DeletionService(self._service).keep(RunId(self.id), reason, by=by)

    async def end_keep(self, reason: str = "", *, by: str = "") -> LegalHold:
        """End the hold that ``keep`` put on the tree of the run."""
        return await DeletionService(self._service).end_keep(RunId(self.id), reason, by=by)

    async def fork(self, *, by: str = "", key: str | None = None, **options: Unpack[ForkOptions]) -> Handle[R]:
        """Make a new run that shares the past of this one up to a point, and goes on from there.

        The point is ``at=SEQ``, ``before=PLACE``, ``after=PLACE`` (``visit=n``) or ``failure=True``. Without one, the
        fork begins anew. ``input``, ``set`` (results by place), ``state``, ``given`` and ``to`` (a version) change it,
        and ``effects`` says what it does with work that the original has performed. Two forks with the same ``key`` are
        one. ``by`` says who makes it.

        Raises:
            Refused, NotFound, IdTaken, UsageError, BadValue: nothing was written.
        """
        forked = await ForkService(self._service).fork(self.id, ForkOrder(**options), by=by, key=key)
        return Handle(self._service, RunId(forked.id), self._result)

    async def set(
        self,
        place: str,
        output: Any = None,
        *,
        error: str = "",
        performed: bool = False,
        force: bool = False,
        reason: str = "",
        by: str = "",
    ) -> None:
        """End the work at a place by hand, with an output or an error.

        If the work can be undone, that is done only with ``performed``: then somebody did it. In a code run that is
        paused, held or failed, this also replaces a recorded result; everything that began after it is repeated. While
        an irreversible step is in flight there, this needs ``force``.

        Raises NotFound, Refused, BadValue.
        """
        given = GivenResult(output=output, error=error, performed=performed, force=force, reason=reason, by=by)
        await set_result(self._service, self.id, place, given)

    async def usage(self) -> RunUsage:
        """Return what the run and everything below it have spent, and what is left of its budgets."""
        return await usage_of(self._service, await self._service.row(RunId(self.id)))

    async def raise_budget(
        self, added: Budget | Mapping[str, Any], *, reason: str = "", by: str = "", key: str | None = None
    ) -> None:
        """Add amounts to the limits of the run's budget: ``weft.Budget(money="1 USD")``, or a mapping of units.

        Raises BadValue, Refused if the run has no budget of its own or does not limit such a unit, RunFinished.
        """
        command = await raise_command(self._service, self.id, amounts_of(added), reason, by)
        await self._service.tell(RunId(self.id), command, key=key)

    async def events(self, *, after: int = 0, follow: bool = False) -> AsyncIterator[Event]:
        """Iterate over the log, oldest first. With ``follow``, also over new events until the run ends."""
        row = await self._service.row(RunId(self.id))
        async for part in follow_parts(self._service, row, after=after, follow=follow):
            kind, data = part.split()
            at = time_of(part.at)
            yield Event(part.seq, at, kind, msgspec.json.decode(data), part.part)

    async def logs(self, *, after: int = 0, follow: bool = False) -> AsyncIterator[LogLine]:
        """Iterate over what steps printed and logged, oldest first. With ``follow``, until the run ends."""
        row = await self._service.row(RunId(self.id))
        async for line in follow_lines(self._service, row, LogQuery(after=after), follow=follow):
            yield line

    async def explain(self) -> Explanation:
        """Explain what the run waits for, since when, and what would help."""
        row = await self._service.row(RunId(self.id))
        return await explain(self._service, row)


def patch_document(ops: Sequence[Mapping[str, Any]] | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a patch as a document. Fields that are None are left out. Raises UsageError."""
    if isinstance(ops, Mapping):
        raise UsageError("A patch is given by its fields, or as a list of operations.", hint="Write patch(**document).")
    given = {name: value for name, value in fields.items() if value is not None}
    return given if ops is None else {"ops": list(ops), **given}


def request_timed_out(run_id: str, name: str) -> TimedOut:
    """Return the error for a request that was not answered in time."""
    return TimedOut(f'{run_id} did not answer "{name}" in time; the request stays open.', code="wait.timed_out")


def _describe(failure: Failure) -> str:
    cause = f" The cause: {failure.cause.rstrip('. ')}." if failure.cause else ""
    if failure.code.startswith("step.") and failure.message:
        return f"{failure.message}{cause}"  # the message names the step, its attempts and its location
    where = f" at {failure.where}" if failure.where else ""
    step = f" in {failure.step}" if failure.step and not failure.cause else ""
    what = f"{failure.type}: {failure.message.rstrip('. ')}" if failure.message else failure.type
    return f"{what}{step}{where}.{cause}"


def _next_steps(run_id: str, failure: Failure) -> str:
    hint = recorded_hint(failure)
    again = "" if "weft retry" in hint else f" Try again: weft retry {run_id}"
    if failure.attributes.get(UNDONE) == run_id:
        again = " Its steps were undone, so it cannot be retried. Start a new run with another id"
    if failure.attributes.get(NEVER_BEGAN) == run_id:
        again = " It never began, so it cannot be retried. Start a new run with another id"
    return f"{hint.rstrip('. ')}. What happened: weft show {run_id}.{again}".removeprefix(". ")


class ChildHandle(Handle[R]):
    """A child run that was started with ``ctx.spawn``."""

    def __init__(
        self, driver: CodeDriver, entry: Entry, result: Codec[R], failed: Callable[[Entry], Exception]
    ) -> None:
        self.id = entry.child
        self._driver = driver
        self._entry = entry
        self._result = result
        self._failed = failed
        self._known = False
        self._lock = asyncio.Lock()

    @property
    def _service(self) -> RunService:  # type: ignore[override]
        raise UsageError(
            f"Inside a workflow, the handle of {self.id} can only wait and cancel.",
            hint="For everything else, use weft.Client(url).get(id) in a step.",
        )

    async def result(self, *, timeout: Duration | None = None) -> R:
        """Wait for the end of the child and return its result. The wait survives a restart."""
        if timeout is not None:
            raise UsageError(
                "The result of a spawned run cannot have a timeout.", hint="Write: await ctx.call(…, timeout=…)"
            )
        async with self._lock:
            if not self._known:
                await self._driver.outcome(self._entry)
                self._known = True
        if self._entry.failure is not None:
            raise self._failed(self._entry)
        return self._driver.read(self._result, await self._driver.value(self._entry.output), self._entry)

    async def cancel(self, reason: str = "", *, force: bool = False, by: str = "") -> None:
        """Ask the child to stop, without waiting for its end. The run itself is who asks."""
        if force:
            raise UsageError(
                "A run cannot force its children to stop.", hint=f"To force it, run: weft cancel {self.id} --force"
            )
        self._driver.outside.issue(CancelEntry(self._entry.id))
