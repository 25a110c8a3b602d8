"""The command ``weft models``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url


def models(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[list] | ping [NAME]...",
            help="List the models of the app and of living hosts, or ask those of the app whether they answer.",
        ),
    ] = None,
    *,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List language models, or see whether they answer."""
    import asyncio

    from weft.cli.models import act_on_models

    asyncio.run(act_on_models(words or [], url=url, app=app, json=json))
