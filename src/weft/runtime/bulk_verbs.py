"""The verbs of bulks: how each is judged beforehand, and carried out for one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core import commands as c
from weft.core.ids import Millis, RunId, RunUid
from weft.core.run.env import Env
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import moved_on, patch_refused
from weft.errors import NotFound, Refused, UsageError
from weft.ports.retention import DoomOutcome
from weft.ports.store import OVER_STATUSES, PENDING, RunRow
from weft.runtime.bulk_plan import RefusedRuns
from weft.runtime.deletion import DELETION, DeletionService
from weft.runtime.finished_error import finished_error
from weft.runtime.fork_log import ForkIdentity, ForkLog
from weft.runtime.fork_order import ForkOrder, check_order
from weft.runtime.forks import ForkService, check_forkable
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService


class BulkJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a bulk does, to which runs, and who wants it: the input of a run of ``weft.bulk``."""

    verb: str
    ids: Sequence[str]
    uids: Sequence[str]
    """The runs that had these ids at the dry run."""
    reason: str = ""
    by: str = ""
    options: Mapping[str, Any] = {}
    """What the verb takes besides the reason."""
    expects: Mapping[str, str] = {}
    """By id: the digest of what the dry run showed, for verbs that compare it."""
    review: Sequence[str] = ()
    """Who must agree before anything is done: one of them, and not the one who asks for it."""
    refused: Sequence[RefusedRuns] = ()
    """What the dry run says about runs that would refuse, for the review."""
    approved_by: Sequence[str] = ()
    """Who has agreed. Not in the input: the run learns it."""


class Judgement(msgspec.Struct, frozen=True):
    """What a verb would do to a run now, unless it would be refused."""

    acts: bool = True
    """False if there is nothing left to do, as for a pause of a paused run."""
    expects: str = ""
    """The digest of what would be done, if the verb compares it later."""


class BulkVerb(Protocol):
    """One verb."""

    name: str
    needs_reason: bool
    """Whether a bulk with this verb must say why."""
    is_for_admins: bool

    def check(self, options: Mapping[str, Any]) -> None:
        """Check the options of the whole bulk. Raises UsageError or BadValue."""
        ...

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        """Return what would be done to this run. Changes nothing. Raises the refusal."""
        ...

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> str | None:
        """Do it. The same key has no effect twice. Returns the id of the run that was made, if any.

        Raises the refusal.
        """
        ...

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        """Do nothing if this is what the verb itself has done to a run that no longer exists. Raises NotFound."""
        ...


class CommandVerb:
    """A verb that gives each run one command."""

    needs_reason = False
    is_for_admins = False

    def __init__(
        self, name: str, command: Callable[[BulkJob], c.Mailed], takes: Mapping[str, type] | None = None
    ) -> None:
        """``takes`` has the options of the verb and their types."""
        self.name = name
        self._command = command
        self._takes = takes or {}

    def check(self, options: Mapping[str, Any]) -> None:
        wrong = [
            f"{name} is none of its options" if name not in self._takes else f"{name}={value!r} is not possible"
            for name, value in options.items()
            if not isinstance(value, self._takes.get(name, ()))
        ]
        if wrong:
            known = ", ".join(f"{name} ({of.__name__})" for name, of in self._takes.items()) or "none"
            message = f"A bulk {self.name} cannot be as described: {'; '.join(wrong)}."
            raise UsageError(message, hint=f"Its options: {known}.", code="bulk.bad_option")

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        return Judgement(await _would_change(service, row, self._command(job)))

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> None:
        await service.tell(RunId(row.id), self._command(job), key=key)

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        raise not_there(run_id)


async def _would_change(service: RunService, row: RunRow, command: c.Mailed) -> bool:
    """Return whether a command would change a run as it stands. Raises the refusal."""
    now = service.clock.now_ms()
    if row.status == PENDING:
        if isinstance(command, c.CancelRun):
            return True
        raise Refused(f"{row.id} is pending: no host has claimed it.")
    if isinstance(command, c.RetryRun):
        await service.judge(row, command)
        return True
    if row.status in OVER_STATUSES:
        raise finished_error(row, command, now)
    machine = await service.reader.machine(row)
    return bool(machine.decide(command, Env(now=Millis(max(now, machine.state.at)), check=check_schema)))


def _cancel_command(job: BulkJob) -> c.Mailed:
    return c.CancelRun(job.reason, bool(job.options.get("force")), job.by)


def _pause_command(job: BulkJob) -> c.Mailed:
    return c.PauseRun(job.reason, job.by)


def _resume_command(job: BulkJob) -> c.Mailed:
    return c.ResumeRun(job.reason, job.by)


def _retry_command(job: BulkJob) -> c.Mailed:
    start, approved = str(job.options.get("start", "")), [str(place) for place in job.options.get("approved", ())]
    return c.RetryRun(start, approved, force=bool(job.options.get("force")), reason=job.reason, by=job.by)


