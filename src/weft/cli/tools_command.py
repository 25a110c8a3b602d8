"""The command ``weft tools``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url

_WORDS = "list | accept NAME or SERVER | discard NAME | rename NAME NEW"


def tools(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=_WORDS,
            help="List the tools that were made of pipelines, let agents call one, let none call it any more, or give "
            "it another name.",
        ),
    ] = None,
    *,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="The tenant whose tools these are.")] = "",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who changes it; else your login name.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List the tools that agents made of pipelines, accept, discard or rename them."""
    import asyncio

    from weft.cli.tools import ToolCommand, act_on_tools

    asyncio.run(act_on_tools(ToolCommand(words=words or [], tenant=tenant, by=by), url=url, app=app, json=json))
