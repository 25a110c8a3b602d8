"""The commands ``weft export``, ``weft import`` and ``weft replay``: their options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run.")],
    *,
    tree: Annotated[bool, typer.Option("--tree", help="Also all runs below it.")] = False,
    streams: Annotated[bool, typer.Option("--streams", help="Also the output of steps.")] = False,
    out: Annotated[str | None, typer.Option("-o", "--out", metavar="FILE", help="Where to write it.")] = None,
    redact: Annotated[
        list[str] | None,
        typer.Option(metavar="POINTER", help="Leave out what this names in any event: /input/card; may be repeated."),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Move it with all runs below it: it ends here, and goes on where adopted.")
    ] = False,
    to: Annotated[str, typer.Option(metavar="TEXT", help="With --move: where it goes, for those who look here.")] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="With --move: why.")] = "",
    url: Url = None,
    app: AppFile = None,
    json: Annotated[bool, typer.Option("--json", help="One run without children as JSON, for replay.")] = False,
) -> None:
    """Write a run to a file: its log, definitions and large values, without secrets."""
    import asyncio

    from weft.cli.bundles import ExportOptions, export_run, move_run

    options = ExportOptions(tree, streams, out, redact or [], json)
    if move:
        asyncio.run(move_run(run, options, to=to, reason=reason, url=url, app=app))
    else:
        asyncio.run(export_run(run, options, url=url, app=app))


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A bundle that weft export wrote.")],
    *,
    adopt: Annotated[bool, typer.Option("--adopt", help="Go on with runs that were exported with --move.")] = False,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Read runs from a bundle. They can be looked at and forked; nothing goes on with them, unless adopted."""
    import asyncio

    from weft.cli.bundles import import_bundle

    asyncio.run(import_bundle(file, adopt=adopt, url=url, app=app, json=json))


def replay(
    file: Annotated[str, typer.Argument(metavar="FILE|RUN", help="A file that weft export wrote, or a run.")],
    *,
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Replay recorded runs with the code of the app, performing nothing."""
    from weft.cli.replay import replay_file

    raise typer.Exit(replay_file(file, url=url, app=app))
