"""Read runs from the store: their state, their events, how they began and how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from weft.cache import BoundedCache
from weft.core import commands as c
from weft.core import events as e
from weft.core.goal.plan import decode_plan
from weft.core.graph.model import GraphModel
from weft.core.ids import Seq
from weft.core.machine import Machine
from weft.core.run.env import MissingInputs, PastEvent
from weft.core.run.revisions import versions_in
from weft.core.run.state import FOLD, State
from weft.errors import Corrupt, NotFound, RunUnreadable
from weft.ports.definitions import Definition
from weft.ports.store import Loaded, RunRow, Store, StoredEvent
from weft.runtime.programs import (
    AnyProgram,
    EmptyProgramRegistry,
    GraphProgram,
    graph_program,
    needs_definition,
    new_machine,
    read_graph,
)
from weft.runtime.unreadable import (
    definition_gone_error,
    naming_run_in_errors,
    readable_events,
    stored_page,
    undecodable_error,
    unreadable_error,
)
from weft.steps.failures import text_of

NO_SNAPSHOT = -1
"""The fold number that no snapshot has: the whole log is folded."""
EVENTS_PER_PAGE = 500
_AFTER_END = (e.LetterDiscarded, e.RunForked, e.ResultsKnown, e.RunPatched)
"""Events that leave a run over: dead letters are discarded, a fork may begin after the end of its original, and a run
that has failed may be patched before it is retried."""
POLL_SECONDS = 0.05
VERSIONS_MAX = 1_000


def unknown_run(run_id: str, store: str) -> NotFound:
    """Return the error for a run that is not there. Commands also say in which store; a server tells nobody."""
    return NotFound(
        f"No run {run_id[:100]!r}.", hint="weft list shows what is there; --url names another store.", store=store
    )


class RunReader:
    """Reads committed runs, and never changes them."""

    def __init__(self, store: Store, program: Callable[[str, str], AnyProgram | None]) -> None:
        """``program`` returns the program that this process hosts under a name and a version, if any."""
        self._url = store.url
        self._log = store.log
        self._directory = store.directory
        self._definitions = store.definitions
        self._program = program
        self._versions: BoundedCache[tuple[str, str], GraphProgram] = BoundedCache(VERSIONS_MAX)
        """Versions that were read from the store."""

    async def machine(self, row: RunRow, *, fold: int = FOLD) -> Machine:
        """Return a copy of the run, as of its committed log. ``fold`` says which snapshots may be used.

        Raises NotFound, RunUnreadable.
        """
        with naming_run_in_errors(row):
            loaded = await self._log.load(row.uid, fold=fold)
            if loaded is None:
                raise unknown_run(row.id, self._url)
            for mail in loaded.inbox:
                c.decode(mail.body)
            program = await self.program(row)
        machine = None
        while machine is None:
            try:
                machine = self._fold_events(row, loaded, program)
            except MissingInputs as missing:
                await self.read_versions(row, missing.versions)
        if not machine.state.started:
            machine.state.run_id = row.id
        return machine

    def _fold_events(self, row: RunRow, loaded: Loaded, program: GraphProgram | None) -> Machine:
        """Apply the events of a run. Raises RunUnreadable, and MissingInputs if a version is not in memory."""
        with naming_run_in_errors(row):
            style = row.style
            if needs_definition(style) and program is None:
                if row.seq:
                    raise definition_gone_error(row)
                style = ""  # the run has no events
            machine = new_machine(style, program, row.uid, loaded.snapshot.body if loaded.snapshot else None)
        begin_at(machine, loaded)
        for stored in loaded.events:
            try:
                machine.evolve(e.decode(stored.body), at=stored.at)
            except MissingInputs:
                raise
            except Exception as error:
                raise unreadable_error(row, f"Event {stored.seq}: {text_of(error)}") from error
        return machine

    async def read_versions(self, row: RunRow, versions: Sequence[str]) -> None:
        """Read other versions of the graph of a run. Raises RunUnreadable if one is gone."""
        for version in versions:
            if await self.version(row.workflow, version) is None:
                raise definition_gone_error(msgspec.structs.replace(row, version=version))

    async def past(self, row: RunRow) -> list[PastEvent]:
        """Return all committed events of a run. Raises RunUnreadable."""
        found: list[PastEvent] = []
        seq = Seq(0)
        while True:
            page, problem = await stored_page(self._log, row, after=seq, limit=EVENTS_PER_PAGE)
            for stored in page:
                try:
                    found.append(PastEvent(stored.at, e.decode(stored.body)))
                except Corrupt as error:
                    raise undecodable_error(row, stored, error) from error
            if problem is not None:
                raise problem
            if len(page) < EVENTS_PER_PAGE:
                return found
            seq = page[-1].seq

    async def empty_machine(self, row: RunRow, uid: str, past: Sequence[StoredEvent]) -> Machine:
        """Return a machine that can fold the log of a run under this uid, with an empty state. Raises RunUnreadable."""
        if needs_definition(row.style):
            await self.read_versions(row, versions_in(e.decode(stored.body) for stored in past))
        with naming_run_in_errors(row):
            program = await self.program(row)
            if needs_definition(row.style) and program is None:
                raise definition_gone_error(row)
            return new_machine(row.style, program, uid)

    async def program(self, row: RunRow) -> GraphProgram | None:
        """Return the version of the graph that a run is pinned to; None for code."""
        if not needs_definition(row.style):
            return None
        return await self.version(row.workflow, row.version)

    async def version(self, workflow: str, version: str) -> GraphProgram | None:
        """Return one version of a graph: the one that this process hosts, or the one in the store."""
        known = self._known_version(workflow, version)
        if known is not None:
            return known
        definition = await self._definitions.get(workflow, version)
        if definition is None:
            return None
        return self.learn(definition)

    def learn(self, definition: Definition, graph: GraphModel | None = None) -> GraphProgram:
        """Keep a version of a graph in memory, whether or not it is in the store. ``graph``: if it is read already."""
        found = self._known_version(definition.name, definition.version)
        if found is None:
            graph = graph or read_graph(definition).graph
            found = self._keep_program(definition.name, GraphProgram(graph, definition.version, EmptyProgramRegistry()))
        return found

    def _known_version(self, workflow: str, version: str) -> GraphProgram | None:
        found = self._versions.get((workflow, version))
        if found is None:
            hosted = graph_program(self._program(workflow, version))
            found = self._keep_program(workflow, hosted) if hosted is not None else None
        return found

    def _keep_program(self, workflow: str, program: GraphProgram) -> GraphProgram:
        """Keep a program whose other versions are those that are known here."""
        kept = program.beside(lambda other: self._known_version(workflow, other))
        self._versions.put((workflow, program.version), kept)
        return kept

    async def state(self, row: RunRow) -> State:
        """Return the state of a run as of its committed log."""
        return (await self.machine(row)).state

    async def problem(self, row: RunRow) -> RunUnreadable | None:
        """Return why the run cannot be read, or None if it can."""
        if row.fault is not None:
            return unreadable_error(row, row.fault)
        try:
            await self.machine(row)
        except RunUnreadable as error:
            return error
        except NotFound:
            return None
        return None

    async def events(
        self, row: RunRow, *, after: int = 0, until: int | None = None, follow: bool = False
    ) -> AsyncIterator[StoredEvent]:
        """Yield committed events in order; with ``follow`` also those to come, until the run is over.

        ``until`` is the number of the last event to yield.

        Raises RunUnreadable at the first that cannot be read.
        """
        seq = Seq(after)
        while True:
            limit = EVENTS_PER_PAGE if until is None else min(EVENTS_PER_PAGE, until - seq)
            if limit <= 0:
                return
            page, problem = await readable_events(self._log, row, after=seq, limit=limit)
            for event in page:
                yield event
                seq = event.seq
            if problem is not None:
                raise problem
            if len(page) == limit:
                continue
            if not follow:
                return
            now = await self._directory.row(row.uid)
            if now is None or (now.ended_at is not None and now.seq <= seq):
                return
            if now.seq <= seq:
                await asyncio.sleep(POLL_SECONDS)

    async def ending_of(self, row: RunRow) -> e.AnyEvent:
        """Return the event that ended a run: the last one, except for events that may follow an end."""
        seq = row.seq
        while True:
            found, problem = await readable_events(self._log, row, after=Seq(seq - 1), limit=1)
            if not found:
                raise problem or unreadable_error(row, f"Event {seq} is missing.")
            event = e.decode(found[0].body)
            if not isinstance(event, _AFTER_END):
                return event
            seq = Seq(seq - 1)

    async def started_with(self, row: RunRow) -> c.StartRun | e.RunStarted:
        """Return how the run was started: its first event, or the start mail of a run that has not begun."""
        with naming_run_in_errors(row):
            events = await self._log.events(row.uid, after=Seq(0), limit=1)
            if events:
                first = e.decode(events[0].body)
                assert isinstance(first, e.RunStarted)
                return first
            if row.seq:
                raise unreadable_error(row, "Event 1 is missing.")
            for mail in await self._log.inbox(row.uid):
                command = c.decode(mail.body)
                if isinstance(command, c.StartRun):
                    return command
        now = await self._directory.find(row.id)
        if now is None:
            raise unknown_run(row.id, self._url)
        return await self.started_with(now)

    async def waiting_commands(self, row: RunRow) -> list[c.Mailed]:
        """Return the commands in the inbox of a run that it has not read yet, in order of arrival."""
        with naming_run_in_errors(row):
            return [c.decode(mail.body) for mail in await self._log.inbox(row.uid)]

    async def goals_of(self, row: RunRow) -> list[str]:
        """Return the goals of a run; empty if only its host knows them."""
        for stored in await self._log.events(row.uid, after=Seq(0), limit=2):
            event = e.decode(stored.body)
            if isinstance(event, e.GoalPlanned):
                return decode_plan(event.plan).goals
        start = await self.started_with(row)
        return goals_in(start) if isinstance(start, c.StartGoal) else []


def begin_at(machine: Machine, loaded: Loaded) -> None:
    """Let a machine without a snapshot begin at the first event of a log that was shortened."""
    if loaded.snapshot is None and loaded.events:
        machine.state.seq = loaded.events[0].seq - 1


def goals_in(start: c.StartGoal) -> list[str]:
    """Return the goals that a start names, or those of its plan."""
    return start.goals or (decode_plan(start.plan).goals if bytes(start.plan) else [])
