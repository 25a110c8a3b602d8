"""How far a run is with many things of a kind: items of a map, branches of a fan-out, work items of a goal step."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from weft.core.code.machine import CodeMachine
from weft.core.decider import Machine
from weft.core.goal.machine import GoalMachine
from weft.core.graph.machine import GraphMachine

PLACES_MAX = 20


class Progress(msgspec.Struct, frozen=True):
    """``done`` of ``total`` at a place of a run: a map, the join or opener of a fan-out, a goal step."""

    place: str
    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.place} {self.done:,} of {self.total:,}"


def progress_of(machine: Machine) -> list[Progress]:
    """What is under way, the outermost places first."""
    if machine.state.over:
        return []
    if isinstance(machine, CodeMachine):
        found = list(_maps(machine))
    elif isinstance(machine, GraphMachine):
        found = list(_fan_outs(machine))
    elif isinstance(machine, GoalMachine):
        found = list(_work_items(machine))
    else:
        found = []
    return sorted(found, key=lambda one: one.place.count("/"))[:PLACES_MAX]


def _maps(machine: CodeMachine) -> Iterator[Progress]:
    """A branch is under way while something in it is open: what ends one thing and begins the next is one append."""
    entries = machine.state.entries
    for entry in entries.values():
        scope = machine.index.scopes.get(f"{entry.key}/") if entry.kind == "map" else None
        if scope is None:
            continue
        open_ = [
            any(number in entries and entries[number].status == "open" for number in machine.index.below(branch))
            for branch in scope.scopes
        ]
        if any(open_):
            yield Progress(entry.key, len(open_) - sum(open_), msgspec.json.decode(entry.output, type=int))


def _fan_outs(machine: GraphMachine) -> Iterator[Progress]:
    places: dict[str, tuple[int, int]] = {}
    for frame in machine.state.frames.values():
        if not frame.fired:
            place = frame.fan_in or frame.opener
            done, total = places.get(place, (0, 0))
            places[place] = (done + frame.settled, total + frame.total)
    for place, (done, total) in places.items():
        yield Progress(place, done, total)


def _work_items(machine: GoalMachine) -> Iterator[Progress]:
    for step, run in machine.state.steps.items():
        if run.status == "active" and run.fan_out:
            yield Progress(step, run.items - run.left, run.items)
