"""Until when a run only waits, as its row says it: whoever takes over from a dead host need not load it before."""

from __future__ import annotations

from weft.core.decider import Machine
from weft.core.effects import ArmTimer
from weft.core.ids import Millis
from weft.ports.store import NEVER

WAITS_MAX = 100
"""With more open waits, looking for the earliest would cost every append too much."""


def idle_until(machine: Machine) -> Millis | None:
    """When the run next does something by itself. None: it has tasks in flight, or waits for too much to look at."""
    state = machine.state
    waits = len(state.timers) + len(state.waits) + len(state.asks) + len(state.children)
    if state.tasks or waits > WAITS_MAX:
        return None
    dues = [effect.due for effect in machine.outstanding() if isinstance(effect, ArmTimer)]
    return Millis(min(dues, default=NEVER))
