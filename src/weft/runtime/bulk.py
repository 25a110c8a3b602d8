"""Bulks: one verb for many runs, shown beforehand and then carried out by a durable run of ``weft.bulk``.

The dry run finds the runs and judges each as it stands. Its ids are the ones that the bulk goes through. Each run gets
one command with a key made of the uid of the bulk, so that a bulk that is killed and goes on does nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import RunId, RunUid, tenant_prefix
from weft.core.run.questions import STARTED_BY
from weft.errors import LimitExceeded, NotFound, Unavailable, UsageError, WeftError
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.bulk_plan import BulkBatch, BulkFilter, BulkOrder, BulkPlan, BulkRefusal, group_refusals
from weft.runtime.bulk_verbs import COMMANDS, BulkJob, BulkVerb, DeleteVerb, ForkVerb, Judgement, PatchVerb, not_there
from weft.runtime.service import RunService
from weft.runtime.start_support import StartOptions
from weft.runtime.tenancy import TenantService

T = TypeVar("T")

_ALL: tuple[BulkVerb, ...] = (*COMMANDS, PatchVerb(), ForkVerb(), DeleteVerb())
VERBS: Mapping[str, BulkVerb] = {verb.name: verb for verb in _ALL}
"""What can be done to many runs."""
WORKFLOW = "weft.bulk"
VERSION = "1"
REVIEW = "review"
"""Where a bulk asks the people who must agree to it."""
RUNS_MAX = 50_000
"""The most runs that one bulk goes through."""
NAMED_MAX = 100
"""The most ids that an error names."""
BATCH = 48
"""How many runs one step of a bulk goes through. A pause or cancel of the bulk waits for them."""
AT_ONCE = 16
"""How many runs of a bulk are judged or changed at the same time."""
PAGE = 500
JUDGED_AGAIN = 2
"""How often a dry run asks the store again about a run if it did not answer."""


class BulkService:
    """The bulks of a store, as one caller may see and start them."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def plan(self, order: BulkOrder) -> BulkPlan:
        """Find the runs and judge each as it stands. Raises UsageError, LimitExceeded, NotFound, Unavailable."""
        verb = find_verb(order.verb)
        verb.check(order.options)
        rows = await self._find_rows(order)
        job = BulkJob(verb=order.verb, ids=(), uids=(), options=order.options)
        judged = await _call_a_few_at_once(lambda row: self._judge_run(verb, row, job), list(rows.values()))
        verdicts = {run: one for run, one in zip(rows, judged, strict=True) if isinstance(one, Judgement)}
        acts = sum(one.acts for one in verdicts.values())
        return BulkPlan(
            verb=order.verb,
            matched=len(rows),
            would_apply=acts,
            unchanged=len(verdicts) - acts,
            refused=group_refusals([one for one in judged if isinstance(one, BulkRefusal)]),
            ids=list(rows),
            uids=[row.uid for row in rows.values()],
            options=order.options,
            expects={run: one.expects for run, one in verdicts.items() if one.expects},
        )

    async def start(
        self,
        plan: BulkPlan,
        *,
        reason: str = "",
        by: str = "",
        review: Sequence[str] = (),
        key: str | None = None,
    ) -> RunId:
        """Start the run that carries out a plan. Returns its id. The same key finds the same run.

        With ``review``, it first asks these people, and does nothing before one of them agrees.
        """
        service = self._service
        verb = find_verb(plan.verb)
        verb.check(plan.options)
        if verb.needs_reason and not reason.strip():
            message = f"A bulk {verb.name} must say why."
            raise UsageError(message, hint="Give a reason: it stays in the audit table.", code="bulk.no_reason")
        values.encode([reason, by, *review], what="the reason has")
        known = await self.find(plan.verb, key) if key is not None else None
        if known is not None:
            return known[0]  # a plan that was made again meanwhile may differ
        token = _plan_token(key) if key is not None else service.ids.new()
        job = BulkJob(
            verb=plan.verb,
            ids=plan.ids,
            uids=plan.uids,
            reason=reason,
            by=by,
            options=plan.options,
            expects=plan.expects,
            review=list(review),
            refused=list(plan.refused),
        )
        start = c.StartRun(
            run_id=_run_id(plan.verb, token),
            workflow=WORKFLOW,
            version=VERSION,
            input=Raw(values.encode(msgspec.to_builtins(job), what="the bulk has")),
            attributes={STARTED_BY: by} if by else {},
        )
        return (await service.create(start, StartOptions(chosen=key is not None))).id

    async def find(self, verb: str, key: str) -> tuple[RunId, BulkPlan] | None:
        """Return the bulk that was started with this key, if there is one."""
        service = self._service
        row = await service.store.directory.find(RunId(_run_id(verb, _plan_token(key))))
        if row is None:
            return None
        started = await service.reader.started_with(row)
        job = msgspec.convert(values.decode(await service.values.load(bytes(started.input))), BulkJob)
        plan = BulkPlan(
            verb=job.verb,
            matched=len(job.ids),
            would_apply=len(job.ids),
            unchanged=0,
            refused=[],
            ids=job.ids,
            uids=job.uids,
            options=job.options,
            expects=job.expects,
        )
        return row.id, plan

    async def _find_rows(self, order: BulkOrder) -> dict[str, RunRow]:
        """Return the runs of an order by id, in order. Raises UsageError, LimitExceeded, NotFound."""
        if bool(order.ids) is (order.filter != BulkFilter()):
            hint = "A bulk for all runs would have no way back: name at least a workflow or a status."
            message = "A bulk is for runs by their ids, or for those that a filter finds."
            raise UsageError(message, hint=hint, code="bulk.no_runs")
        if order.ids:
            return await self._rows_with_ids(list(dict.fromkeys(order.ids)))
        rows: dict[str, RunRow] = {}
        query = await self._run_query(order.filter)
        while True:
            page = await self._service.search(query)
            rows |= {row.id: row for row in page.rows}
            _check_size(len(rows))
            if page.cursor is None:
                return rows
            query = msgspec.structs.replace(query, after=page.cursor)

    async def _rows_with_ids(self, ids: Sequence[str]) -> dict[str, RunRow]:
        """Return the runs with these ids. Raises LimitExceeded; NotFound with all ids that no run has."""
        _check_size(len(ids))
        find = self._service.store.directory.find
        rows = dict(zip(ids, await _call_a_few_at_once(lambda run: find(RunId(run)), ids), strict=True))
        missing = [repr(run[:100]) for run, row in rows.items() if row is None]
        if missing:
            more = f" and {len(missing) - NAMED_MAX:,} more" if len(missing) > NAMED_MAX else ""
            what = "There is no run" if len(missing) == 1 else "There are no runs"
            raise NotFound(f"{what} {', '.join(missing[:NAMED_MAX])}{more}.", hint="Nothing was changed.")
        return rows

    async def _run_query(self, wanted: BulkFilter) -> RunQuery:
        parent = await self._service.row(RunId(wanted.parent)) if wanted.parent is not None else None
        return RunQuery(
            workflow=wanted.workflow,
            status=wanted.status,
            since=wanted.since,
            id_prefix=wanted.prefix,
            parent=parent.uid if parent is not None else None,
            where=wanted.where,
            limit=PAGE,
        )

    async def _judge_run(self, verb: BulkVerb, row: RunRow, job: BulkJob) -> Judgement | BulkRefusal:
        for _ in range(JUDGED_AGAIN):
            try:
                return await self._judge_once(verb, row, job)
            except Unavailable:  # one cut session must not end the dry run of many runs
                continue
        return await self._judge_once(verb, row, job)

    async def _judge_once(self, verb: BulkVerb, row: RunRow, job: BulkJob) -> Judgement | BulkRefusal:
        try:
            return await verb.judge(self._service, row, job)
        except Unavailable:
            raise
        except WeftError as error:
            return _bulk_refusal(row.id, row, error)


