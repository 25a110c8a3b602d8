"""Edit a fork of a code run before it goes on, and drop entries that its code no longer asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.asks import CodeRun
from weft.core.code.retry import loops_past
from weft.core.code.state import CodeIndex
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.core.run.fork import bad_edit, never_reached, places_hint


def decide_edit(code: CodeRun, command: c.EditRun, _: Env) -> Sequence[e.AnyEvent]:
    """Return the edits of a fork. Raises Refused, with all that is wrong."""
    index = code.style.index
    wrong = [f"a code run has no {what} to set" for what in ("state", "given") if getattr(command, what)]
    unknown = []
    for place in command.results:
        entry = index.find(place)
        if entry is not None and entry.kind != "step":
            wrong.append(f"{place} is a {entry.kind}; only the result of a step can be set")
        elif entry is None and (problem := never_reached(place, command)):
            unknown.append(problem)
    if wrong or unknown:
        hint = "Input, results of steps and the version can be changed: --input, --set and --to."
        raise bad_edit([*wrong, *unknown], hint=f"{hint} {places_hint(command.steps)}" if unknown else hint)
    edited = e.RunEdited(input=command.input, results=command.results, version=command.version, by=command.by)
    return (edited,)


def evolve_edited(index: CodeIndex, event: e.RunEdited) -> None:
    """Change the results of ended entries of a code run."""
    for place, value in event.results.items():
        entry = index.find(place)
        if entry is not None and entry.status in ("done", "failed"):
            entry.status, entry.output, entry.failure = "done", value, None


def decide_drop(code: CodeRun, command: c.DropEntries, _: Env) -> Sequence[e.AnyEvent]:
    """Drop an entry and all that began after it. Their work is asked for anew, and loops start again."""
    state, index = code.state, code.style.index
    dropped = [number for number in state.entries if number >= command.first]
    known = set(dropped)
    places = [state.entries[number].key for number in dropped]
    rewound = [number for number in loops_past(state, index, places) if number not in known]
    stopped = [
        e.EntryCancelled(entry=EntryId(number), child=state.children[number].uid if number in state.children else "")
        for number in dropped
        if state.entries[number].status == "open" and state.entries[number].kind != "loop"
    ]
    return (*stopped, e.EntriesDropped(dropped=[*dropped, *rewound]))
