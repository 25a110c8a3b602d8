"""The machine of schedules."""

from __future__ import annotations

from weft.core.run.kernel import Kernel
from weft.core.schedule.calendar import Calendar
from weft.core.schedule.state import ScheduleState, encode_state
from weft.core.schedule.style import ScheduleStyle


class ScheduleMachine(Kernel):
    """One schedule."""

    __slots__ = ()

    state: ScheduleState
    style: ScheduleStyle

    def __init__(self, calendar: Calendar, state: ScheduleState) -> None:
        super().__init__(state, ScheduleStyle(calendar, state))

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        return encode_state(self.state)
