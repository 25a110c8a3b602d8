"""The command ``weft patch``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, OfWorkflow, Review, Since, Url, Where, WithStatus
from weft.cli.steer_commands import steer_many


def patch(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]... [FILE]", help="Runs, then the patch as YAML or JSON; - is stdin."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    expect: Annotated[str, typer.Option(metavar="DIGEST", help="Apply only the plan with this digest.")] = "",
    to: Annotated[str, typer.Option(metavar="VERSION", help="Follow this version or tag.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last patch.")] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Take back the last undo.")] = False,
    ends: Annotated[bool, typer.Option("--ends", help="An undo or redo may complete a goal run.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.")] = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    apply: Annotated[bool, typer.Option("--apply", help="For many runs: do it without asking.")] = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Change the definition that a run follows, from where it stands; or that of many."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.patches import TypedPatch, patch_options, patch_run

    runs = list(words or [])
    file = runs.pop() if runs and not (to or undo or redo) else None
    if [file is not None, bool(to), undo, redo].count(True) != 1:
        raise typer.BadParameter("give one of FILE, --to, --undo and --redo.", param_hint="FILE")
    if ends and not (undo or redo):
        raise typer.BadParameter('write "ends: true" in the patch itself.', param_hint="--ends")
    undo, way = undo or redo, {"expect": expect, "reason": reason}
    typed = TypedPatch(file=file, to=to, undo=undo, redo=redo, ends=ends, dry_run=dry_run, **way)
    filtered = bool(workflow or status or since or where)
    if len(runs) == 1 and not (filtered or apply or review):
        import asyncio

        asyncio.run(patch_run(runs[0], typed, url=url, app=app, json=json))
        return
    if expect:
        raise typer.BadParameter(
            "many runs have a plan each; it is applied as the dry run shows it.", param_hint="--expect"
        )
    options = patch_options(typed)
    many = TypedBulk(
        "patch", runs, workflow, status, since, where or [], reason, options, dry_run, apply, json, review=review or []
    )
    steer_many(many, url, app)
