"""Print the conversation of an agent's run."""

from __future__ import annotations

import msgspec
from rich.console import Console

from weft.cli.output import SafeText, console, print_json
from weft.cli.store_access import open_run
from weft.observe.conversation import AskedTurns, CallView, TurnView, read_conversation
from weft.observe.viewed_run import ViewedRun

TURNS_MAX = 1_000
SHOWN_CHARS = 400


async def print_conversation(run: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Print what an agent was asked, said and called, who approved what, and what it was told."""
    async with open_run(run, url, app) as (service, row):
        viewed = ViewedRun()
        await viewed.refresh(service, row)
        found = await read_conversation(service, row, viewed.log, AskedTurns(seq=viewed.log.seq, limit=TURNS_MAX))
        if json:
            print_json({"store": service.store.url, **msgspec.to_builtins(found)})
            return
        out = console()
        out.print(SafeText(f"{found.agent}, {row.id}", style="bold"))
        if found.system:
            _say(out, "system", found.system, "dim")
        _say(out, "user", found.prompt, "")
        for turn in found.turns:
            _print_turn(out, row.id, turn)


def _print_turn(out: Console, run: str, turn: TurnView) -> None:
    out.print()
    by = f"{turn.alias} ({turn.model})" if turn.model and turn.model != turn.alias else turn.alias
    tokens = f", {turn.input_tokens:,} + {turn.output_tokens:,} tokens" if turn.input_tokens else ""
    out.print(SafeText(f"turn {turn.number}  {by or 'asking the model'}{tokens}", style="dim"))
    for passed in turn.passed_models:
        out.print(SafeText(f"  {passed}", style="yellow"))
    if turn.text:
        _say(out, "agent", turn.text, "")
    for call in turn.calls:
        _print_call(out, run, call)


def _print_call(out: Console, run: str, call: CallView) -> None:
    out.print(SafeText(f"  {call.tool}({_short(call.arguments)})", style="cyan"))
    if call.approved is not None:
        word = "approved" if call.approved else "refused"
        why = f": {call.reason}" if call.reason else ""
        out.print(SafeText(f"    {word} by {', '.join(call.by) or 'nobody in time'}{why}", style="yellow"))
    elif call.status == "asked":
        out.print(SafeText(f"    waits for a person: weft decide {run}:{call.approval} approve|reject", style="yellow"))
    if call.child:
        out.print(SafeText(f"    run {call.child}", style="dim"))
    if call.result:
        style = "" if call.status == "done" else "red"
        out.print(SafeText(f"    {_short(call.result)}", style=style))
    elif call.status == "running":
        out.print(SafeText("    is being performed", style="dim"))


def _say(out: Console, who: str, text: str, style: str) -> None:
    out.print(SafeText(f"{who}: {text}", style=style))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."
