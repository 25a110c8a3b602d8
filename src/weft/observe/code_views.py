"""The views of code runs: sleeps, the progress of maps, and the progress that a run records of itself."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from weft.core.code.machine import CodeMachine
from weft.observe.code_check import check_code
from weft.observe.code_picture import CodeDrawer
from weft.observe.diagnosis import PendingWait, Progress
from weft.observe.live_finding import LiveFinding, LiveRun
from weft.observe.run_moment import PictureDrawer
from weft.observe.style_views import Held, StyleViews
from weft.observe.task_wait import timer_wait

PROGRESS = "weft.progress"
"""The attribute in which a run of Weft itself records its progress: ``{"place", "done", "total"}``."""


class CodeViews(StyleViews[CodeMachine]):
    """The views of code runs."""

    has_nodes = False
    is_code = True
    draws_state = False

    def waits(self, machine: CodeMachine, now: int) -> Iterator[PendingWait]:
        """Yield the sleeps of a run."""
        for number, due in machine.state.timers.items():
            yield timer_wait(machine, "sleep", number, due)

    def progress(self, machine: CodeMachine) -> Iterator[Progress]:
        """Yield the progress that the run records of itself, and that of each map.

        A branch is running while an operation in it is open. The end of an operation and the begin of the next are in
        the same append, so that a running branch always has an open operation.
        """
        recorded = machine.state.attributes.get(PROGRESS)
        if isinstance(recorded, dict):
            yield msgspec.convert(recorded, Progress)
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

    def held(self, machine: CodeMachine) -> Held:
        """Return the states of the loops that have not ended, by location."""
        loops = {
            entry.key: bytes(entry.output)
            for entry in machine.state.entries.values()
            if entry.kind == "loop" and entry.status == "open"
        }
        return {"loops": loops}

    def drawer(self) -> PictureDrawer:
        """Return a drawer of what a run has recorded."""
        return CodeDrawer()

    async def check_live(self, run: LiveRun, machine: CodeMachine) -> LiveFinding:
        return await check_code(run, machine)
