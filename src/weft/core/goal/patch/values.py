"""The values of facts after a patch: those that it gives, those recovered from the log, and the matches on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT, PatchedValue, RecalledStep
from weft.core.findings import Finding
from weft.core.goal.definitions import Need, Script, StepDef
from weft.core.goal.patch.pool import StepPool
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import KnownFacts
from weft.core.goal.scripts import ScriptReader, decode_json, load_contents
from weft.core.goal.state import GoalState, Value
from weft.core.goal.types import Type, type_error
from weft.core.run.env import Env
from weft.core.values import seal
from weft.errors import WeftError

Past = Callable[[], Mapping[str, RecalledStep]]
"""Returns what the completed steps gave, in the order in which they completed. Raises MissingInputs."""


class FactValues:
    """The values of a run's facts while a patch is judged."""

    def __init__(self, state: GoalState, reader: ScriptReader, env: Env) -> None:
        self._reader = reader
        self._env = env
        self.facts: dict[str, list[Value]] = dict(state.facts)
        self.given: dict[str, Raw] = {}
        """The values that the patch gives or changes."""
        self._verdicts: dict[tuple[Script, bytes], bool | str] = {}

    def give(self, asked: Mapping[str, Raw], read: set[str], found: list[Finding]) -> None:
        """Give facts, or change given ones that nothing has read. Adds those that must not change to ``found``."""
        for name, raw in asked.items():
            present = self.facts.get(name)
            if present and self._decode_raw(present[0].value) == decode_json(raw):
                continue
            if present and (present[0].provider or name in read):
                found.append(_fact_known_finding(name, present[0].provider))
                continue
            self.given[name] = kept = Raw(seal(bytes(raw)))
            self.facts[name] = [Value(kept), *(present or ())[1:]]

    def check_types(self, asked: Mapping[str, Raw], declared: Mapping[str, Type], found: list[Finding]) -> None:
        """Check the values that the patch gives."""
        for name in self.given:
            why = type_error(declared.get(name), decode_json(asked[name]), bytes(asked[name]), self._env.check)
            if why is not None:
                found.append(Finding("wrong_type", f"the given {name} has the wrong type: {why}.", path=name))

    def checked_types(self, plan: GoalPlan, before: GoalPlan) -> dict[str, Type]:
        """Return the declared types of given facts. Leaves out those that a value given earlier does not have."""
        types: dict[str, Type] = {}
        for name, declared in plan.types.items():
            if name in self.given or before.types.get(name) == declared:
                types[name] = declared
                continue
            raw = load_contents([self.facts[name][0].value], self._env)[0]
            if type_error(declared, decode_json(raw), raw, self._env.check) is None:
                types[name] = declared
        return types

    def known(self, pool: StepPool) -> KnownFacts:
        """Return the facts that a new plan can rely on, and the needs that they meet."""
        given = frozenset(name for name, values in self.facts.items() if values and not values[0].provider)
        met = {
            (step, fact)
            for step, definition in pool.steps.items()
            if step not in pool.fixed
            for fact, need in definition.needs.items()
            if need.role != "const" and need.collect == "first" and fact in self.facts and self._is_met(need, fact)
        }
        return KnownFacts(given, frozenset(self.facts), frozenset(met))

    def _is_met(self, need: Need, fact: str) -> bool:
        return any(self._evaluate_match(need.match, value.value) is True for value in self.facts[fact])

    def _evaluate_match(self, match: Script | None, raw: Raw) -> bool | str:
        """Return whether a match accepts a value, or why it cannot be evaluated. Raises MissingInputs."""
        if match is None:
            return True
        key = (match, bytes(raw))
        if key not in self._verdicts:
            try:
                self._verdicts[key] = self._reader.holds(match, {"value": self._decode_raw(raw)})
            except WeftError as error:
                self._verdicts[key] = error.message
        return self._verdicts[key]

    def _decode_raw(self, raw: Raw) -> Any:
        return decode_json(load_contents([raw], self._env)[0])

    # --- recovered values -----------------------------------------------------------------------------------------

    def fill(self, state: GoalState, plan: GoalPlan, pool: StepPool, past: Past) -> dict[str, list[PatchedValue]]:
        """Return all values of each fact whose values, or whose matches, differ from those in the state."""
        readers = {step: definition for step, definition in plan.steps.items() if step not in pool.fixed}
        filled: dict[str, list[PatchedValue]] = {}
        for fact, values in sorted(self.facts.items()):
            whole = values
            if any(_reads_all(definition, fact) for definition in readers.values()):
                whole = _with_unread_values(state, fact, values, past)
            now = [self._with_matches(fact, value, readers) for value in whole]
            if now != state.facts.get(fact):
                filled[fact] = [_patched_value(value, state.facts.get(fact, []), self.given.get(fact)) for value in now]
        return filled

    def _with_matches(self, fact: str, value: Value, readers: Mapping[str, StepDef]) -> Value:
        """Return a value with the steps whose match accepts it. Verdicts of other steps stay."""
        matched = [step for step in value.matched if step not in readers]
        broken = {step: why for step, why in value.broken.items() if step not in readers}
        for step, definition in readers.items():
            need = definition.needs.get(fact)
            if need is None or need.match is None:
                continue
            verdict = self._evaluate_match(need.match, value.value)
            if verdict is True:
                matched.append(step)
            elif verdict is not False:
                broken[step] = verdict
        return Value(value.value, value.provider, sorted(matched), dict(sorted(broken.items())))


