"""The commands that delete runs and keep them: their options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import (
    AppFile,
    Apply,
    DryRun,
    Json,
    OfWorkflow,
    Review,
    Run,
    Runs,
    Since,
    Url,
    Where,
    WithStatus,
)
from weft.cli.run_control_commands import steer


def delete(
    runs: Runs = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the audit table.")] = "",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who; else your login name.")] = None,
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Delete a run and all runs below it, or many such trees, for good. They must be over."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.retention import delete_run

    typed = TypedBulk(
        "delete", runs or [], workflow, status, since, where or [], reason, {}, dry_run, apply, json, by, review or []
    )
    steer(
        typed,
        lambda run: delete_run(run, reason=reason, by=by, url=url, app=app, json=json),
        url,
        app,
        prints_json=True,
    )


def keep(
    run: Run,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; without a reason the hold is shown.")] = "",
    end: Annotated[bool, typer.Option("--end", help="End the hold.")] = False,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who; else your login name.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Keep a run and its whole tree from deletion (a legal hold), or end that."""
    import asyncio

    from weft.cli.retention import keep_run

    asyncio.run(keep_run(run, reason=reason, end=end, by=by, url=url, app=app, json=json))


def gc(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    older: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Delete what ended longer ago, instead of by [tool.weft.retention]: 30d."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only runs with this attribute, or status=, workflow=, since=, prefix=; may be repeated.",
        ),
    ] = None,
    export: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write each tree to a bundle in this folder before deleting it.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the audit table.")] = "",
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Delete runs that need not be kept any longer, by [tool.weft.retention] or by their age."""
    import asyncio

    from weft.cli.retention import collect_garbage

    asyncio.run(
        collect_garbage(
            where or (), dry_run=dry_run, older=older, reason=reason, export=export, url=url, app=app, json=json
        )
    )
