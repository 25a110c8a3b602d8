"""The commands ``weft cancel``, ``pause``, ``resume`` and ``retry``, for one run or for many."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import (
    AppFile,
    Apply,
    BulkJson,
    DryRun,
    OfWorkflow,
    Reason,
    Review,
    Runs,
    Since,
    Url,
    Where,
    WithStatus,
)

if TYPE_CHECKING:
    from weft.cli.bulk import TypedBulk


def cancel(
    runs: Runs = None,
    *,
    reason: Reason = "",
    force: Annotated[bool, typer.Option("--force", help="End it without waiting for its code.")] = False,
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: BulkJson = False,
) -> None:
    """Stop a run, or many; what they did is undone, newest first."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.run_control import cancel_run

    options = {"force": True} if force else {}
    typed = TypedBulk(
        "cancel",
        runs or [],
        workflow,
        status,
        since,
        where or [],
        reason,
        options,
        dry_run,
        apply,
        json,
        review=review or [],
    )
    steer(typed, lambda run: cancel_run(run, reason=reason, force=force, url=url, app=app), url, app)


def pause(
    runs: Runs = None,
    *,
    reason: Reason = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: BulkJson = False,
) -> None:
    """Start no new work in a run, or in many, until they are resumed."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.run_control import pause_run

    typed = TypedBulk(
        "pause", runs or [], workflow, status, since, where or [], reason, {}, dry_run, apply, json, review=review or []
    )
    steer(typed, lambda run: pause_run(run, reason=reason, url=url, app=app), url, app)


def resume(
    runs: Runs = None,
    *,
    reason: Reason = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: BulkJson = False,
) -> None:
    """Continue runs that are paused, or were held for a person."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.run_control import resume_run

    typed = TypedBulk(
        "resume",
        runs or [],
        workflow,
        status,
        since,
        where or [],
        reason,
        {},
        dry_run,
        apply,
        json,
        review=review or [],
    )
    steer(typed, lambda run: resume_run(run, reason=reason, url=url, app=app), url, app)


def retry(
    runs: Runs = None,
    *,
    place: Annotated[str, typer.Option("--from", metavar="PLACE", help="Repeat everything from this place on.")] = "",
    approve: Annotated[
        list[str] | None,
        typer.Option("--approve", metavar="PLACE", help="Perform irreversible work there without asking."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Give up irreversible work that is in flight there.")] = False,
    reason: Reason = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: BulkJson = False,
) -> None:
    """Retry a failed run, or many; what they have recorded is not repeated."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.run_control import TypedRetry, retry_run

    said: dict[str, Any] = {"start": place, "approved": approve, "force": force}
    options = {name: value for name, value in said.items() if value}
    one = TypedRetry(place, approve or [], force, reason)
    typed = TypedBulk(
        "retry",
        runs or [],
        workflow,
        status,
        since,
        where or [],
        reason,
        options,
        dry_run,
        apply,
        json,
        review=review or [],
    )
    steer(typed, lambda run: retry_run(run, one, url=url, app=app), url, app)


def steer(
    typed: TypedBulk,
    one: Callable[[str], Coroutine[Any, Any, None]],
    url: str | None,
    app: str | None,
    *,
    prints_json: bool = False,
) -> None:
    """Do it to the one run that was named, or start a bulk. ``prints_json``: the verb has a document for one run."""
    if typed.is_single() and (prints_json or not typed.json):
        import asyncio

        asyncio.run(one(typed.runs[0]))
    else:
        steer_many(typed, url, app)


def steer_many(typed: TypedBulk, url: str | None, app: str | None) -> None:
    """Print the dry run of a bulk, and start it if that is wanted."""
    import asyncio

    from weft.cli.bulk import run_bulk

    code = asyncio.run(run_bulk(typed, url=url, app=app))
    if code:
        raise typer.Exit(code)
