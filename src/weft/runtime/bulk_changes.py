"""The verbs of bulks that change more than a run's status: patch, fork and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.ids import RunId, RunUid
from weft.core.run.patch_plan import PatchPlan
from weft.core.run.patches import moved_on, patch_refused
from weft.errors import UsageError
from weft.ports.retention import DoomOutcome
from weft.ports.store import RunRow
from weft.runtime.bulk_verbs import BulkJob, Judgement, not_there
from weft.runtime.deletion import DELETION, DeletionService
from weft.runtime.fork_log import ForkIdentity, ForkLog
from weft.runtime.fork_order import ForkOrder, check_order
from weft.runtime.forks import ForkService, check_forkable
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.service import RunService


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
        plan = await _patch(service, row, job, PatchOptions(reason=job.reason, dry_run=True))
        if plan.refusals:
            raise patch_refused(plan)
        return Judgement(bool(plan.entries) or plan.version != plan.base, plan.digest)

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> None:
        expect = job.expects.get(row.id, "")
        if not expect:  # it was refused in the dry run, which showed no plan that could be applied now
            plan = await _patch(service, row, job, PatchOptions(reason=job.reason, dry_run=True))
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
        await _patch(service, row, job, options)

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        raise not_there(run_id)


async def _patch(service: RunService, row: RunRow, job: BulkJob, options: PatchOptions) -> PatchPlan:
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
        check_order(_order(options, ""))

    async def judge(self, service: RunService, row: RunRow, job: BulkJob) -> Judgement:
        check_forkable(row)
        await ForkLog(
            service, row, _order(job.options, job.reason), ForkIdentity(RunUid("fork"), row.id, is_dry=True)
        ).append()
        return Judgement()

    async def apply(self, service: RunService, row: RunRow, job: BulkJob, key: str) -> str:
        return (await ForkService(service).fork(row.id, _order(job.options, job.reason), by=job.by, key=key)).id

    async def repeat(self, service: RunService, run_id: RunId, job: BulkJob, key: str) -> None:
        raise not_there(run_id)


def _order(options: Mapping[str, Any], reason: str) -> ForkOrder:
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
