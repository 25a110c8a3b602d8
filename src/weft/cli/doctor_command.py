"""The command ``weft doctor``: its options and one line about it."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url


def doctor(
    *,
    port: Annotated[str, typer.Option(metavar="N", help="The port that weft serve would use.")] = "8420",
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Say what is wrong with this installation: versions, settings, store, clock, disk, port, hosts."""
    from weft.cli.doctor import examine

    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise typer.BadParameter(f"{port!r} is not a port.", param_hint="--port")
    if not examine(int(port), url=url, app=app, json=json):
        raise typer.Exit(1)
