"""Add the steps of a document to a catalogue: either all of them, or none with all findings. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from weft.core.findings import Finding
from weft.core.goal.catalogue import AnyCatalogueEvent, Catalogue, StepRegistered, StepUpdated
from weft.core.goal.checks import BadStep, Languages
from weft.core.goal.definitions import StepDef
from weft.goals.fold import STEP_DOCUMENT
from weft.goals.load import LoadedSteps

Decide = Callable[[Catalogue, StepDef, Languages], Sequence[AnyCatalogueEvent]]


def register(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """Register a step that is new, or known with the same definition."""
    return catalogue.register(step, languages)


def update_definition(catalogue: Catalogue, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
    """Change the definition of a step that exists."""
    return catalogue.update(step, languages)


def admit_steps(
    catalogue: Catalogue,
    loaded: LoadedSteps,
    languages: Languages,
    decide: Decide = register,
    give_way: Callable[[], None] = lambda: None,
) -> list[AnyCatalogueEvent]:
    """Return the events that add the steps of a document, in its order. Does not change the catalogue.

    ``give_way`` is called between any two steps.

    Raises:
        BadStep: types conflict, or steps form a cycle; it has all findings, with their locations in the document.
        NameTaken: a step with this id is registered with another definition.
        UnknownStep: a step to update does not exist.
    """
    trial = catalogue.copy(_WithoutCycleCheck)
    with contextlib.suppress(BadStep):
        events = _admit_steps(trial, loaded, languages, decide, give_way)
        if not trial.has_cycle(e.step.id for e in events if isinstance(e, StepRegistered | StepUpdated)):
            return events
    # There is a problem. Only now search for the steps that close cycles, because the search is slow.
    return _admit_steps(catalogue.copy(), loaded, languages, decide, give_way)


class _WithoutCycleCheck(Catalogue):
    """A catalogue that does not search for cycles for every step. ``admit_steps`` searches once, at the end."""

    def _find_cycle_through(self, step: StepDef) -> list[str]:
        return []


def _admit_steps(
    trial: Catalogue, loaded: LoadedSteps, languages: Languages, decide: Decide, give_way: Callable[[], None]
) -> list[AnyCatalogueEvent]:
    events: list[AnyCatalogueEvent] = []
    findings: list[Finding] = []
    for step in loaded.steps:
        give_way()
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
