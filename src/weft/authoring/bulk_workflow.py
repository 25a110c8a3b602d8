"""The workflow ``weft.bulk``: it gives one command to each of many runs, a batch at a time, and counts refusals.

It is a code workflow like any other, so pausing, resuming and cancelling a bulk is what it is for every run. A batch
that was interrupted is repeated; its commands have keys, so none of them has an effect twice.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from weft.authoring.context import THE_CONTEXT, Context
from weft.authoring.results import Again, Answer, Done, again, done
from weft.authoring.runnable import RunnableGroup
from weft.authoring.workflows import Workflow, WorkflowProgram
from weft.core.ids import RunId, RunUid
from weft.core.plurals import pluralize
from weft.observe.code_views import PROGRESS
from weft.runtime.bulk import REVIEW, VERSION, WORKFLOW, apply_batch
from weft.runtime.bulk_plan import BulkBatch, BulkResult, RefusedRuns
from weft.runtime.bulk_verbs import BulkJob
from weft.runtime.run.driver import current_scope
from weft.runtime.service import RunService
from weft.steps.signature import Signature
from weft.steps.task import task

RETRIES = 100
EXAMPLES = 20
"""How many runs the question of a review names."""


def bulk_program(group: RunnableGroup) -> WorkflowProgram:
    """Return the program of ``weft.bulk`` for a host of this group."""
    workflow: Workflow[Any, Any] = Workflow(group, WORKFLOW, perform_bulk, _signature(), version=VERSION, timeout_ms=0)
    return WorkflowProgram(workflow, THE_CONTEXT)


@functools.cache
def _signature() -> Signature:
    """Read the signature once; it is the same for all apps of a process."""
    return Signature.of(perform_bulk, context_type=Context)


async def perform_bulk(
    ctx: Context,
    *,
    verb: str,
    ids: list[str],
    uids: list[str],
    reason: str = "",
    by: str = "",
    options: Mapping[str, Any] | None = None,
    expects: Mapping[str, str] | None = None,
    review: list[str] | None = None,
    refused: list[RefusedRuns] | None = None,
) -> BulkResult:
    """Carry out a bulk, after its review if it has one."""
    job = BulkJob(verb=verb, ids=ids, uids=uids, reason=reason, by=by, options=options or {}, expects=expects or {})
    begin = BulkResult(verb=verb)
    if review:
        answer = await _ask_for_review(ctx, job, review, refused or [])
        if not answer.approved:
            return BulkResult(verb=verb, rejected=": ".join(filter(None, (", ".join(answer.by), answer.reason))))
        begin = BulkResult(verb=verb, approved_by=list(answer.by))
    job = msgspec.structs.replace(job, approved_by=begin.approved_by, review=review or [])
    service = _service()

    async def go_on(so_far: BulkResult) -> Again[BulkResult] | Done[BulkResult]:
        return await _go_on(ctx, job, service, so_far)

    return await ctx.loop("batches", go_on, state=begin, keep=0)


async def _ask_for_review(ctx: Context, job: BulkJob, review: list[str], refused: list[RefusedRuns]) -> Answer[None]:
    """Ask for a review. Who asked for the bulk may not answer."""
    about = {
        "verb": job.verb,
        "runs": len(job.ids),
        "examples": job.ids[:EXAMPLES],
        "refused": msgspec.to_builtins(refused),
        "options": job.options,
        "reason": job.reason,
        "by": job.by,
    }
    title = f"{job.verb} {pluralize(len(job.ids), 'run')}?"
    return await ctx.ask(REVIEW, title=title, of=review, about=about, four_eyes=True)


async def _go_on(
    ctx: Context, job: BulkJob, service: RunService, so_far: BulkResult
) -> Again[BulkResult] | Done[BulkResult]:
    """Go through the next batch of runs."""
    first = so_far.tried
    await ctx.set(**{PROGRESS: {"place": "runs", "done": first, "total": len(job.ids)}})
    if first >= len(job.ids):
        return done(so_far)

    async def apply() -> BulkBatch:
        here = task()
        return await apply_batch(service, (RunId(here.run_id), RunUid(here.uid)), job, first)

    return again(so_far.add(await ctx.step("apply", apply, retries=RETRIES)))


def _service() -> RunService:
    """Return the service of the host that this bulk runs on."""
    scope = current_scope()
    assert scope is not None, "a bulk runs as a workflow"
    service = scope.driver.program.service()
    assert isinstance(service, RunService)
    return service
