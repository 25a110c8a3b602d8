"""How far a run is with many things of a kind: items of a map, branches of a fan-out, work items of a goal step."""

from __future__ import annotations

from weft.core.decider import Machine
from weft.observe.diagnosis import Progress
from weft.observe.styles import views_of

PLACES_MAX = 20


def progress_of(machine: Machine) -> list[Progress]:
    """Return what is under way, the outermost places first."""
    if machine.state.over:
        return []
    found = views_of(machine.style.name).progress(machine)
    return sorted(found, key=lambda one: one.place.count("/"))[:PLACES_MAX]
