"""Do the same to many runs: print the dry run, ask, and start the run that does it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import remote_of, run_operations
from weft.cli.output import console, print_json, print_table
from weft.cli.patches import declared_code
from weft.cli.run_control import is_acted_on, say_who
from weft.cli.run_list import TypedRunFilter, misspelt_attributes
from weft.cli.store_access import open_service, store_label, url_of
from weft.core.ids import RunId
from weft.core.plurals import pluralize
from weft.runtime.bulk import REVIEW
from weft.runtime.bulk_plan import BulkOrder, BulkPlan
from weft.runtime.service import RunService
from weft.stores import url_without_password

REFUSED = 1
NO_HOST = "no process hosts runs of this store now; the next host of any app will carry this out."


class TypedBulk(msgspec.Struct, frozen=True):
    """A verb and the runs that it is for, as they were typed."""

    verb: str
    runs: Sequence[str]
    workflow: str | None
    status: str | None
    since: str | None
    where: Sequence[str]
    reason: str
    options: Mapping[str, Any]
    dry_run: bool
    apply: bool
    json: bool
    by: str | None = None
    review: Sequence[str] = ()

    def is_single(self) -> bool:
        """Return whether this is about one run and needs no bulk."""
        filtered = self.workflow or self.status or self.since or self.where
        return len(self.runs) == 1 and not (filtered or self.dry_run or self.apply or self.review)

    def order(self, now: int) -> BulkOrder:
        """Return the order of the bulk. Raises UsageError."""
        wanted = TypedRunFilter(self.workflow, self.status, self.since, self.where, 1, None)
        return BulkOrder(verb=self.verb, ids=self.runs, filter=wanted.found(now), options=self.options)


async def run_bulk(typed: TypedBulk, *, url: str | None, app: str | None) -> int:
    """Print the dry run of a bulk and, if that is wanted, start it. Returns the exit code."""
    address = url_of(url, app)
    async with open_service(address) as service:
        needs_code = typed.verb == "patch" or (typed.verb == "fork" and not {"input", "set"}.isdisjoint(typed.options))
        if needs_code and remote_of(service) is None:
            service.declared = declared_code(app, f"weft {typed.verb}")
        bulks = run_operations(service).bulks
        order = typed.order(service.clock.now_ms())
        plan = await bulks.plan(order)
        for note in await misspelt_attributes(service, order.filter.where) if not plan.matched else ():
            say(note)
        if not typed.json:
            _print_plan(plan, address)
        who = typed.by if typed.by is not None else login()
        wanted = _confirm(typed, plan)
        run = await bulks.start(plan, reason=typed.reason, by=who, review=typed.review) if wanted else None
        if typed.json:
            print_json({"store": url_without_password(address), **_bulk_document(plan), "run": run})
        elif run is not None:
            print(run, flush=True)
        if run is not None:
            await _say_who(service, RunId(run), typed.review)
            return 0
        return 0 if typed.dry_run or plan.matched == plan.unchanged else REFUSED


def _confirm(typed: TypedBulk, plan: BulkPlan) -> bool:
    """Return whether to go on after the dry run. Asks on a terminal."""
    if typed.dry_run or not plan.would_apply:
        return False
    if typed.apply:
        return True
    if not sys.stdin.isatty() or typed.json:
        say("nothing was changed. To do it, repeat the command with --apply.")
        return False
    return input(f"{typed.verb} {pluralize(plan.would_apply, 'run')}? [y/N] ").strip().lower() in ("y", "yes")


async def _say_who(service: RunService, run: RunId, review: Sequence[str]) -> None:
    if review:
        say(f"it waits until one of {', '.join(review)} agrees: weft decide {run}:{REVIEW} approve|reject")
    row = await service.row(run)
    if await is_acted_on(service, row):
        say(f"a host carries it out: weft watch {run}. weft pause, resume and cancel steer it.")
    else:
        await say_who(service, row, NO_HOST)


def _bulk_document(plan: BulkPlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in ("verb", "matched", "would_apply", "unchanged", "refused", "ids")}


def _print_plan(plan: BulkPlan, address: str) -> None:
    out = console()
    refused = sum(group.count for group in plan.refused)
    unchanged = f", {plan.unchanged:,} already so" if plan.unchanged else ""
    counts = f"{plan.would_apply:,} would apply{unchanged}, {refused:,} refused"
    out.print(f"{plan.verb}: {pluralize(plan.matched, 'run')}, {counts}. Store: {store_label(address)}.")
    if plan.refused:
        print_table(
            out,
            ("REFUSED", "STATUS", "CODE", "EXAMPLE", "WHY"),
            [(f"{one.count:,}", one.status, one.code, one.example, one.message) for one in plan.refused],
        )
