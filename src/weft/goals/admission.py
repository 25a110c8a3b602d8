"""Add the steps of a document to a catalogue: either all of them, or none with all findings. Pure."""

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
        BadStep: types conflict, or steps form a cycle; it has all findings, with their locations in the document.
        NameTaken: a step with this id is registered with another definition.
        UnknownStep: a step to update does not exist.
    """
    known = [entry.definition for entry in catalogue.entries.values()]
    trial: Catalogue = _WithoutCycleCheck(known)
    with contextlib.suppress(BadStep):
        events = _admitted(trial, loaded, languages, decide)
        if not trial.has_cycle():
            return events
    # There is a problem. Only now search for the steps that close cycles, because the search is slow.
    return _admitted(Catalogue(known), loaded, languages, decide)


class _WithoutCycleCheck(Catalogue):
    """A catalogue that does not search for cycles for every step. ``admit`` searches once, at the end."""

    def _cycle(self, step: StepDef) -> list[str]:
        return []


def _admitted(trial: Catalogue, loaded: LoadedSteps, languages: Languages, decide: Decide) -> list[AnyCatalogueEvent]:
    events: list[AnyCatalogueEvent] = []
    findings: list[Finding] = []
    for step in loaded.steps:
        try:
            decided = decide(trial, step, languages)
        except BadStep as error:
            reported: Any = error.context.get("findings") or [Finding(error.code, error.message, suggestion=error.hint)]
            findings += [loaded.finding(step.id, finding) for finding in reported]
            continue
        for event in decided:
            trial.evolve(event)
        events += decided
    if findings:
        raise STEP_DOCUMENT.refusal(findings, name=loaded.name)
    return events
