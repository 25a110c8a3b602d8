"""A step that gets its definition as an argument: an HTTP or script step from the catalogue in a frozen plan.

A frozen plan is a graph whose nodes name steps. A step that is not a Python function is written into the graph as
``{definition, arguments}``, with the definition as JSON text.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from weft.core.goal.definitions import StepDef
from weft.errors import BadValue, UnknownStep
from weft.scripts.failures import ScriptFailed
from weft.steps.http.failures import is_final
from weft.steps.pipelines.failures import is_final_failure
from weft.steps.task import Executor, StepBody

DEFINED = "weft.step"


class _DefinitionCall(msgspec.Struct):
    definition: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_decode_call = msgspec.json.Decoder(_DefinitionCall).decode
_decode_definition = msgspec.json.Decoder(StepDef).decode


class DefinedStep:
    """Performs the step of any definition. ``find`` returns the body for a definition."""

    __slots__ = ("_find", "name")

    def __init__(self, find: Callable[[StepDef], StepBody | None]) -> None:
        self.name = DEFINED
        self._find = find

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        try:
            call = _decode_call(given)
            definition = _decode_definition(call.definition)
        except msgspec.DecodeError as error:
            raise BadValue(f"{DEFINED} got no valid definition: {error}.", code="value.wrong_type") from error
        body = self._find(definition)
        if body is None:
            raise UnknownStep(
                f"{definition.id} is neither an HTTP call, a script nor a pipeline.",
                hint="Use the name of the step instead.",
            )
        return await body.perform(bytes(call.arguments), executor)

    def is_final(self, error: BaseException) -> bool:
        """Return whether a retry cannot help, as for HTTP steps. A script always fails again."""
        return is_final(error) or isinstance(error, ScriptFailed) or is_final_failure(error)
