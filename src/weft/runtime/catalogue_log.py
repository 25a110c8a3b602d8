"""The catalogue of a store, with the steps that were registered by file or by API, for every host of the store.

The catalogue is event-sourced like a run: a list of appends, numbered from 1 without gaps, each with the events that
one command caused. An append is stored as a definition (``weft.catalogue``, version = its number). Two writers of the
same number cannot both succeed, so the loser reads the new append and decides again. No append is ever changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from weft.core.goal.catalogue import (
    AnyCatalogueEvent,
    Catalogue,
    Checkup,
    StepHealthChanged,
    StepRegistered,
    StepUnregistered,
    StepUpdated,
)
from weft.core.goal.checks import BadStep
from weft.core.goal.definitions import StepDef
from weft.errors import Conflict, Corrupt, NameTaken, WeftError
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.runtime.goal_language import GOAL_LANGUAGES

if TYPE_CHECKING:
    from weft.goals.load import LoadedSteps

CATALOGUE = "weft.catalogue"
STYLE = "catalogue"
TRIES_MAX = 100

Decide = Callable[[Catalogue], Sequence[AnyCatalogueEvent]]
InThread = Callable[[Callable[[], Sequence[AnyCatalogueEvent]]], Awaitable[Sequence[AnyCatalogueEvent]]]

_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[list[AnyCatalogueEvent]] = msgspec.json.Decoder(list[AnyCatalogueEvent])


class CatalogueRecord(msgspec.Struct, frozen=True):
    """An event in the catalogue, and when it was written."""

    number: int
    at: datetime
    event: AnyCatalogueEvent


class StoredCatalogue:
    """The catalogue as far as it was read from the store. Appends to it."""

    def __init__(self, definitions: Definitions, clock: Clock, in_thread: InThread = asyncio.to_thread) -> None:
        self._definitions = definitions
        self._clock = clock
        self._in_thread = in_thread
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
                self._take(append)
        while True:
            next_append = await self._definitions.get(CATALOGUE, str(self._appends + 1))
            if next_append is None:
                return self._appends > before
            self._take(next_append)

    def _take(self, append: Definition) -> None:
        if int(append.version) != self._appends + 1:  # another call has read it meanwhile
            return
        for event in _events(append):
            self._known.evolve(event)
        self._appends += 1

    async def register(self, loaded: LoadedSteps) -> Sequence[AnyCatalogueEvent]:
        """Add the steps of a document, all or none. Steps that are already registered change nothing.

        Raises:
            NameTaken: another definition has the id of one of the steps.
            BadStep: there are conflicting types or cycles.
        """
        from weft.goals.admission import admit  # noqa: PLC0415 - only programs with documents import their language

        return await self._append_checked(lambda known: admit(known, loaded, self._languages))

    async def update(self, loaded: LoadedSteps) -> Sequence[AnyCatalogueEvent]:
        """Replace steps that exist, all or none. Raises UnknownStep, BadStep."""
        from weft.goals.admission import admit, update  # noqa: PLC0415 - as above

        return await self._append_checked(lambda known: admit(known, loaded, self._languages, update))

    async def unregister(self, *steps: str) -> Sequence[AnyCatalogueEvent]:
        """Remove steps, all or none. Runs that have begun keep them. Raises UnknownStep."""
        return await self._append(lambda known: [event for step in steps for event in known.unregister(step)])

    async def report_health(self, found: Mapping[str, Checkup]) -> Sequence[AnyCatalogueEvent]:
        """Record the health of steps, including steps that only an app has. Only changes become events."""
        return await self._append(lambda known: _changes(known, found))

    async def _append(self, decide: Decide) -> Sequence[AnyCatalogueEvent]:
        async def decided() -> Sequence[AnyCatalogueEvent]:
            return decide(self._known)

        return await self._append_decided(decided)

    async def _append_checked(self, decide: Decide) -> Sequence[AnyCatalogueEvent]:
        """Append the result of a slow decision, which runs in a thread on a copy of the catalogue."""

        async def decided() -> Sequence[AnyCatalogueEvent]:
            steps = list(self.steps.values())
            return await self._in_thread(lambda: decide(Catalogue(steps)))

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
            for event in _events(append)
        ]


def _events(append: Definition) -> list[AnyCatalogueEvent]:
    try:
        return _decoder.decode(append.body)
    except msgspec.DecodeError as error:
        raise Corrupt(f"Append {append.version} of the catalogue cannot be read: {error}.") from error


def _changes(known: Catalogue, found: Mapping[str, Checkup]) -> list[AnyCatalogueEvent]:
    return [
        StepHealthChanged(step_id=step, status=checkup.status, error=checkup.error)
        for step, checkup in sorted(found.items())
        if known.health.get(step, Checkup()) != checkup
    ]


def merge(planner: Catalogue, stored: Mapping[str, StepDef], adopted: dict[str, StepDef]) -> list[WeftError]:
    """Add the store's steps to a host's planner, besides the host's own. Returns why some were left out.

    ``adopted`` are the store's steps that the planner already has. If the host has a step with the same id, an equal
    step in the store is ignored and a different one is refused. Each step was checked alone when it was registered.
    """
    for step in [step for step in adopted if step not in stored]:
        planner.evolve(StepUnregistered(step_id=step))
        del adopted[step]
    new = [step for step in stored.values() if adopted.get(step.id) != step]
    both = {**stored, **{step: entry.definition for step, entry in planner.entries.items() if step not in adopted}}
    cycles = Catalogue(list(both.values())).has_cycle() if new else False
    return [fault for step in new for fault in _merge_one(planner, step, adopted, cycles=cycles)]


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
