"""Errors about divergence: the code asks for something other than the log has."""

from __future__ import annotations

from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.state import CodeState, Entry
from weft.errors import BadValue, Diverged
from weft.runtime.call_format import added_arguments, format_call
from weft.steps.misfits import Misfit


def divergence_error(run_id: str, location: str, recorded: str, asked: str, new: str = "") -> Diverged:
    """Make the error about a divergence: where it is, what was recorded, what the code asks for, and what to do.

    ``new``: arguments that only the code has.
    """
    new_hint = f" New parameter: give {new} a default and leave it out here, then weft resume {run_id}." if new else ""
    return Diverged(
        f"{run_id} stopped for you: at `{location}` it has {recorded}, the code now asks for {asked}. "
        "Nothing was undone.",
        hint=f"Old code: weft resume {run_id} after putting it back. "
        f"On purpose: `await ctx.version(…)`, or weft retry {run_id} --from {location}.{new_hint}",
        location=location,
        recorded=recorded,
        asked=asked,
    )


def misfit_error(run_id: str, location: str, misfit: Misfit) -> Diverged:
    """Make the error about a recorded value that does not have its type: the code was changed, or a person set it."""
    return Diverged(
        f"{run_id} stopped for you: the value recorded at `{location}` does not have the type that the code expects "
        f"({misfit.clause()}). Nothing was undone.",
        hint=f"If the value is wrong: weft set {run_id} {location} --output JSON, or weft retry {run_id} --from "
        f"{location}. If the code is wrong, correct it. Then: weft resume {run_id}",
        location=location,
        recorded=f"a value of another type ({misfit.clause()})",
        asked="the type that the code expects",
    )


def is_droppable(state: CodeState, entry: Entry, committed: int) -> bool:
    """Return whether an entry that does not fit may be dropped, because a fork shares it with its original.

    Once work of the fork itself is durable, a difference is a divergence as in every run.
    """
    fork = state.fork
    if fork is None or entry.id > fork.point:
        return False
    own = next((number for number in state.entries if number > fork.point), None)
    return own is None or own > committed


def other_parameters(state: CodeState, misfit: BadValue) -> Diverged:
    """Make the error about a function that no longer takes the input of its run."""
    run = state.run_id
    return Diverged(
        f"{run} stopped for you: the workflow {state.workflow} no longer takes the input this run started with: "
        f"{misfit.message} Nothing was undone.",
        hint=f"{misfit.hint} Then: weft resume {run}. Or start again: weft cancel {run}, then "
        f"weft start {state.workflow} --input FILE",
        location="",
        recorded="the input of its start",
        asked="other parameters",
    )


def other_arguments(run_id: str, location: str, recorded: bytes, asked: bytes, where: str) -> Diverged:
    """Make the error about a call whose arguments differ from the recorded ones. It names both."""
    given = bytes(getattr(e.decode(recorded), "input", e.NULL))
    new = ", ".join(added_arguments(given, asked))
    there = f"a recorded result for {format_call('', given)}"
    return divergence_error(run_id, location, there, f"{format_call('', asked)}{where}", new)


def map_item(machine: CodeMachine, location: str) -> str:
    """Return a note if the location is in an item of a map, because the items may have changed."""
    parts = location.split("/")
    for place in range(len(parts) - 1, 0, -1):
        around = "/".join(parts[:place])
        entry = machine.lookup(around) if parts[place].startswith("~") else None
        if entry is not None and entry.kind == "map":
            return f" (item {parts[place][1:]} of the map `{around}`, which may go over other items now)"
    return ""
