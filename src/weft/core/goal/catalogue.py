"""The catalogue of steps: the registered definitions, and the providers and readers of each fact. Pure.

The catalogue is event-sourced like a run. ``register``, ``update``, ``unregister`` and ``report_health`` change
nothing, but return events; ``evolve`` applies an event. Changes never affect runs, because a plan contains its
definitions.

Rules: docs/internals/goal.md#1-the-catalogue.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from weft.core.findings import Finding, did_you_mean
from weft.core.goal.checks import BadStep, Languages, bad_step, find_problems
from weft.core.goal.definitions import GoalWay, ScriptWay, StepDef, declared_types
from weft.core.goal.plan import GoalPlan
from weft.core.goal.types import Type, narrower, type_text, types_agree
from weft.errors import NameTaken, UnknownStep

Health = Literal["unknown", "healthy", "unhealthy"]


class CatalogueEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag=None):
    """The base class of catalogue events."""


class StepRegistered(CatalogueEvent, frozen=True, kw_only=True, tag="step_registered"):
    step: StepDef


class StepUpdated(CatalogueEvent, frozen=True, kw_only=True, tag="step_updated"):
    step: StepDef


class StepUnregistered(CatalogueEvent, frozen=True, kw_only=True, tag="step_unregistered"):
    step_id: str


class StepHealthChanged(CatalogueEvent, frozen=True, kw_only=True, tag="step_health_changed"):
    step_id: str
    status: Health
    error: str = ""


AnyCatalogueEvent = StepRegistered | StepUpdated | StepUnregistered | StepHealthChanged
encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[AnyCatalogueEvent] = msgspec.json.Decoder(AnyCatalogueEvent)
decode = _decoder.decode


class Checkup(msgspec.Struct, frozen=True):
    """The result of the latest health check of a step."""

    status: Health = "unknown"
    error: str = ""


class CatalogueEntry:
    """A definition, prepared so that planning needs only lookups."""

    __slots__ = ("blocking", "definition", "every", "gates", "gives", "id", "lacking", "needs", "once", "reads")

    def __init__(self, definition: StepDef) -> None:
        needs = sorted((fact, need) for fact, need in definition.needs.items() if need.role != "const")
        self.id = definition.id
        self.definition = definition
        self.gives = sorted(definition.gives)
        self.needs = [(fact, need.collect, need.role == "required", need.is_gate) for fact, need in needs]
        self.gates = any(need.is_gate for _, need in needs)
        self.blocking = [fact for fact, need in needs if need.role == "required" and need.collect == "none"]
        self.reads = [fact for fact, _ in needs]
        self.lacking = [
            (fact, need.collect == "all") for fact, need in needs if need.role == "required" and need.collect != "none"
        ]
        """The facts that the step requires, and whether every provider must give them."""
        self.once = [fact for fact, every in self.lacking if not every]
        self.every = [fact for fact, every in self.lacking if every]


class Declared(msgspec.Struct, frozen=True):
    """A type, and the steps that declare a fact to have it."""

    type: Type
    steps: set[str]


class Catalogue:
    """The registered steps with their health, providers, consumers and declared types."""

    def __init__(self, steps: Sequence[StepDef] = ()) -> None:
        self.entries: dict[str, CatalogueEntry] = {}
        self.health: dict[str, Checkup] = {}
        self.providers: dict[str, list[str]] = {}
        self.consumers: dict[str, list[str]] = {}
        self.callers: dict[str, list[str]] = {}
        """By goal, the steps that reach it in a child run."""
        self.types: dict[str, dict[bytes, Declared]] = {}
        """The different types that each fact is declared to have. Types that agree are similar, so there are few."""
        self.plans: dict[tuple[tuple[str, ...], frozenset[str]], GoalPlan] = {}
        """A cache of plans made from the current catalogue."""
        self.seq = 0
        for step in steps:
            self._add(step)

    def copy(self, kind: type[Catalogue] | None = None) -> Catalogue:
        """Return a copy, perhaps of another kind, that changes independently. Much cheaper than adding all steps."""
        copied = (kind or Catalogue)()
        copied.entries, copied.health, copied.seq = dict(self.entries), dict(self.health), self.seq
        copied.providers, copied.consumers, copied.callers = (
            {name: list(steps) for name, steps in table.items()}
            for table in (self.providers, self.consumers, self.callers)
        )
        copied.types = {
            fact: {key: Declared(known.type, set(known.steps)) for key, known in kinds.items()}
            for fact, kinds in self.types.items()
        }
        return copied

    def __contains__(self, step_id: str) -> bool:
        return step_id in self.entries

    def step(self, step_id: str) -> StepDef:
        """Return a registered step. Raises UnknownStep."""
        entry = self.entries.get(step_id)
        if entry is None:
            raise self._unknown_step_error(step_id)
        return entry.definition

    def fact_type(self, fact: str) -> Type:
        """Return the type of a fact: of the declarations that agree, the most specific one."""
        narrowest: Type = None
        for declared in self.types.get(fact, {}).values():
            narrowest = narrower(narrowest, declared.type)
        return narrowest

    # --- deciding -------------------------------------------------------------------------------------------------

    def register(self, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
        """Add a step. An equal definition has no effect; a different one with the same id is refused."""
        present = self.entries.get(step.id)
        if present is not None:
            if present.definition == step:
                return ()
            raise NameTaken(
                f"step {step.id} is registered with another definition.", hint="Update the step, or choose another id."
            )
        self.check(step, languages)
        return (StepRegistered(step=step),)

    def update(self, step: StepDef, languages: Languages) -> Sequence[AnyCatalogueEvent]:
        """Replace a registered step."""
        if self.step(step.id) == step:
            return ()
        self.check(step, languages)
        return (StepUpdated(step=step),)

    def unregister(self, step_id: str) -> Sequence[AnyCatalogueEvent]:
        """Remove a step. Runs in progress keep it."""
        self.step(step_id)
        return (StepUnregistered(step_id=step_id),)

    def report_health(self, step_id: str, status: Health, error: str = "") -> Sequence[AnyCatalogueEvent]:
        """Record the health of a step. Only a change causes an event."""
        if step_id not in self.entries or self.health.get(step_id, Checkup()) == Checkup(status, error):
            return ()
        return (StepHealthChanged(step_id=step_id, status=status, error=error),)

    def check(self, step: StepDef, languages: Languages) -> None:
        """Check a definition by itself and against the others.

        Raises:
            BadStep: the definition has errors, its types conflict with others, or it would close a cycle.
        """
        found = find_problems(step, languages)
        if found:
            raise bad_step(step.id, found)
        self.check_conflicts(step)

    def check_conflicts(self, step: StepDef, *, cycles: bool = True) -> None:
        """Check a definition against the others. Raises BadStep."""
        found = [*self.type_conflicts(step)]
        if found:
            raise bad_step(step.id, found)
        cycle = self._find_cycle_through(step) if cycles else []
        if cycle:
            path = " -> ".join(cycle)
            raise BadStep(
                f"step {step.id} would need itself: {path}",
                hint="Break the cycle: remove a need, or rename one of the facts.",
                code="goal.cycle",
                path=cycle,
            )

    def type_conflicts(self, step: StepDef) -> Iterator[Finding]:
        """Yield the facts of a step that other steps declare with another type."""
        for fact, declared in declared_types(step):
            others = [
                (min(known.steps - {step.id}), known.type)
                for known in self.types.get(fact, {}).values()
                if not types_agree(declared, known.type) and known.steps != {step.id}
            ]
            if others:
                other, known_type = min(others, key=lambda pair: pair[0])
                side = "gives" if fact in step.gives else "needs"
                yield Finding(
                    "goal.type_conflict",
                    f"{fact} is {type_text(declared)} here and {type_text(known_type)} in step {other}.",
                    path=f"{side}.{fact}.type",
                    suggestion="A fact has one type everywhere. Rename one of the facts, or use `any`.",
                )

    def _find_cycle_through(self, step: StepDef) -> list[str]:
        """Return a path from a step back to itself, through its needs and the goals of child runs.

        The steps registered before have no cycle, so a new cycle must pass through this step. That requires a step
        that reads a fact of this step or has it as a goal. If steps are registered after those that they depend on,
        there is none.
        """
        if not self._has_dependents(step):
            return []
        came_from: dict[str, str] = {}
        todo = [step.id]
        while todo:
            here = todo.pop()
            definition = step if here == step.id else self.entries[here].definition
            for there in self._providers_upstream(definition, step):
                if there == step.id:
                    return [step.id, *reversed(_path_back(here, came_from, step.id)), step.id]
                if there not in came_from and there in self.entries:
                    came_from[there] = here
                    todo.append(there)
        return []

    def has_cycle(self, steps: Iterable[str] | None = None) -> bool:
        """Return whether any of these steps (default: all) needs itself, or needs a step that does.

        Linear in the number of steps that they depend on.
        """
        # Facts are nodes too, so a fact with many providers and readers costs their sum, not their product.
        done: set[tuple[str, str]] = set()
        open_places: set[tuple[str, str]] = set()
        todo: list[tuple[tuple[str, str], bool]] = [
            (("step", step), False) for step in (self.entries if steps is None else steps)
        ]
        while todo:
            place, leaving = todo.pop()
            if leaving:
                open_places.discard(place)
                done.add(place)
                continue
            if place in done:
                continue
            if place in open_places:
                return True
            open_places.add(place)
            todo.append((place, True))
            for there in self._dependencies_of(place):
                if there in open_places:
                    return True
                if there not in done:
                    todo.append((there, False))
        return False

    def find_cycle(self) -> list[str]:
        """Return a path from some step back to itself, or an empty list if no step needs itself."""
        if not self.has_cycle():
            return []
        paths = (self._find_cycle_through(entry.definition) for entry in self.entries.values())
        return next(path for path in paths if path)

    def _dependencies_of(self, place: tuple[str, str]) -> Iterator[tuple[str, str]]:
        kind, name = place
        if kind == "fact":
            yield from (("step", provider) for provider in self.providers.get(name, ()))
            return
        entry = self.entries[name]
        yield from (("fact", fact) for fact in entry.reads)
        yield from (("step", goal) for goal in _goals_of(entry.definition) if goal in self.entries)

    def _has_dependents(self, step: StepDef) -> bool:
        if step.id in self.callers or (isinstance(step.way, GoalWay) and step.id in step.way.goals):
            return True
        return any(fact in self.consumers or fact in step.needs for fact in step.gives)

    def _providers_upstream(self, definition: StepDef, new: StepDef) -> Iterator[str]:
        for fact, need in sorted(definition.needs.items()):
            if need.role == "const":
                continue
            if fact in new.gives:
                yield new.id
            yield from (provider for provider in self.providers.get(fact, ()) if provider != new.id)
        yield from _goals_of(definition)

    # --- evolving -------------------------------------------------------------------------------------------------

    def evolve(self, event: AnyCatalogueEvent) -> None:
        """Apply the next event."""
        self.seq += 1
        self.plans.clear()
        match event:
            case StepRegistered(step=step):
                self._add(step)
                self._reset_health(step)
            case StepUpdated(step=step):
                self._remove(step.id)
                self._add(step)
                self._reset_health(step)
            case StepUnregistered(step_id=step_id):
                self._remove(step_id)
                self.health.pop(step_id, None)
            case StepHealthChanged(step_id=step_id, status=status, error=error):
                self.health[step_id] = Checkup(status, error)

    def _reset_health(self, step: StepDef) -> None:
        """Reset the health of a new definition. A script was compiled before, so it is healthy."""
        self.health.pop(step.id, None)
        if isinstance(step.way, ScriptWay):
            self.health[step.id] = Checkup("healthy")

    def _add(self, step: StepDef) -> None:
        entry = self.entries[step.id] = CatalogueEntry(step)
        for fact in entry.gives:
            _add_to(self.providers, fact, step.id)
        for fact, *_ in entry.needs:
            _add_to(self.consumers, fact, step.id)
        for goal in _goals_of(step):
            _add_to(self.callers, goal, step.id)
        for fact, declared in declared_types(step):
            kinds = self.types.setdefault(fact, {})
            kinds.setdefault(_type_key(declared), Declared(declared, set())).steps.add(step.id)

    def _remove(self, step_id: str) -> None:
        entry = self.entries.pop(step_id, None)
        if entry is None:
            return
        for fact in entry.gives:
            _remove_from(self.providers, fact, step_id)
        for fact, *_ in entry.needs:
            _remove_from(self.consumers, fact, step_id)
        for goal in _goals_of(entry.definition):
            _remove_from(self.callers, goal, step_id)
        for fact, declared in declared_types(entry.definition):
            kinds, key = self.types[fact], _type_key(declared)
            known = kinds.get(key)
            if known is not None:
                known.steps.discard(step_id)
                if not known.steps:
                    del kinds[key]

    def _unknown_step_error(self, step_id: str) -> UnknownStep:
        hint = did_you_mean(step_id, self.entries) or "weft steps lists the catalogue."
        return UnknownStep(f'No step "{step_id}" is in the catalogue.', hint=hint)


def _type_key(declared: Type) -> bytes:
    return msgspec.json.encode(declared, order="sorted")


def _goals_of(step: StepDef) -> list[str]:
    return sorted(set(step.way.goals)) if isinstance(step.way, GoalWay) else []


def _path_back(here: str, came_from: dict[str, str], start: str) -> list[str]:
    path = []
    while here != start:
        path.append(here)
        here = came_from[here]
    return path


def _add_to(table: dict[str, list[str]], fact: str, step_id: str) -> None:
    """Add a step to a list. A list of one is replaced, because plans share it."""
    known = table.get(fact)
    if known is None:
        table[fact] = [step_id]
    elif len(known) == 1:
        table[fact] = sorted((*known, step_id))
    else:
        insort(known, step_id)


def _remove_from(table: dict[str, list[str]], fact: str, step_id: str) -> None:
    if len(table[fact]) == 1:
        del table[fact]
    else:
        table[fact].remove(step_id)
