"""The command ``weft diff``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url

_WHAT = "A run, a version (WORKFLOW@VERSION, WORKFLOW:TAG) or a file."


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=_WHAT)],
    b: Annotated[str, typer.Argument(metavar="B", help="The other one.")],
    *,
    at_a: Annotated[str | None, typer.Option("--at-a", metavar="SEQ", help="Only the events up to this one.")] = None,
    at_b: Annotated[str | None, typer.Option("--at-b", metavar="SEQ", help="The same for B.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Compare two runs, place by place, or two versions. Exits with 1 if they differ."""
    import asyncio

    from weft.cli.diffs import print_diff

    for option, text in (("--at-a", at_a), ("--at-b", at_b)):
        if text is not None and not text.isdecimal():
            raise typer.BadParameter(f"{text!r} is not a number.", param_hint=option)
    points = [None if text is None else int(text) for text in (at_a, at_b)]
    code = asyncio.run(print_diff(a, b, at_a=points[0], at_b=points[1], url=url, app=app, json=json))
    if code:
        raise typer.Exit(code)
