"""The views of code runs: sleeps, the progress of maps, and the progress that a run records of itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from weft.core.code.machine import CodeMachine
from weft.core.code.state import Entry
from weft.observe.code_check import check_code
from weft.observe.code_picture import CodeDrawer
from weft.observe.diagnosis import Diagnosis, PendingWait, Progress
from weft.observe.explanation import ExplainedLine, StyleSentences
from weft.observe.live_finding import LiveFinding, LiveRun
from weft.observe.passed_models import passed_models
from weft.observe.run_moment import PictureDrawer
from weft.observe.style_views import Held, StyleViews
from weft.observe.task_wait import timer_wait
from weft.ports.store import RunRow
from weft.runtime.service import RunService

PROGRESS = "weft.progress"
"""The attribute in which a run of Weft itself records its progress: ``{"place", "done", "total"}``."""


class CodeViews(StyleViews[CodeMachine]):
    """The views of code runs."""

    has_nodes = False
    is_code = True
    path_heading = "models that did not answer"
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
        yield from _map_progress(machine.state.entries.values())

    async def details(self, service: RunService, row: RunRow, machine: CodeMachine) -> dict[str, Any]:
        """Return the models that did not answer in the newest turns, if it is a run of an agent."""
        entries = machine.state.entries.values() if machine.state.is_agent else ()
        failed = [(entry.key, entry.failure) for entry in entries if entry.failure is not None]
        spec = next((entry.output for entry in entries if entry.kind == "spec"), None) if failed else None
        if spec is None:
            return {}
        from weft.agents.spec import decode_spec  # noqa: PLC0415 - only few runs are runs of agents

        return {"passed_models": passed_models(decode_spec(await service.values.load(bytes(spec))).models, failed)}

    def sentences(self, diagnosis: Diagnosis) -> StyleSentences:
        return StyleSentences(
            path=[ExplainedLine(text=f"turn {passed.turn}: {passed}") for passed in diagnosis.passed_models]
        )

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


def _map_progress(entries: Collection[Entry]) -> Iterator[Progress]:
    """Yield the progress of each map with a running branch.

    Maps that are done are passed over quickly: a run may have many of them, and somebody may look at it while it works.
    """
    maps = {f"{entry.key}/": entry for entry in entries if entry.kind == "map"}
    running: dict[str, set[str]] = {}
    for entry in entries:
        if entry.status == "open":
            for scope, branch in _scopes_around(entry.key):
                if scope in maps:
                    running.setdefault(scope, set()).add(branch)
    begun: dict[str, set[str]] = {scope: set() for scope in running}
    outermost = tuple(scope for scope in running if not any(outer in running for outer, _ in _scopes_around(scope)))
    for entry in entries:
        if entry.key.startswith(outermost):
            for scope, branch in _scopes_around(entry.key):
                if scope in begun:
                    begun[scope].add(branch)
    for scope, entry in maps.items():
        if scope in running:
            done = len(begun[scope]) - len(running[scope])
            yield Progress(entry.key, done, msgspec.json.decode(entry.output, type=int))


def _scopes_around(key: str) -> Iterator[tuple[str, str]]:
    """Yield the scopes around a location from the outermost one on, each with the name of the next scope in it."""
    begin = key.find("/") + 1
    while begin and (end := key.find("/", begin) + 1):
        yield key[:begin], key[begin:end]
        begin = end
