"""Delete runs, one or all that are old, and keep them from deletion."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from weft.cli.login import login
from weft.cli.operations import remote_of, run_operations
from weft.cli.output import print_json
from weft.cli.run_list import PAGE_MAX, TypedRunFilter
from weft.cli.store_access import open_run, open_service
from weft.core.plurals import pluralize
from weft.errors import UsageError
from weft.ports.run_query import RunQuery
from weft.runtime.bundles.tree_archive import TreeArchive
from weft.runtime.deletion import DeletionService, LegalHold
from weft.runtime.retention import NOT_EXPORTED, Collector, GcOrder
from weft.runtime.retention_pace import Rest
from weft.runtime.retention_policy import project_retention_policy, single_policy

_SHARE = 1
"""``weft gc`` deletes half of the time, and leaves the store to the hosts for the other half."""
_WHY = {
    "open": "a run of the tree is open",
    "kept": "a hold lies on them",
    "too_young": "a run of the tree ended later",
    "unsettled": "a completed run has open dead letters; see weft dlq",
    "named": "an open run was forked from them",
    "keep_last": "they are among the last of their workflow (keep_last)",
    "not_root": "they belong to another tree",
    NOT_EXPORTED: "they could not be exported; the log says why",
}
"""Why a tree that is old enough is not deleted."""


async def delete_run(run: str, *, reason: str, by: str | None, url: str | None, app: str | None, json: bool) -> None:
    """Delete a run and all runs below it."""
    async with open_run(run, url, app) as (service, row):
        deleted = await run_operations(service).run_handle(row.id).delete(reason, by=login() if by is None else by)
    if json:
        print_json(deleted)
        return
    below = f" and {pluralize(deleted.runs - 1, 'run')} below it" if deleted.runs > 1 else ""
    letters = f", with dead letters of {pluralize(deleted.dead_letters, 'run')}" if deleted.dead_letters else ""
    print(f"{deleted.id}{below} deleted: {pluralize(deleted.events, 'event')}{letters}")


async def keep_run(
    run: str, *, reason: str, end: bool, by: str | None, url: str | None, app: str | None, json: bool
) -> None:
    """Put a hold on the tree of a run, end it, or show it."""
    who = login() if by is None else by
    async with open_run(run, url, app) as (service, row):
        handle, before = run_operations(service).run_handle(row.id), await DeletionService(service).hold(row.id)
        if end:
            hold = await handle.end_keep(reason, by=who)
        elif reason:
            hold = await handle.keep(reason, by=who)
        else:
            hold = before
    if json:
        print_json(hold)
    else:
        print(f"The hold on {hold.id} and all runs below it has ended." if end and before.kept else _sentence(hold))


def _sentence(hold: LegalHold) -> str:
    if not hold.kept:
        return f'{hold.id} is not kept. To keep it: weft keep {hold.id} --reason "…"'
    since = datetime.fromtimestamp((hold.at or 0) / 1000, UTC)
    who = f" by {hold.by}" if hold.by else ""
    return f"{hold.id} and all runs below it are kept{who} since {since:%Y-%m-%d %H:%M:%SZ}: {hold.reason}"


async def collect_garbage(
    where: Sequence[str],
    *,
    dry_run: bool,
    older: str | None,
    reason: str,
    export: str | None,
    url: str | None,
    app: str | None,
    json: bool,
) -> None:
    """Delete what need not be kept any longer. Raises UsageError if nothing says what that is."""
    policy = project_retention_policy() if older is None else single_policy(older)
    if not policy.is_set:
        raise UsageError(
            "Nothing says how long runs are kept.",
            hint='Set [tool.weft.retention] completed = "90d" in pyproject.toml, or use weft gc --older 90d.',
        )
    async with open_service(url, app) as service:
        if remote_of(service) is not None and not dry_run:
            raise UsageError(
                "weft gc deletes beside the store; through a server it only counts.",
                hint="Add --dry-run, or let the server collect: [tool.weft.retention] in its pyproject.toml.",
            )
        order = GcOrder(
            policy=policy,
            where=_query(where, service.clock.now_ms()),
            dry_run=dry_run,
            by=login(),
            reason=reason or "weft gc",
            export=TreeArchive(service, Path(export)).keep if export is not None else None,
        )
        rest = Rest(service.clock, _SHARE)
        report = await Collector(service.store, service.clock, pause=rest.take).collect(order)
    if json:
        print_json(report)
        return
    done = "would be deleted" if report.dry_run else "deleted"
    runs, trees, events = (
        pluralize(number, noun)
        for number, noun in ((report.runs, "run"), (report.trees, "tree"), (report.events, "event"))
    )
    print(f"{runs} in {trees} {done}: {events}")
    if report.chunks or report.blobs or report.versions:
        print(f"{report.chunks:,} chunks of output, {report.blobs:,} blobs and {report.versions:,} versions deleted")
    for kind, count in sorted(report.kept.items()):
        print(f"Trees that stay: {count:,} ({_WHY[kind]})")


def _query(where: Sequence[str], now: int) -> RunQuery | None:
    if not where:
        return None
    found = TypedRunFilter(None, None, None, where, PAGE_MAX, None, internal=True).found(now)
    if found.parent is not None:
        raise UsageError("Only whole trees are deleted, so --where parent= finds nothing.", hint="Leave it out.")
    return RunQuery(
        workflow=found.workflow,
        status=found.status,
        since=found.since,
        id_prefix=found.prefix,
        where=found.where,
        internal=True,
    )
