"""The progress of a run: items of its maps, branches of its fan-outs, and work items of its goal steps."""

from __future__ import annotations

from weft.core.machine import Machine
from weft.observe.diagnosis import Progress
from weft.observe.styles import views_of

PLACES_MAX = 20


def progress_of(machine: Machine) -> list[Progress]:
    """Return the progress at each location with open items, the outermost locations first."""
    if machine.state.over:
        return []
    progress = views_of(machine.style.name).progress(machine)
    return sorted(progress, key=lambda item: item.place.count("/"))[:PLACES_MAX]
