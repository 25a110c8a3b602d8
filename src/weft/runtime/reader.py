"""Read runs from the store: their state, their events, how they began and how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from weft.core import commands as c
from weft.core import events as e
from weft.core.decider import Machine
from weft.core.goal.plan import decode_plan
from weft.core.ids import Seq
from weft.core.run.state import FOLD, State
from weft.errors import NotFound, RunUnreadable
from weft.ports.store import RunRow, Store, StoredEvent
from weft.runtime.programs import (
    AnyProgram,
    GraphProgram,
    NoRegistry,
    graph_program,
    needs_definition,
    new_machine,
    read_graph,
)
from weft.runtime.unreadable import definition_gone, readable, reading, unreadable
from weft.steps.failures import text_of

EVENTS_PER_PAGE = 500
POLL_SECONDS = 0.05


class RunReader:
    """Reads committed runs, and never changes them."""

    def __init__(self, store: Store, program: Callable[[str, str], AnyProgram | None]) -> None:
        """``program`` returns the program that this process hosts under a name and a version, if any."""
        self._url = store.url
        self._log = store.log
        self._directory = store.directory
        self._definitions = store.definitions
        self._program = program

    async def machine(self, row: RunRow) -> Machine:
        """Return a copy of the run, as of its committed log.

        Raises NotFound, RunUnreadable.
        """
        with reading(row):
            loaded = await self._log.load(row.uid, fold=FOLD)
            if loaded is None:
                raise NotFound(f"No run {row.id!r} in {self._url}.")
            for mail in loaded.inbox:
                c.decode(mail.body)
            program = await self.program(row)
            style = row.style
            if needs_definition(style) and program is None:
                if row.seq:
                    raise definition_gone(row)
                style = ""  # the run has no events
            machine = new_machine(style, program, row.uid, loaded.snapshot.body if loaded.snapshot else None)
        for stored in loaded.events:
            try:
                machine.evolve(e.decode(stored.body), at=stored.at)
            except Exception as error:
                raise unreadable(row, f"Event {stored.seq}: {text_of(error)}") from error
        if not machine.state.started:
            machine.state.run_id = row.id
        return machine

    async def program(self, row: RunRow) -> GraphProgram | None:
        """Return the version of the graph that a run is pinned to; None for code."""
        if not needs_definition(row.style):
            return None
        known = graph_program(self._program(row.workflow, row.version))
        if known is not None:
            return known
        definition = await self._definitions.get(row.workflow, row.version)
        if definition is None:
            return None
        return GraphProgram(read_graph(definition).graph, row.version, NoRegistry())

    async def state(self, row: RunRow) -> State:
        """Return the state of a run as of its committed log."""
        return (await self.machine(row)).state

    async def problem(self, row: RunRow) -> RunUnreadable | None:
        """Return why the run cannot be read, or None if it can."""
        if row.fault is not None:
            return unreadable(row, row.fault)
        try:
            await self.machine(row)
        except RunUnreadable as error:
            return error
        except NotFound:
            return None
        return None

    async def events(self, row: RunRow, *, after: int = 0, follow: bool = False) -> AsyncIterator[StoredEvent]:
        """Yield committed events in order; with ``follow`` also those to come, until the run is over.

        Raises RunUnreadable at the first that cannot be read.
        """
        seq = Seq(after)
        while True:
            page, problem = await readable(self._log, row, after=seq, limit=EVENTS_PER_PAGE)
            for event in page:
                yield event
                seq = event.seq
            if problem is not None:
                raise problem
            if len(page) == EVENTS_PER_PAGE:
                continue
            if not follow:
                return
            now = await self._directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                return
            if now.seq <= seq:
                await asyncio.sleep(POLL_SECONDS)

    async def ending_of(self, row: RunRow) -> e.AnyEvent:
        """Return the event that ended a run: the last one, not counting dead letters that were discarded since."""
        seq = row.seq
        while True:
            found, problem = await readable(self._log, row, after=Seq(seq - 1), limit=1)
            if not found:
                raise problem or unreadable(row, f"Event {seq} is missing.")
            event = e.decode(found[0].body)
            if not isinstance(event, e.LetterDiscarded):
                return event
            seq = Seq(seq - 1)

    async def started_with(self, row: RunRow) -> c.StartRun | e.RunStarted:
        """Return how the run was started: its first event, or the start mail of a run that has not begun."""
        with reading(row):
            events = await self._log.events(row.uid, after=Seq(0), limit=1)
            if events:
                first = e.decode(events[0].body)
                assert isinstance(first, e.RunStarted)
                return first
            if row.seq:
                raise unreadable(row, "Event 1 is missing.")
            for mail in await self._log.inbox(row.uid):
                command = c.decode(mail.body)
                if isinstance(command, c.StartRun):
                    return command
        now = await self._directory.find(row.id)
        if now is None:
            raise NotFound(f"No run {row.id!r} in {self._url}.")
        return await self.started_with(now)

    async def goals_of(self, row: RunRow) -> list[str]:
        """Return the goals of a run; empty if only its host knows them."""
        for stored in await self._log.events(row.uid, after=Seq(0), limit=2):
            event = e.decode(stored.body)
            if isinstance(event, e.GoalPlanned):
                return decode_plan(event.plan).goals
        start = await self.started_with(row)
        return goals_in(start) if isinstance(start, c.StartGoal) else []


def goals_in(start: c.StartGoal) -> list[str]:
    """Return the goals that a start names, or those of its plan."""
    return start.goals or (decode_plan(start.plan).goals if bytes(start.plan) else [])
