"""The command ``weft schedule``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Input, Json, Url

_LIST = "list|add|next|trigger|backfill|pause|resume|remove"


def schedule(
    action: Annotated[str, typer.Argument(metavar=_LIST)] = "list",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The schedule.")] = "",
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORKFLOW [KEY=VALUE]...]", help="For add: what it starts, with arguments by name."),
    ] = None,
    *,
    cron: Annotated[str | None, typer.Option(metavar="FIELDS", help="When: five fields, as '0 9 * * MON-FRI'.")] = None,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="Or how often: 15m, 2h.")] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Such as Europe/Berlin; else UTC.")] = None,
    dst: Annotated[str | None, typer.Option(metavar="run|skip", help="A time that clocks skip.")] = None,
    overlap: Annotated[
        str | None, typer.Option(metavar="MODE", help="While a run is open: skip, queue, cancel_old or allow.")
    ] = None,
    catch_up: Annotated[
        str | None, typer.Option("--catch-up", metavar="TIME", help="How late a run starts: 1m, all.")
    ] = None,
    jitter: Annotated[str | None, typer.Option(metavar="TIME", help="Start up to this much later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="No times after this one.")] = None,
    pause_after: Annotated[
        str | None, typer.Option("--pause-after", metavar="N", help="Pause after so many failures in a row.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option(metavar="N", help="Of runs that wait, those with a higher priority come first.")
    ] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="TIME", help="For backfill: the first time.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="TIME", help="For backfill: the last time.")] = None,
    count: Annotated[str | None, typer.Option("-n", metavar="N", help="For next: how many times.")] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="For pause, resume and remove: why.")] = None,
    input: Input = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List, make and steer schedules: runs that start by themselves at fixed times."""
    import asyncio

    from weft.cli.schedules import ACTIONS, Typed, act_on_schedules

    if action not in ACTIONS:
        raise typer.BadParameter(f"{action!r} is none of {', '.join(ACTIONS)}.", param_hint=_LIST)
    if count is not None and not count.isdecimal():
        raise typer.BadParameter(f"{count!r} is not a number.", param_hint="-n")
    options = {
        "cron": cron,
        "every": every,
        "timezone": timezone,
        "dst": dst,
        "overlap": overlap,
        "catch_up": catch_up,
        "jitter": jitter,
        "until": until,
        "pause_after": pause_after,
        "priority": priority,
        "from": first,
        "to": last,
        "count": count,
        "reason": reason,
    }
    typed = Typed(name=name, words=words or (), options=options, input=input)
    asyncio.run(act_on_schedules(action, typed, url=url, app=app, json=json))
