"""The catalogue of a store, with the steps that were registered by file or by API, for every host of the store.

The catalogue is event-sourced like a run: a list of appends, numbered from 1 without gaps, each with the events that
one command caused. An append is stored as a definition (``weft.catalogue``, version = its number). Two writers of the
same number cannot both succeed, so the loser reads the new append and decides again. No append is ever changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

from weft.core.goal.catalogue import (
    AnyCatalogueEvent,
    Catalogue,
    Checkup,
    StepHealthChanged,
    StepRegistered,
    StepUnregistered,
    StepUpdated,
    decode,
)
from weft.core.goal.checks import BadStep
from weft.core.goal.definitions import StepDef
from weft.errors import Conflict, Corrupt, NameTaken, WeftError
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.runtime.decision_inputs import InThread
from weft.runtime.goal_language import GOAL_LANGUAGES

if TYPE_CHECKING:
    from weft.goals.load import LoadedSteps

CATALOGUE = "weft.catalogue"
STYLE = "catalogue"
TRIES_MAX = 100
FEW_BYTES = 8 * 1024
"""Appends of so many bytes are read on the event loop. Larger ones have many steps and are read in a thread."""

Decide = Callable[[Catalogue], Sequence[AnyCatalogueEvent]]

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])


class CatalogueRecord(msgspec.Struct, frozen=True):
    """An event in the catalogue, and when it was written."""

    number: int
    at: datetime
    event: AnyCatalogueEvent


class StoredCatalogue:
    """The catalogue as far as it was read from the store. Appends to it."""

    def __init__(
        self,
        definitions: Definitions,
        clock: Clock,
        in_thread: InThread = asyncio.to_thread,
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        """``give_way`` is called between any two steps in threads that work on many."""
        self._definitions = definitions
        self._clock = clock
        self._in_thread = in_thread
        self.give_way = give_way
        self._languages = GOAL_LANGUAGES
        self._known = Catalogue()
        self._appends = 0

    async def catalogue(self) -> Catalogue:
        """Read new appends and return the current catalogue."""
        await self.refresh()
        return self._known

    @property
    def number(self) -> int:
        """Return the number of the last append that was read."""
        return self._appends

    @property
    def steps(self) -> Mapping[str, StepDef]:
        """Return the steps as of the last append that was read."""
        return {step: entry.definition for step, entry in self._known.entries.items()}

    async def refresh(self) -> bool:
        """Read new appends. Returns whether there were any. Raises Corrupt."""
        before = self._appends
        if not before:
            # Read everything at once; appends that are written meanwhile are read one by one.
            for append in sorted(await self._definitions.versions(CATALOGUE), key=lambda one: int(one.version)):
                await self._apply_append(append)
        while True:
            next_append = await self._definitions.get(CATALOGUE, str(self._appends + 1))
            if next_append is None:
                return self._appends > before
            await self._apply_append(next_append)

    async def _apply_append(self, append: Definition) -> None:
        number = int(append.version)
        if number != self._appends + 1:  # another call has read it meanwhile
            return
        if len(append.body) <= FEW_BYTES:
            self._known = _evolve_catalogue(self._known, list(_decode_events(append)))
        else:
            copied = self._known.copy()
            known = await self._in_thread(lambda: _evolve_catalogue(copied, _decode_events(append), self.give_way))
            if number != self._appends + 1:
                return
            self._known = known
        self._appends = number

    async def register(self, loaded: LoadedSteps) -> Sequence[AnyCatalogueEvent]:
        """Add the steps of a document, all or none. Steps that are already registered change nothing.

        Raises:
            NameTaken: another definition has the id of one of the steps.
            BadStep: there are conflicting types or cycles.
        """
        from weft.goals.admission import admit_steps  # noqa: PLC0415 - only programs with documents import their language

        return await self._append_checked(
            lambda known: admit_steps(known, loaded, self._languages, give_way=self.give_way)
        )

    async def update(self, loaded: LoadedSteps) -> Sequence[AnyCatalogueEvent]:
        """Replace steps that exist, all or none. Raises UnknownStep, BadStep."""
        from weft.goals.admission import admit_steps, update_definition  # noqa: PLC0415 - as above

        return await self._append_checked(
            lambda known: admit_steps(known, loaded, self._languages, update_definition, self.give_way)
        )

    async def unregister(self, *steps: str) -> Sequence[AnyCatalogueEvent]:
        """Remove steps, all or none. Runs that have begun keep them. Raises UnknownStep."""
        return await self._append_events(lambda known: [event for step in steps for event in known.unregister(step)])

    async def report_health(self, found: Mapping[str, Checkup]) -> Sequence[AnyCatalogueEvent]:
        """Record the health of steps, including steps that only an app has. Only changes become events."""
        return await self._append_events(lambda known: _health_changes(known, found))

    async def _append_events(self, decide: Decide) -> Sequence[AnyCatalogueEvent]:
        async def decided() -> Sequence[AnyCatalogueEvent]:
            return decide(self._known)

        return await self._append_decided(decided)

    async def _append_checked(self, decide: Decide) -> Sequence[AnyCatalogueEvent]:
        """Append the result of a slow decision, which runs in a thread on a copy of the catalogue."""

        async def decided() -> Sequence[AnyCatalogueEvent]:
            copied = self._known.copy()
            events: Sequence[AnyCatalogueEvent] = await self._in_thread(lambda: decide(copied))
            return events

        return await self._append_decided(decided)

    async def _append_decided(
        self, decided: Callable[[], Awaitable[Sequence[AnyCatalogueEvent]]]
    ) -> Sequence[AnyCatalogueEvent]:
        for _ in range(TRIES_MAX):
            await self.refresh()
            number = self._appends + 1
            events = list(await decided())
            if not events:
                return ()
            append = Definition(
                name=CATALOGUE,
                version=str(number),
                style=STYLE,
                body=_encode(events),
                created_at=self._clock.now_ms(),
            )
            try:
                await self._definitions.put(append)
            except Conflict:  # another writer took this number
                continue
            await self.refresh()
            return events
        raise Conflict("The catalogue kept changing while this change was decided.", hint="Try again.")

    async def history(self) -> list[CatalogueRecord]:
        """Return all events in the catalogue, in order."""
        appends = sorted(await self._definitions.versions(CATALOGUE), key=lambda one: int(one.version))
        return [
            CatalogueRecord(int(append.version), datetime.fromtimestamp(append.created_at / 1000, UTC), event)
            for append in appends
            for event in _decode_events(append)
        ]


def _decode_events(append: Definition) -> Iterator[AnyCatalogueEvent]:
    """Decode one event after the other: decoding thousands in one call would keep the interpreter lock."""
    try:
        for event in _decoder.decode(append.body):
            yield decode(event)
    except msgspec.DecodeError as error:
        raise Corrupt(f"Append {append.version} of the catalogue cannot be read: {error}.") from error


def _evolve_catalogue(
    catalogue: Catalogue, events: Iterable[AnyCatalogueEvent], give_way: Callable[[], None] = lambda: None
) -> Catalogue:
    for event in events:
        catalogue.evolve(event)
        give_way()
    return catalogue


def _health_changes(known: Catalogue, found: Mapping[str, Checkup]) -> list[AnyCatalogueEvent]:
    return [
        StepHealthChanged(step_id=step, status=checkup.status, error=checkup.error)
        for step, checkup in sorted(found.items())
        if known.health.get(step, Checkup()) != checkup
    ]


class PlannedSteps(Protocol):
    """The steps that a host plans with."""

    planner: Catalogue
    adopted: dict[str, StepDef]
    """The steps in ``planner`` that were read from the store."""
    revision: int


class Learning:
    """Adds the store's steps to those that a host plans with, on a copy: thousands of them take a while."""

    def __init__(self, planned: PlannedSteps, stored: Mapping[str, StepDef]) -> None:
        self._planned = planned
        self._before = (planned.planner, planned.planner.seq, len(planned.adopted))
        self._planner, self._adopted = planned.planner.copy(), dict(planned.adopted)
        self._stored = stored
        self.faults: list[WeftError] = []
        """Why some of the store's steps are left out."""

    def run(self, give_way: Callable[[], None] = lambda: None) -> None:
        """Work out the new planner. May be called in a thread, which pauses with ``give_way`` between steps."""
        self.faults = merge_stored_steps(self._planner, self._stored, self._adopted, give_way)

    def finish(self) -> bool:
        """Plan with the result. Returns False if the steps of the host have changed since: begin again."""
        planned = self._planned
        if self._before != (planned.planner, planned.planner.seq, len(planned.adopted)):
            return False
        planned.planner, planned.adopted = self._planner, self._adopted
        planned.revision += 1
        return True


