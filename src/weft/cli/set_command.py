"""The command ``weft set``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Reason, Run, Url


def set_(
    run: Run,
    place: Annotated[str, typer.Argument(metavar="PLACE", help="The place in the run, as weft show prints it.")],
    *,
    output: Annotated[str | None, typer.Option("--output", metavar="JSON", help="The result.")] = None,
    error: Annotated[str | None, typer.Option("--error", metavar="TEXT", help="Or why it failed.")] = None,
    performed: Annotated[
        bool, typer.Option("--performed", help="Somebody did the work: undo it if the run fails.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Give up irreversible work that is in flight there.")] = False,
    reason: Reason = "",
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """End the work at a place of a run by hand, or replace a recorded result."""
    import asyncio

    from weft.cli.by_hand import TypedResult, set_by_hand

    if (output is None) == (error is None):
        raise typer.BadParameter("give one of --output and --error.", param_hint="--output")
    typed = TypedResult(place, output, error or "", performed=performed, force=force, reason=reason)
    asyncio.run(set_by_hand(run, typed, url=url, app=app, json=json))
