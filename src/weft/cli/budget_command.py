"""The command ``weft budget``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Reason, Run, Url


def budget(
    run: Run,
    *,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", metavar="UNIT=AMOUNT", help="Raise a limit: money=1, tokens=5000, tool:NAME=2."),
    ] = None,
    reason: Reason = "",
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Show what a run and everything below it have spent and what is left, or raise its budget."""
    import asyncio

    from weft.cli.budgets import print_usage, raise_limits

    if add:
        asyncio.run(raise_limits(run, add, reason=reason, url=url, app=app, json=json))
    else:
        asyncio.run(print_usage(run, url=url, app=app, json=json))
