"""The command ``weft policy``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url

_WORDS = "show [VERSION] | set FILE | test ACTION NAME"


def policy(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=_WORDS,
            help="Print the policy that holds, or an earlier version; set a new one from a file (- reads it from "
            "standard input); or say what it says about an action (tool, model, host, secret, step, workflow, route, "
            "patch).",
        ),
    ] = None,
    *,
    history: Annotated[bool, typer.Option("--history", help="List all versions.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is set; kept with the version.")] = "",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who sets it; else your login name.")] = None,
    who: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="KIND:NAME", help="Who would do it: agent:support, tenant:acme; may be repeated."),
    ] = None,
    args: Annotated[str | None, typer.Option(metavar="JSON", help="The arguments of the tool.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Show what is permitted, set it, or test what it says."""
    import asyncio

    from weft.cli.policy import PolicyRequest, act_on_policy

    request = PolicyRequest(words=words or [], history=history, reason=reason, by=by, who=who or [], args=args)
    code = asyncio.run(act_on_policy(request, url=url, app=app, json=json))
    if code:
        raise typer.Exit(code)
