"""The command ``weft fork``: its options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import (
    AppFile,
    Apply,
    DryRun,
    Json,
    OfWorkflow,
    Review,
    Runs,
    Since,
    Url,
    Where,
    WithStatus,
)
from weft.cli.run_control_commands import steer

_PAIR = "KEY=VALUE"


def fork(
    runs: Runs = None,
    *,
    at: Annotated[str | None, typer.Option(metavar="SEQ", help="The last event that both runs share.")] = None,
    before: Annotated[str | None, typer.Option(metavar="PLACE", help="Or the point before it came to a place.")] = None,
    after: Annotated[str | None, typer.Option(metavar="PLACE", help="Or the point after that place.")] = None,
    failure: Annotated[bool, typer.Option("--failure", help="Or the point before what failed began.")] = False,
    visit: Annotated[str | None, typer.Option(metavar="N", help="Which visit of the place, else the last.")] = None,
    input: Annotated[list[str] | None, typer.Option(metavar=_PAIR, help="Change an argument.")] = None,
    set: Annotated[list[str] | None, typer.Option(metavar="PLACE=JSON", help="Set the result of a step.")] = None,
    state: Annotated[list[str] | None, typer.Option(metavar=_PAIR, help="Set a field of a graph's state.")] = None,
    given: Annotated[list[str] | None, typer.Option(metavar="FACT=VALUE", help="Give a fact to a goal run.")] = None,
    to: Annotated[str | None, typer.Option(metavar="VERSION", help="Go on with this version or tag.")] = None,
    effects: Annotated[
        str, typer.Option(metavar="perform|reuse|none", help="What to do with work that the original performed.")
    ] = "perform",
    approve: Annotated[
        list[str] | None, typer.Option(metavar="PLACE", help="Perform irreversible work there without asking.")
    ] = None,
    id: Annotated[str | None, typer.Option(metavar="ID", help="The id of the new run.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for its log.")] = "",
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    review: Review = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Make a new run that shares the past of another one up to a point, and goes on from there; or many."""
    from weft.cli.bulk import TypedBulk
    from weft.cli.forks import fork_run, read_order
    from weft.runtime.fork_order import changes_of

    for option, text in (("--at", at), ("--visit", visit)):
        if text is not None and not text.isdecimal():
            raise typer.BadParameter(f"{text!r} is not a number.", param_hint=option)
    order = read_order(
        at=at, before=before, after=after, failure=failure, visit=visit, input=input, set=set, state=state, given=given,
        to=to, effects=effects, approved=approve, id=id, reason=reason,
    )  # fmt: skip
    typed = TypedBulk(
        "fork", runs or [], workflow, status, since, where or [], reason, changes_of(order), dry_run, apply, json,
        review=review or [],
    )  # fmt: skip
    steer(typed, lambda run: fork_run(run, order, url=url, app=app, json=json), url, app, prints_json=True)