async def apply_batch(service: RunService, bulk: tuple[RunId, RunUid], job: BulkJob, first: int) -> BulkBatch:
    """Carry out the verb for the next runs of a job, from a position on.

    ``bulk`` is the run of the job. Its tenant's runs are the only ones that it can change.
    """
    run_id, uid = bulk
    prefix = tenant_prefix(run_id)
    seen = TenantService(service, prefix[1:-1]) if prefix else service
    verb = find_verb(job.verb)

    async def apply(run: tuple[str, str]) -> BulkRefusal | str | None:
        return await service.retry_until_available(lambda: _apply_to_run(seen, verb, run, job, f"bulk/{uid}"))

    some = list(zip(job.ids, job.uids, strict=True))[first : first + BATCH]
    done = await _call_a_few_at_once(apply, some)
    refusals = [one for one in done if isinstance(one, BulkRefusal)]
    return BulkBatch(len(some), refusals, [one for one in done if isinstance(one, str)])


async def _apply_to_run(
    service: RunService, verb: BulkVerb, run: tuple[str, str], job: BulkJob, key: str
) -> BulkRefusal | str | None:
    """Carry out the verb for one run. Returns the refusal, or the run that it made."""
    run_id, uid = run
    row: RunRow | None = None
    try:
        row = await service.store.directory.find(RunId(run_id))
        if row is not None and row.uid != uid:
            row = None
            raise not_there(run_id)
        if row is None:
            await verb.repeat(service, RunId(run_id), job, key)
        else:
            return await verb.apply(service, row, job, key)
    except Unavailable:
        raise
    except WeftError as error:
        return _bulk_refusal(run_id, row, error)
    return None


def _run_id(verb: str, token: str) -> str:
    return f"bulk/{verb}-{token}"


def _plan_token(key: str) -> str:
    return values.digest(key.encode())[:16]


def _bulk_refusal(run: str, row: RunRow | None, error: WeftError) -> BulkRefusal:
    return BulkRefusal(run, row.status if row is not None else "", error.code, error.message)


def find_verb(name: str) -> BulkVerb:
    """Return a verb by its name. Raises UsageError."""
    found = VERBS.get(name)
    if found is None:
        raise UsageError(
            f"{name[:60]!r} is no verb of bulks.", hint=f"One of: {', '.join(VERBS)}.", code="bulk.unknown_verb"
        )
    return found


def _check_size(count: int) -> None:
    if count > RUNS_MAX:
        raise LimitExceeded(
            f"These are more than {RUNS_MAX:,} runs, which is the most for one bulk.",
            hint="Narrow the filter, for example by workflow, status or time.",
            code="bulk.too_many",
        )


async def _call_a_few_at_once(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Call a coroutine function for each item, a few at the same time. Returns the results in order.

    Raises the first error; the other calls are cancelled.
    """
    results: list[Any] = [None] * len(items)
    left = iter(range(len(items)))

    async def work() -> None:
        for index in left:
            results[index] = await call(items[index])

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(items))):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return results
