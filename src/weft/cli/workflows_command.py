"""The command ``weft workflows``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url

_WORDS = "[NAME] | show NAME[:TAG] | tag NAME [TAG [VERSION]] | patch NAME[:TAG] FILE"


def workflows(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=_WORDS,
            help="A workflow whose versions are listed; a version whose document is printed; a tag: where it "
            "stands, or the version that it names from now on; or a patch, or a whole graph document, that makes a "
            "version and lets the tag (main) name it.",
        ),
    ] = None,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Take the tag back to before its last move.")] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Repeat the move that was undone last.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.")] = "",
    all: Annotated[bool, typer.Option("--all", help="Also versions that only a patch of a run made.")] = False,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List workflows with their versions, tags and open runs; make versions, move tags."""
    import asyncio

    from weft.cli.workflows import WorkflowsRequest, act_on_workflows

    request = WorkflowsRequest(words=words or [], undo=undo, redo=redo, reason=reason, all=all)
    asyncio.run(act_on_workflows(request, url=url, app=app, json=json))