COMMANDS: Sequence[CommandVerb] = (
    CommandVerb("cancel", _cancel_command, {"force": bool}),
    CommandVerb("pause", _pause_command),
    CommandVerb("resume", _resume_command),
    CommandVerb("retry", _retry_command, {"start": str, "approved": list, "force": bool}),
)


def not_there(run_id: str) -> NotFound:
    """Return the error for a run that is no longer the one of the dry run."""
    return NotFound(f"{run_id} is no longer the run that it was at the dry run, or does not exist.")


class PatchVerb:
    """Patches each run, as its own plan in the dry run says; ``undo`` and ``redo`` take a patch back and forth."""

    name = "patch"
    needs_reason = False
    is_for_admins = False

    def check(self, options: Mapping[str, Any]) -> None:
        wrong = [name for name in options if name not in ("patch", "undo", "redo", "ends")]
        ways = [isinstance(options.get("patch"), Mapping), options.get("undo") is True, options.get("redo") is True]
        is_whole = len(options) == 1 or (len(options) == 2 and options.get("ends") is True and not ways[0])
        if wrong or sum(ways) != 1 or not is_whole:
            raise UsageError(
                "A bulk patch takes exactly one of patch, undo and redo; the last two with ends if runs may complete.",
                hint='{"patch": {"ops": […]}}, {"undo": true} or {"redo": true, "ends": true}.',
                code="bulk.bad_option",
            )

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        plan = await _patch_run(service, row, job, PatchOptions(reason=job.reason, dry_run=True))
        if plan.refusals:
            raise patch_refused(plan)
        return Judgement(not plan.unchanged, plan.digest)

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> None:
        expect = job.expects.get(row.id, "")
        if not expect:  # it was refused in the dry run, which showed no plan that could be applied now
            plan = await _patch_run(service, row, job, PatchOptions(reason=job.reason, dry_run=True))
            raise patch_refused(plan) if plan.refusals else moved_on(plan)
        options = PatchOptions(
            by=job.by,
            reason=job.reason,
            expect=expect,
            key=key,
            approved_by=list(job.approved_by),
            reviewed_by=list(job.review) if job.approved_by else [],
            asks=False,
        )
        await _patch_run(service, row, job, options)

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        raise not_there(run_id)


async def _patch_run(service: RunService, row: RunRow, job: BulkJob, options: PatchOptions) -> PatchPlan:
    patches = PatchService(service)
    if "patch" in job.options:
        return await patches.patch(row.id, job.options["patch"], options)
    return await patches.undo(row.id, options, redo=bool(job.options.get("redo")), ends=bool(job.options.get("ends")))


class ForkVerb:
    """Forks each run. The forks have ids of their own."""

    name = "fork"
    needs_reason = False
    is_for_admins = False

    def check(self, options: Mapping[str, Any]) -> None:
        if "id" in options:
            raise UsageError("Forks of many runs cannot have one id.", hint="Leave it out.", code="bulk.bad_option")
        check_order(_fork_order(options, ""))

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        check_forkable(row)
        await ForkLog(
            service, row, _fork_order(job.options, job.reason), ForkIdentity(RunUid("fork"), row.id, is_dry=True)
        ).append()
        return Judgement()

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> str:
        return (await ForkService(service).fork(row.id, _fork_order(job.options, job.reason), by=job.by, key=key)).id

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        raise not_there(run_id)


def _fork_order(options: Mapping[str, Any], reason: str) -> ForkOrder:
    try:
        known = set(ForkOrder.__struct_fields__) - {"reason"}
        unknown = [name for name in options if name not in known]
        if unknown:
            raise UsageError(
                f"A bulk fork takes no {', '.join(unknown)}.",
                hint=f"Its options: {', '.join(sorted(known - {'id'}))}.",
                code="bulk.bad_option",
            )
        return msgspec.convert({**options, "reason": reason}, ForkOrder)
    except msgspec.ValidationError as error:
        raise UsageError(f"The options of the fork are not valid: {error}.", code="bulk.bad_option") from None


class DeleteVerb:
    """Deletes each run and all runs below it."""

    name = "delete"
    needs_reason = True
    is_for_admins = True

    def check(self, options: Mapping[str, Any]) -> None:
        if options:
            message = f"A bulk delete takes no {', '.join(options)}."
            raise UsageError(message, hint="Leave it out.", code="bulk.bad_option")

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        result = await service.store.retention.doom(row.uid, msgspec.structs.replace(DELETION, dry_run=True))
        if result.outcome is not DoomOutcome.DOOMED:
            raise await DeletionService(service).refusal(row.id, result)
        return Judgement()

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> None:
        await DeletionService(service).delete(row.id, job.reason, by=job.by, key=key)

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        """Accept that this bulk has deleted the run before it was interrupted. Raises NotFound if it has not."""
        await DeletionService(service).delete(run_id, job.reason, by=job.by, key=key)
