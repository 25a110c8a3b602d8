"""The command ``weft status``: its options and one line about it."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url


def status(
    *,
    acknowledge_losses: Annotated[
        bool, typer.Option("--acknowledge-losses", help="Show what was lost with Redis so far no longer.")
    ] = False,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Show where the store is, its size, how many runs it has, and what was lost with Redis."""
    import asyncio

    if acknowledge_losses:
        from weft.cli.losses import acknowledge

        asyncio.run(acknowledge(url=url, app=app, json=json))
        return
    from weft.cli.run_list import print_status

    asyncio.run(print_status(url=url, app=app, json=json))
