"""Let the steps of a document into a catalogue: all of them or none, with all that stands against it. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.findings import Finding
from weft.core.goal.catalogue import AnyCatalogueEvent, Catalogue
from weft.core.goal.checks import BadStep, Languages
from weft.core.goal.definitions import StepDef
from weft.goals.load import Loaded
from weft.goals.problems import refusal

Decide = Callable[[Catalogue, StepDef, Languages], Sequence[AnyCatalogueEvent]]


def register(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """A step that is new, or known by the very same definition."""
    return catalogue.register(step, languages)


def update(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """A step that exists, changed."""
    return catalogue.update(step, languages)


def admit(
    catalogue: Catalogue, loaded: Loaded, languages: Languages, decide: Decide = register
) -> list[AnyCatalogueEvent]:
    """The events that take the steps of a document in, in its order; the catalogue itself stays as it is.

    Raises:
        BadStep: conflicts of types and circles, all of them, each where the document has it.
        NameTaken: a step of this id is registered with another definition.
        UnknownStep: one that should be updated does not exist.
    """
    known = [entry.definition for entry in catalogue.entries.values()]
    trial: Catalogue = _WithoutCircles(known)
    with contextlib.suppress(BadStep):
        events = _admitted(trial, loaded, languages, decide)
        if not trial.has_cycle():
            return events
    # Something is wrong: only now is it worth its time to find out which steps close circles.
    return _admitted(Catalogue(known), loaded, languages, decide)


class _WithoutCircles(Catalogue):
    """A catalogue that looks for circles when everything is in: once, and not for every step."""

    def _cycle(self, step: StepDef) -> list[str]:
        return []


def _admitted(trial: Catalogue, loaded: Loaded, languages: Languages, decide: Decide) -> list[AnyCatalogueEvent]:
    events: list[AnyCatalogueEvent] = []
    found: list[Finding] = []
    for step in loaded.steps:
        try:
            decided = decide(trial, step, languages)
        except BadStep as error:
            told: Any = error.context.get("findings") or [Finding(error.code, error.message, suggestion=error.hint)]
            found += [loaded.finding(step.id, each) for each in told]
            continue
        for event in decided:
            trial.evolve(event)
        events += decided
    if found:
        raise refusal(found, name=loaded.name)
    return events