def _reads_all(definition: StepDef, fact: str) -> bool:
    """Return whether a step may read other values of a fact than the first."""
    need = definition.needs.get(fact)
    return need is not None and need.role != "const" and (need.match is not None or need.collect != "first")


def _with_unread_values(state: GoalState, fact: str, values: list[Value], past: Past) -> list[Value]:
    """Return the values of a fact, with those that completed steps gave while nothing read them."""
    kept = {value.provider for value in values}
    if not any(fact in run.gave and step not in kept for step, run in state.steps.items()):
        return values
    known = {value.provider: value for value in values}
    given = [known[""]] if "" in known else []
    recalled = ((step, outcome.outputs[fact]) for step, outcome in past().items() if fact in outcome.outputs)
    return [*given, *(known.get(step) or Value(raw, step) for step, raw in recalled)]


def _patched_value(value: Value, before: list[Value], given: Raw | None) -> PatchedValue:
    known = given if given is not None and not value.provider else None
    if known is None:
        known = next((other.value for other in before if other.provider == value.provider), None)
    return PatchedValue(value.provider, ABSENT if value.value == known else value.value, value.matched, value.broken)


def patched_values(filled: list[PatchedValue], before: list[Value], given: Raw | None) -> Iterator[Value]:
    """Yield the values of a fact after a patch."""
    known = {value.provider: value.value for value in before}
    if given is not None:
        known[""] = given
    for value in filled:
        raw = value.value if bytes(value.value) else known[value.provider]
        yield Value(raw, value.provider, value.matched, value.broken)


def _fact_known_finding(name: str, provider: str) -> Finding:
    why = f"step {provider} has given it" if provider else "a step has read it"
    return Finding(
        "fact_known",
        f"{name} has a value that stays: {why}.",
        path=name,
        suggestion=f"Fork the run with another value: weft fork RUN --given {name}=VALUE",
    )


def added_outcomes(state: GoalState, plan: GoalPlan, pool: StepPool, past: Past) -> dict[str, RecalledStep]:
    """Return the outputs of completed steps that become goals."""
    added = [goal for goal in pool.goals if goal not in plan.goals and goal in state.steps]
    done = [goal for goal in added if state.steps[goal].status == "completed" and not state.steps[goal].results]
    return {goal: past()[goal] for goal in done} if done else {}


def encode_definitions(steps: Mapping[str, StepDef]) -> Raw:
    """Encode definitions for the log."""
    return Raw(msgspec.json.encode(dict(sorted(steps.items())))) if steps else ABSENT


_definitions: msgspec.json.Decoder[dict[str, StepDef]] = msgspec.json.Decoder(dict[str, StepDef])


def decode_definitions(raw: Raw) -> dict[str, StepDef]:
    """Decode definitions from the log."""
    return _definitions.decode(raw) if bytes(raw) else {}
