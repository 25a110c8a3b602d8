"""Steps as a document has them, as far as the golden cases go, and the languages that they are written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.conditions import BadExpression, compile_condition, compile_expression, compile_template
from weft.conditions.schemas import compile_schema
from weft.core.durations import duration_ms
from weft.core.events import Policy, Style, UndoPlan
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import Give, GoalWay, HttpWay, Need, Script, StepDef, StepWay
from weft.core.goal.plan import GoalPlan
from weft.core.goal.scripts import script_predicate
from weft.core.run.env import MissingInputs, Predicate
from weft.runtime.schema_check import check_schema


class Languages:
    """CEL is really compiled; Lua and Ale are taken as they are."""

    def script(self, script: Script, names: Sequence[str]) -> str | None:
        if script.lang != "cel":
            return None
        try:
            used = compile_expression(script.source).names
        except BadExpression as error:
            return error.message
        unknown = sorted(used - set(names))
        return f"nothing is called {unknown[0]}" if unknown else None

    def schema(self, schema: dict[str, Any]) -> str | None:
        try:
            compile_schema(schema)
        except BadExpression as error:
            return error.message
        return None

    def fits(self, schema: dict[str, Any], raw: bytes) -> str | None:
        return check_schema(schema, raw)


class Reader:
    """CEL on the spot; anything else is a question, answered by whoever plays the shell."""

    def __init__(self) -> None:
        self.answers: dict[Predicate, Any] = {}
        self.asked: list[Predicate] = []

    def holds(self, script: Script, bindings: Mapping[str, Any]) -> bool:
        if script.lang != "cel":
            return bool(self._answer(script, bindings))
        return compile_condition(script.source).evaluate(bindings).value

    def value(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        if script.lang != "cel":
            return self._answer(script, bindings)
        return compile_expression(script.source).evaluate(bindings)

    def text(self, template: str, bindings: Mapping[str, Any]) -> str:
        return str(compile_template(template).evaluate(bindings))

    def names(self, script: Script) -> frozenset[str]:
        if script.lang != "cel":
            return frozenset(script.source.replace("(", " ").replace(")", " ").split())
        return compile_expression(script.source).names

    def _answer(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        asked = script_predicate(script, bindings)
        if asked not in self.answers:
            raise MissingInputs(questions=[asked])
        found = self.answers[asked]
        if isinstance(found, Exception):
            raise found
        return found


class Program:
    """A program whose steps have the names that their definitions say."""

    def __init__(self) -> None:
        self.reader = Reader()

    def version_of(self, workflow: str) -> tuple[str, Style]:
        return "1", "code"

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan | None:
        return None

    def body(self, definition: StepDef) -> str:
        return definition.way.step if isinstance(definition.way, StepWay) else f"http:{definition.id}"


def catalogue_of(steps: Sequence[StepDef]) -> Catalogue:
    """All steps, registered one by one as users do."""
    catalogue = Catalogue()
    for step in steps:
        for event in catalogue.register(step, Languages()):
            catalogue.evolve(event)
    return catalogue


def steps_of(document: Mapping[str, Any]) -> list[StepDef]:
    return [step_of(step_id, body) for step_id, body in document.items()]


def step_of(step_id: str, body: Mapping[str, Any]) -> StepDef:
    way: Any = GoalWay(list(body["goal"])) if "goal" in body else StepWay(body.get("step", step_id))
    if "http" in body:
        way = HttpWay(url=body["http"]["url"], answer=body["http"].get("answer", "now"))
    return StepDef(
        id=step_id,
        way=way,
        needs={fact: _need(said) for fact, said in body.get("needs", {}).items()},
        gives={fact: _give(said) for fact, said in body.get("gives", {}).items()},
        when=_script(body.get("when")),
        policy=_policy(body),
        width=body.get("width", 1),
        undo=UndoPlan(body["undo"], ["result"]) if "undo" in body else None,
    )


def _need(said: Any) -> Need:
    if not isinstance(said, dict):
        return Need(type=said)
    role = "const" if "const" in said else "optional" if "default" in said or said.get("optional") else "required"
    deadline = said.get("deadline")
    return Need(
        role=role,  # type: ignore[arg-type]
        type=said.get("type"),
        name=said.get("name", ""),
        collect=said.get("collect", "first"),
        match=_script(said.get("match")),
        each=said.get("each", False),
        default=said.get("default", msgspec.UNSET),
        deadline=duration_ms(deadline) if deadline not in (None, "wait") else deadline,
        value=said.get("const", msgspec.UNSET),
    )


def _give(said: Any) -> Give:
    if not isinstance(said, dict):
        return Give(type=said)
    return Give(type=said.get("type"), key=said.get("name", ""), mapping=_script(said.get("mapping")))


def _script(said: Any) -> Script | None:
    if said is None or isinstance(said, Script):
        return said
    if isinstance(said, dict):
        return Script(said["source"], said["lang"])
    return Script(str(said))


def _policy(body: Mapping[str, Any]) -> Policy:
    retry = body.get("retry", {"attempts": 1})
    return Policy(
        attempts_max=retry.get("attempts", 4),
        backoff=retry.get("backoff", "exponential"),
        delay_ms=duration_ms(retry.get("delay", "200ms")),
        delay_ms_max=max(30_000, duration_ms(retry.get("max_delay", "30s"))),
        timeout_ms=duration_ms(body["timeout"]) if "timeout" in body else 0,
        effect=body.get("effect", "idempotent"),
    )
