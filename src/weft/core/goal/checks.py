"""Find the errors in the definition of one step, each with a code, a place and a suggestion. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from weft.core.findings import Finding, did_you_mean
from weft.core.goal import types
from weft.core.goal.definitions import (
    METADATA,
    AskWay,
    GoalWay,
    HttpWay,
    Need,
    PipelineWay,
    Script,
    ScriptWay,
    StepDef,
    StepWay,
    WorkflowWay,
    give_key,
    inner_name,
    may_be_split,
)
from weft.errors import UsageError

_ID = re.compile(r"[\w.+-]{1,200}")
_encode = msgspec.json.Encoder().encode


class BadStep(UsageError):
    """A definition that the catalogue refuses. ``context["findings"]`` lists its errors."""

    code = "goal.bad_step"


class Languages(Protocol):
    """Checks scripts, schemas and values that an author wrote."""

    def script(self, script: Script, names: Sequence[str]) -> str | None:
        """Return why a script does not compile with these names bound, or None."""
        ...

    def schema(self, schema: dict[str, Any]) -> str | None:
        """Return why this is not a JSON Schema, or None."""
        ...

    def fits(self, schema: dict[str, Any], raw: bytes) -> str | None:
        """Return why a value is not valid under a schema, or None."""
        ...


def find_problems(definition: StepDef, languages: Languages) -> list[Finding]:
    """Return the errors in a definition."""
    return _Checks(definition, languages).run()


def bad_step(step: str, found: Sequence[Finding]) -> BadStep:
    """Make the error that carries these findings."""
    if len(found) == 1:
        return BadStep(f"step {step}: {found[0].message}", hint=found[0].suggestion, code=found[0].code, findings=found)
    lines = "".join(f"\n  {each}" for each in found)
    return BadStep(f"step {step} has {len(found)} problems:{lines}", findings=list(found))


class _Checks:
    def __init__(self, definition: StepDef, languages: Languages) -> None:
        self.definition = definition
        self.languages = languages
        self.found: list[Finding] = []

    def run(self) -> list[Finding]:
        definition = self.definition
        if not _ID.fullmatch(definition.id):
            self._add(
                "bad_id", "id", f"{definition.id!r} is not a valid step id.", "Use only letters, digits and _ . + -"
            )
        self._check_way()
        for fact, need in definition.needs.items():
            self._check_need(f"needs.{fact}", fact, need)
        for fact, give in definition.gives.items():
            self._check_type(f"gives.{fact}.type", give.type)
            if give.whole and (give.key or give.mapping is not None):
                self._add("bad_give", f"gives.{fact}", f"{fact} is both the whole result and a part.", "Choose one.")
        self._check_names()
        self._check_policies()
        for place, script, names in definition.scripts():
            why = self.languages.script(script, names)
            if why is not None:
                self._add("bad_script", ".".join(place), f"the {script.lang} does not compile: {why}")
        return self.found

    def _add(self, code: str, path: str, message: str, suggestion: str = "") -> None:
        self.found.append(Finding(f"goal.{code}", message, path=path, suggestion=suggestion))

    def _check_way(self) -> None:
        is_empty = False
        match self.definition.way:
            case StepWay(step=name) | WorkflowWay(workflow=name) | HttpWay(url=name) | AskWay(title=name):
                is_empty = not name
            case ScriptWay(script=script):
                is_empty = not script.source.strip()
            case PipelineWay(pipeline=steps):
                is_empty = not steps
            case GoalWay(goals=goals):
                is_empty = not goals
        if is_empty:
            kind = type(self.definition.way).__name__.removesuffix("Way").lower()
            self._add("bad_way", kind, f"`{kind}` is empty.", "Name the work to perform.")

    def _check_type(self, path: str, declared: types.Type) -> None:
        if isinstance(declared, dict):
            why = self.languages.schema(declared)
            if why is not None:
                self._add("bad_type", path, f"this is not a JSON Schema: {why}")
        elif declared is not None and not types.is_word(declared):
            self._add("bad_type", path, f'there is no type "{declared}".', did_you_mean(declared, types.WORDS))

    def _check_need(self, path: str, fact: str, need: Need) -> None:
        known = len(self.found)
        self._check_type(f"{path}.type", need.type)
        typed = len(self.found) == known
        match need.role:
            case "const":
                self._check_const(path, need)
            case "required":
                if need.deadline is not None:
                    self._add("bad_need", f"{path}.deadline", f"{fact} is required, so it cannot have a deadline.")
                if need.default is not msgspec.UNSET:
                    self._add("bad_need", f"{path}.default", f"{fact} is required and has a default.", "Choose one.")
            case "optional":
                if need.match is not None:
                    hint = "Make it required, or use `when`."
                    self._add(
                        "bad_need", f"{path}.match", f"{fact} is optional: only required needs have a match.", hint
                    )
        if isinstance(need.deadline, int) and need.deadline < 0:
            self._add("bad_need", f"{path}.deadline", "a deadline cannot be negative.")
        if need.each and (need.collect == "none" or not may_be_split(need)):
            what = types.type_text(need.type) if need.collect != "none" else "nothing"
            self._add("bad_need", f"{path}.each", f"`each` needs an array, but {fact} is {what}.")
        if typed and need.default is not msgspec.UNSET:
            self._check_value(f"{path}.default", need, need.default)
        if typed and need.role == "const" and need.value is not msgspec.UNSET:
            self._check_value(f"{path}.const", need, need.value)

    def _check_const(self, path: str, need: Need) -> None:
        if need.meta and need.meta not in METADATA:
            known = f"Known names: {', '.join(METADATA)}."
            self._add("bad_need", path, f'a run has no metadata "{need.meta}".', known)
        elif need.value is msgspec.UNSET and not need.meta:
            self._add("bad_need", path, "a const needs a value.")
        for field, present in (
            ("match", need.match is not None),
            ("mapping", need.mapping is not None),
            ("each", need.each),
            ("default", need.default is not msgspec.UNSET),
            ("deadline", need.deadline is not None),
            ("collect", need.collect != "first"),
        ):
            if present:
                self._add("bad_need", f"{path}.{field}", f"a const cannot have {field}: it reads no fact.")

    def _check_value(self, path: str, need: Need, value: Any) -> None:
        try:
            raw = _encode(value)
        except (TypeError, ValueError) as error:
            self._add("bad_need", path, f"this is not JSON: {error}.")
            return
        each = value if need.is_list and isinstance(value, list) else [value]
        for one in each:
            why = types.type_error(need.type, one, raw if one is value else _encode(one), self.languages.fits)
            if why is not None:
                self._add("bad_need", path, f"{why}.")
                return

    def _check_names(self) -> None:
        definition = self.definition
        for fact in definition.gives:
            if fact in definition.needs:
                self._add("two_roles", f"gives.{fact}", f"{fact} is both needed and given.", "Give it another name.")
        self._check_unique("needs", [inner_name(fact, need) for fact, need in definition.needs.items()])
        # Only with mappings may several facts be computed from one part of the result.
        self._check_unique(
            "gives", [give_key(fact, give) for fact, give in definition.gives.items() if not give.mapping]
        )
        for side, facts in (("needs", definition.needs), ("gives", definition.gives)):
            if any(not fact for fact in facts):
                self._add("bad_name", side, "a fact needs a name.")

    def _check_unique(self, side: str, names: Sequence[str]) -> None:
        if len(set(names)) == len(names):
            return
        for name, count in sorted(Counter(names).items()):
            if count > 1:
                self._add("same_name", side, f"two {side} have the inner name {name}.")

    def _check_policies(self) -> None:
        definition = self.definition
        if definition.width < 1:
            self._add("bad_width", "width", f"a width of {definition.width} would start nothing.", "Use at least 1.")
        if definition.policy.attempts_max < 1:
            self._add("bad_retry", "retry.attempts", "there must be at least one attempt.")
        if definition.policy.delay_ms < 0 or definition.policy.delay_ms_max < definition.policy.delay_ms:
            self._add("bad_retry", "retry.max_delay", "the longest delay is shorter than the first.")
        if definition.cache is not None and definition.undo is not None:
            self._add("bad_cache", "cache", "a step with an undo cannot be cached.")
        if definition.cache is not None and definition.policy.effect == "irreversible":
            self._add("bad_cache", "cache", "an irreversible step cannot be cached.")
