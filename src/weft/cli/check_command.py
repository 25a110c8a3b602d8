"""The command ``weft check``: graphs before they run, and open runs before a deploy."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, OfWorkflow, Since, Url, WithStatus

_ONLY_LIVE = "only with --live."


def check(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Graph documents, or the app.py that has them.")
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Check every open run in the store against the code of the app instead.")
    ] = False,
    sample: Annotated[
        str | None, typer.Option(metavar="N", help="With --live: of runs that look alike, only N newest and N oldest.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="VERSION|FILE", help="With --live: try this patch on each run of a workflow.")
    ] = None,
    replan: Annotated[bool, typer.Option("--replan", help="With --live: plan goal runs again, as a trial.")] = False,
    save: Annotated[
        str | None, typer.Option(metavar="DIR", help="With --live: keep one bundle per group, for weft replay.")
    ] = None,
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Check graphs for deadlocks and loops without exit; with --live, open runs against this code.

    With --app, the steps and workflows that a document names are looked for in that app.
    """
    if live:
        import asyncio

        from weft.cli.live_check import TypedCheck, check_open_runs

        typed = TypedCheck(files or [], workflow, status, since, _count_of_runs(sample), to, replan, save)
        if asyncio.run(check_open_runs(typed, url=url, app=app, json=json)):
            raise typer.Exit(1)
        return
    only_live = {"sample": sample, "to": to, "replan": replan or None, "save": save, "workflow": workflow}
    for name, given in {**only_live, "status": status, "since": since, "url": url}.items():
        if given is not None:
            raise typer.BadParameter(_ONLY_LIVE, param_hint=f"--{name}")
    paths = files or ([app] if app is not None else [])
    if not paths:
        raise typer.BadParameter("name a graph document or an app.py, or use --live.", param_hint="FILE")
    from weft.cli.check import check_documents

    if check_documents(paths, app=app if files else None, json=json):
        raise typer.Exit(1)


def _count_of_runs(text: str | None) -> int:
    if text is None:
        return 0
    if not text.isascii() or not text.isdigit() or not int(text):
        raise typer.BadParameter(f"{text!r} is not a number of at least 1.", param_hint="--sample")
    return int(text)
