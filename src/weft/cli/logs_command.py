"""The options of ``weft logs``."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Run, Url


def logs(
    run: Run,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Also print new lines until the run is over.")] = False,
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="Only lines of at least this level: info, warning, error, critical.")
    ] = "debug",
    place: Annotated[str | None, typer.Option(metavar="PLACE", help="Only lines of this place in the run.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object per line.")] = False,
) -> None:
    """Print what the steps of a run printed and logged."""
    import asyncio

    from weft.cli.step_logs import print_logs
    from weft.observe.step_logs import LEVELS
    from weft.ports.step_logs import LogQuery

    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is not one of {', '.join(LEVELS)}.", param_hint="--level")
    query = LogQuery(level=LEVELS[level] if level != "debug" else 0, place=place)
    asyncio.run(print_logs(run, query, follow=follow, url=url, app=app, json=json))
