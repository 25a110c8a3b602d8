"""HTTP and script steps in the catalogue that are called by name: by a node in a graph, or as an undo.

A step that needs a plan (with gates, work items, predicates or inner names) cannot be called by name. Use it as a goal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.goal.definitions import HttpWay, Need, PipelineWay, ScriptWay, StepDef
from weft.core.values import encode
from weft.errors import BadValue
from weft.steps.task import Executor, StepBody

_arguments = msgspec.json.Decoder(dict[str, Any]).decode


def why_planned(definition: StepDef) -> str:
    """Return why a step cannot be called by name, or an empty string if it can."""
    if not isinstance(definition.way, HttpWay | ScriptWay | PipelineWay):
        return "it is neither an HTTP call, a script nor a pipeline"
    if definition.when is not None:
        return "it has a predicate"
    for fact, need in definition.needs.items():
        if need.each or need.is_gate or need.collect != "first":
            return f"only a plan can collect {fact}"
        if need.meta or need.mapping is not None:
            return f"{fact} is computed when it starts"
        if need.name:
            return f"{fact} has another name inside the step"
    for fact, give in definition.gives.items():
        if give.key or give.mapping is not None:
            return f"{fact} has another name inside the step"
    return ""


def argument_names(definition: StepDef) -> list[str]:
    """Return the names of the step's arguments."""
    return [fact for fact, need in definition.needs.items() if need.role in ("required", "optional")]


class CataloguedStep:
    """Adds constants and defaults to the arguments, and performs the step."""

    __slots__ = ("_body", "_needs", "name")

    def __init__(self, definition: StepDef, body: StepBody) -> None:
        self.name = definition.id
        self._needs: dict[str, Need] = definition.needs
        self._body = body

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        try:
            arguments = _arguments(given)
        except msgspec.ValidationError as error:
            raise BadValue(f"{self.name} got no valid arguments: {error}.", code="value.wrong_type") from error
        for fact, need in self._needs.items():
            if need.role == "const":
                arguments[fact] = need.value
            elif fact not in arguments and need.default is not msgspec.UNSET:
                arguments[fact] = need.default
        missing = [fact for fact, need in self._needs.items() if need.role == "required" and fact not in arguments]
        if missing:
            raise BadValue(f"{self.name} needs {', '.join(missing)}.", code="value.wrong_type")
        return await self._body.perform(encode(arguments, what=f"{self.name} was given"), executor)

    def is_final(self, error: BaseException) -> bool:
        return self._body.is_final(error)