def merge_stored_steps(
    planner: Catalogue,
    stored: Mapping[str, StepDef],
    adopted: dict[str, StepDef],
    give_way: Callable[[], None] = lambda: None,
) -> list[WeftError]:
    """Add the store's steps to a host's planner, besides the host's own. Returns why some were left out.

    ``adopted`` are the store's steps that the planner already has. If the host has a step with the same id, an equal
    step in the store is ignored and a different one is refused. Each step was checked alone when it was registered.
    """
    for step in [step for step in adopted if step not in stored]:
        planner.evolve(StepUnregistered(step_id=step))
        del adopted[step]
    new = [step for step in stored.values() if adopted.get(step.id) != step]
    trial = planner.copy()
    for definition in new:
        if definition.id in adopted or definition.id not in planner:
            trial.evolve(StepUpdated(step=definition))
            give_way()
    cycles = trial.has_cycle(step.id for step in new)
    faults: list[WeftError] = []
    for definition in new:
        faults += _merge_one(planner, definition, adopted, cycles=cycles)
        give_way()
    return faults


def _merge_one(planner: Catalogue, step: StepDef, adopted: dict[str, StepDef], *, cycles: bool) -> Iterable[WeftError]:
    if step.id in planner and step.id not in adopted:
        if planner.step(step.id) != step:
            yield NameTaken(
                f"step {step.id} is registered in the store with a different definition than in this app.",
                hint=f"Rename one of them, or run: weft steps unregister {step.id}",
            )
        return
    try:
        planner.check_conflicts(step, cycles=cycles)
    except BadStep as error:
        yield error
        return
    planner.evolve(StepUpdated(step=step) if step.id in adopted else StepRegistered(step=step))
    adopted[step.id] = step
