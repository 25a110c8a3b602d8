"""The command ``weft patch``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Apply, Json, OfWorkflow, Review, Since, Url, Where, WithStatus
from weft.cli.run_control_commands import steer_many


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
    wait: Annotated[str, typer.Option(metavar="TIME", help="If it is not allowed now, try again: 2h.")] = "",
    at: Annotated[str, typer.Option(metavar="NODE", help="With --wait: until all tokens are at this node.")] = "",
    withdraw: Annotated[
        str, typer.Option(metavar="N", help="Drop the patch with this number, which waits; 0: the only one.")
    ] = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Change the definition that a run follows, from where it stands; or that of many."""
    import asyncio

    from weft.cli.bulk import TypedBulk
    from weft.cli.patches import TypedPatch, patch_options, patch_run, withdraw_patch

    runs = list(words or [])
    file = runs.pop() if runs and not (to or undo or redo or withdraw) else None
    if [file is not None, bool(to), undo, redo, bool(withdraw)].count(True) != 1:
        raise typer.BadParameter("give one of FILE, --to, --undo, --redo and --withdraw.", param_hint="FILE")
    if ends and not (undo or redo):
        raise typer.BadParameter('write "ends: true" in the patch itself.', param_hint="--ends")
    how = {"expect": expect, "reason": reason, "wait": wait, "at": at}
    typed = TypedPatch(
        file=file, to=to, undo=undo or redo, redo=redo, ends=ends, dry_run=dry_run, review=review or [], **how
    )
    is_single = len(runs) == 1 and not (workflow or status or since or where or apply)
    if not is_single and (wait or at or withdraw):
        raise typer.BadParameter("this is for one run at a time.", param_hint="--wait, --at, --withdraw")
    if withdraw:
        asyncio.run(withdraw_patch(runs[0], _patch_number(withdraw), reason=reason, url=url, app=app, json=json))
        return
    if is_single:
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


def _patch_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter("give the number of the patch.", param_hint="--withdraw")
    return int(text)
