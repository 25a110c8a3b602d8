"""Fold a raw step document, in either spelling, into step definitions.

The source is not changed. Invalid parts are reported and omitted, so that all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from weft.core.findings import At, Problems
from weft.core.goal.checks import BadStep, Languages, find_problems
from weft.core.goal.definitions import HttpWay, Need, StepDef, StepWay, agent_gives, give_key, inner_name
from weft.documents.fields import Fields
from weft.documents.source import DocumentKind, check_format, listed_items
from weft.errors import BadValue
from weft.goals.facts import FactFields
from weft.goals.policies import Policies, Steps
from weft.goals.values import read_goal_script
from weft.goals.ways import READERS, StepWays, rename_gives, rename_needs, texts_by_name
from weft.steps.http.urls import url_names

STEP_DOCUMENT = DocumentKind(
    area="goal",
    format="steps/1",
    error=BadStep,
    items="steps",
    noun="step",
    ids=("id",),
    repeated="two_steps",
)
STEPS_MAX = 10_000
DOCUMENT = ("weft", "steps", "description")
STEP = (
    *READERS, "needs", "gives", "when", "retry", "timeout", "queue", "effect", "width", "cache", "undo", "title",
    "labels", "name", "type", "attributes", "predicate", "work_config", "memoizable",
)  # fmt: skip


class Folded(msgspec.Struct, frozen=True):
    """A step definition and its location in the document."""

    definition: StepDef
    at: At


def fold_document(
    raw: Any, steps: Steps, languages: Languages, problems: Problems, give_way: Callable[[], None]
) -> list[Folded]:
    """Fold the steps of a document: a mapping by id, a list with ids, or a single step.

    ``give_way`` is called after each.
    """
    found = []
    for step_id, body, at in _step_bodies(raw, problems):
        known = (*STEP, "id") if not at or isinstance(at[-1], int) else STEP
        if not at:
            known = (*known, "weft")
        folded = _fold_step(step_id, Fields(body, at, problems, known), steps, languages)
        if folded is not None:
            found.append(folded)
        give_way()
    return found


def _step_bodies(raw: Any, problems: Problems) -> Iterator[tuple[str, Any, At]]:
    if isinstance(raw, dict) and "id" in raw and "steps" not in raw:
        check_format(Fields(raw, (), problems, raw), STEP_DOCUMENT)
        yield str(raw["id"]), raw, ()
        return
    document = Fields(raw, (), problems, DOCUMENT)
    check_format(document, STEP_DOCUMENT)
    steps = document.raw.get("steps")
    if steps is None:
        if document.raw or raw == {}:
            document.needed("steps")
    elif isinstance(steps, dict) and len(steps) <= STEPS_MAX:
        yield from ((step_id, body, ("steps", step_id)) for step_id, body in steps.items())
    elif isinstance(steps, list) and len(steps) <= STEPS_MAX:
        yield from listed_items(steps, problems, STEP_DOCUMENT)
    elif isinstance(steps, dict | list):
        problems.add("too_big", ("steps",), f"the document has {len(steps):,} steps; the limit is {STEPS_MAX:,}.")
    else:
        document.wrong("steps", "a mapping of ids to steps, or a list")


def _fold_step(step_id: str, step: Fields, steps: Steps, languages: Languages) -> Folded | None:
    before = len(step.problems.entries)
    ways = StepWays(step_id, step)
    way = ways.read()
    facts = FactFields(step)
    facts.read()
    needs = rename_needs(facts.needs, ways.renamed["needs"])
    policies = Policies(step, way, steps)
    when = read_goal_script(step, step.spelling("when", "predicate"))
    inner = sorted(inner_name(fact, need) for fact, need in needs.items())
    policy, width = policies.policy(ways.timeout_ms), policies.width()
    cache, undo = policies.cache(), policies.undo(step_id, inner, policy)
    title, labels = step.text(step.spelling("title", "name")), texts_by_name(step, "labels")
    if isinstance(way, HttpWay):
        _check_places(way, needs, ways.at, step.problems)
        _check_compensate(way, {*inner, *(give_key(*give) for give in facts.gives.items())}, ways.at, step.problems)
    definition = StepDef(
        id=step_id,
        # A placeholder, so that the rest of the step is checked, too.
        way=way if way is not None else StepWay(step_id),
        needs=needs,
        gives=agent_gives(facts.gives) if ways.is_agent else rename_gives(facts.gives, ways.renamed["gives"]),
        when=when,
        policy=policy,
        width=width,
        cache=cache,
        undo=undo,
        title=title,
        labels=labels,
    )
    places = {**facts.places, "when": step.place(step.spelling("when", "predicate")), _way_word(definition): ways.at}
    for each in find_problems(definition, languages):
        step.problems.add(each.code, _place_in_document(each.path, step.at, places), each.message, each.suggestion)
    return Folded(definition, step.at) if len(step.problems.entries) == before else None


def _way_word(definition: StepDef) -> str:
    """Return the catalogue's name for how the step is performed."""
    return type(definition.way).__name__.removesuffix("Way").lower()


def _place_in_document(path: str, at: At, places: dict[str, At]) -> At:
    """Translate a path of the catalogue into a location in the document, by its longest known prefix."""
    known = path
    while known:
        if known in places:
            rest = path[len(known) :].strip(".")
            return (*places[known], *(rest.split(".") if rest else ()))
        known = known.rpartition(".")[0]
    return (*at, *path.split(".")) if path != "id" else at


def _check_places(way: HttpWay, needs: dict[str, Need], at: At, problems: Problems) -> None:
    """Check that every placeholder of the URL is a need that always has a value."""
    sure = {inner_name(fact, need) for fact, need in needs.items() if need.is_sure}
    known = {inner_name(fact, need) for fact, need in needs.items()}
    try:
        names = url_names(way.url)
    except BadValue:  # reported where the URL is read
        return
    for name in names:
        if name not in sure:
            why = "may be absent" if name in known else "is not one of its needs"
            hint = "Make it required, or give it a default." if name in known else ""
            problems.add("bad_way", (*at, "url"), f"the URL has {{{name}}}, which {why}.", hint)


def _check_compensate(way: HttpWay, known: AbstractSet[str], at: At, problems: Problems) -> None:
    """Check that every placeholder of the URL for undo is a need or an output."""
    try:
        names = url_names(way.compensate) if way.compensate else []
    except BadValue:  # reported where the URL is read
        return
    for name in names:
        if name not in known:
            message = f"the URL has {{{name}}}, which is not one of its needs or gives."
            problems.add("bad_way", (*at, "compensate"), message)
