"""Admit the steps of a document to a catalogue: all or none, with all findings if one is refused. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.findings import Finding
from weft.core.goal.catalogue import AnyCatalogueEvent, Catalogue
from weft.core.goal.checks import BadStep, Languages
from weft.core.goal.definitions import StepDef
from weft.goals.fold import STEP_DOCUMENT
from weft.goals.load import LoadedSteps

Decide = Callable[[Catalogue, StepDef, Languages], Sequence[AnyCatalogueEvent]]


def register(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """Register a step that is new, or known with the same definition."""
    return catalogue.register(step, languages)


def update(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """Change the definition of a step that exists."""
    return catalogue.update(step, languages)


def admit(
    catalogue: Catalogue, loaded: LoadedSteps, languages: Languages, decide: Decide = register
) -> list[AnyCatalogueEvent]:
    """Return the events that add the steps of a document, in its order. Does not change the catalogue.

    Raises:
        BadStep: types conflict or steps form a cycle; has all findings, with their places in the document.
        NameTaken: a step with this id is registered with another definition.
        UnknownStep: a step to update does not exist.
    """
    known = [entry.definition for entry in catalogue.entries.values()]
    trial: Catalogue = _WithoutCycleCheck(known)
    with contextlib.suppress(BadStep):
        events = _admitted(trial, loaded, languages, decide)
        if not trial.has_cycle():
            return events
    # Something is wrong. Only now search for the steps that close cycles, because that is slow.
    return _admitted(Catalogue(known), loaded, languages, decide)


class _WithoutCycleCheck(Catalogue):
    """A catalogue that does not search for cycles with every step: ``admit`` searches once, at the end."""

    def _cycle(self, step: StepDef) -> list[str]:
        return []


def _admitted(trial: Catalogue, loaded: LoadedSteps, languages: Languages, decide: Decide) -> list[AnyCatalogueEvent]:
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
        raise STEP_DOCUMENT.refusal(found, name=loaded.name)
    return events
