"""Retry a code run, or set a result in it: drop entries, so that the code performs them again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.code.state import CodeIndex, CodeState, Entry
from weft.core.ids import EntryId
from weft.core.run import by_hand
from weft.core.run.repeats import child_in_doubt, irreversible_in_flight, is_in_doubt, outcome_unknown
from weft.errors import NotFound, Refused

_encode = msgspec.json.Encoder().encode


def is_kept(entry: Entry) -> bool:
    """Return whether a retry keeps the result of an entry, because its step must not be performed twice."""
    return bool(entry.once) and entry.status == "done"


def _repeated_work(state: CodeState, dropped: Sequence[int], first: int) -> dict[str, e.Earlier]:
    """Return the work that may be repeated: the dropped steps, and those kept after ``first``.

    The code may ask for a kept step with another input, which is new work.
    """
    numbers, undone = set(dropped), set(state.undone)
    return {
        entry.key: e.Earlier(entry.key, state.renewed.get(entry.key, 0), entry.digest, step=entry.once)
        for number, entry in state.entries.items()
        if entry.kind == "step"
        and entry.key not in undone
        and (number in numbers or (number > first and is_kept(entry)))
    }


def decide_retry(state: CodeState, index: CodeIndex, command: c.RetryRun) -> Sequence[e.AnyEvent]:
    """Drop the entries that failed, were cancelled or were undone, so that they are performed again.

    With ``start``, all entries from that place on are dropped too, except the results of irreversible steps.
    """
    first = _first_at(state, index, command.start) if command.start else 0
    undone = set(state.undone)
    dropped = [
        number
        for number, entry in state.entries.items()
        if entry.status in ("failed", "cancelled")
        or entry.key in undone
        or (first and number >= first and not is_kept(entry))
    ]
    forced = _in_flight(state, dropped)
    if forced and not command.force:
        raise irreversible_in_flight(state, forced)
    _check_children(state, dropped, command)
    places = [*state.undone, *(state.entries[number].key for number in dropped)]
    known = set(dropped)
    rewound = [number for number in loops_past(state, index, places) if number not in known]
    all_dropped = [*dropped, *rewound]
    retried = e.RunRetried(
        dropped=all_dropped, earlier=_repeated_work(state, all_dropped, min(all_dropped, default=0)), forced=forced
    )
    return (*_stop_all(state, dropped, forced), retried)


def _check_children(state: CodeState, numbers: Iterable[int], command: c.RetryRun) -> None:
    """Raise Refused if a child run would be repeated that failed with a step that must not be performed twice."""
    entries = [state.entries[number] for number in numbers]
    doubtful = [entry.key for entry in entries if entry.kind == "child" and is_in_doubt(entry.failure)]
    places = [place for place in doubtful if place not in command.approved]
    if places and not command.force:
        advice = f"To set its result: weft set {state.run_id} {places[0]} --output JSON. "
        raise child_in_doubt(state, places, advice)


def _in_flight(state: CodeState, numbers: Iterable[int]) -> list[EntryId]:
    """Return the irreversible tasks among these that a worker may be performing."""
    tasks = state.tasks
    return [EntryId(n) for n in numbers if n in tasks and tasks[n].policy.effect == "irreversible"]


def _first_at(state: CodeState, index: CodeIndex, place: str) -> int:
    """Return the first entry at or below a place, or the loop entry if the place is in a round that was removed."""
    number_here = index.keys.get(place)
    entries: list[int] = index.below(f"{place}/")
    if number_here is not None:
        entries.append(number_here)
    if entries:
        return min(entries)
    segments = place.split("/")
    for at, segment in enumerate(segments):
        number = index.keys.get("/".join(segments[:at])) if segment[:1] == "~" and segment[1:].isdigit() else None
        loop = state.entries[number] if number is not None else None
        if loop is not None and loop.kind == "loop" and (loop.status == "done" or loop.round > int(segment[1:])):
            return _first_at(state, index, loop.key)
    raise NotFound(
        f"{state.run_id} has recorded nothing at {place[:60]!r}.",
        hint=f"To see the recorded places: weft show {state.run_id}",
    )


def loops_past(state: CodeState, index: CodeIndex, places: Sequence[str]) -> list[int]:
    """Return the loops that have moved past one of these places.

    A retry starts them again and replays the rounds that are still recorded.
    """
    loops: dict[int, None] = {}
    for place in places:
        segments = place.split("/")
        for at, segment in enumerate(segments):
            number = index.keys.get("/".join(segments[:at])) if segment[:1] == "~" else None
            if number is None:
                continue
            loop = state.entries[number]
            if loop.kind == "loop" and (loop.status == "done" or loop.round > int(segment[1:])):
                loops[number] = None
    return list(loops)


SETTABLE = ("step", "child", "ask", "now", "random", "uuid")
"""The kinds of finished entries whose result can be set."""
_RESTING = ("paused", "held", "failed")


def decide_set_ended(state: CodeState, index: CodeIndex, command: c.SetResult) -> Sequence[e.AnyEvent]:
    """Replace the result of an entry that has ended. Everything that began after it is repeated."""
    entry = index.find(command.place)
    if entry is None:
        raise by_hand.nothing_open(state, command.place)
    if entry.kind not in SETTABLE or (entry.kind not in ("step", "child") and command.error):
        hint = f"weft retry {state.run_id} --from {command.place}"
        raise Refused(f"{command.place!r} is a {entry.kind} of {state.run_id}; it cannot be set like this.", hint=hint)
    if state.status not in _RESTING:
        hint = f"weft pause {state.run_id}"
        raise Refused(f"{command.place!r} has ended, and {state.run_id} is running. Pause the run first.", hint=hint)
    return _set_finished(state, index, entry, command)


def _set_finished(state: CodeState, index: CodeIndex, entry: Entry, command: c.SetResult) -> Sequence[e.AnyEvent]:
    is_output = by_hand.check_given(command)
    output = command.output
    if is_output and entry.kind == "ask":
        output = Raw(_encode(_decision_by_hand(command, state.at)))
    dropped = [number for number, one in state.entries.items() if number > entry.id and not is_kept(one)]
    forced = _in_flight(state, dropped)
    if forced and not command.force:
        raise irreversible_in_flight(state, forced)
    known = set(dropped)
    places = [state.entries[number].key for number in dropped]
    rewound = [number for number in loops_past(state, index, places) if number not in known]
    event = e.ResultSet(
        entry=entry.id,
        output=output if is_output else e.ABSENT,
        failure=None if is_output else by_hand.failure_by_hand(command, entry.key),
        dropped=[*dropped, *rewound],
        earlier=_repeated_work(state, [*dropped, *rewound], entry.id),
        forced=forced,
        performed=command.performed,
        reason=command.reason,
        by=command.by,
    )
    return (*_stop_all(state, dropped, forced), event)


def _decision_by_hand(command: c.SetResult, at: int) -> dict[str, Any]:
    given = by_hand.read_decision(command)
    by = [command.by] if command.by else []
    reason = str(given.get("reason") or command.reason)
    return {"approved": given["approved"], "by": by, "reason": reason, "form": given.get("form"), "at": at}


def _stop_all(state: CodeState, dropped: Sequence[int], forced: Sequence[EntryId]) -> list[e.AnyEvent]:
    """Return the events that give up irreversible tasks in flight, and stop everything else that is dropped."""
    stopped: list[e.AnyEvent] = [outcome_unknown(number, state.tasks[number]) for number in forced]
    for number in dropped:
        entry = state.entries[number]
        if entry.status == "open" and entry.kind != "loop" and number not in forced:
            child = state.children.get(number)
            stopped.append(e.EntryCancelled(entry=EntryId(number), child=child.uid if child is not None else ""))
    return stopped
