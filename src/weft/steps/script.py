"""Scripts as steps of goals and as nodes of graphs, with JSON in and out."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.goal.definitions import ScriptWay, StepDef, inner_name
from weft.core.values import encode
from weft.errors import UsageError
from weft.scripts import compile_script
from weft.steps.task import Executor


class ScriptStep:
    """Performs the script of one definition, in a thread."""

    __slots__ = ("_names", "_way", "name")

    def __init__(self, definition: StepDef) -> None:
        if not isinstance(definition.way, ScriptWay):
            raise UsageError(f"{definition.id} is not a script.")
        self.name = definition.id
        self._way = definition.way
        self._names = tuple(sorted(inner_name(fact, need) for fact, need in definition.needs.items()))

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        script = compile_script(self._way.script.lang, self._way.script.source, self._names)
        values = msgspec.json.decode(given)
        outputs = await executor.in_thread(lambda: script.call(values))
        return encode(outputs, what=f"{self.name} returned")

    def is_final(self, error: BaseException) -> bool:
        """Return True, because a script that failed would fail again."""
        return True


class _Call(msgspec.Struct):
    language: str
    source: str
    values: dict[str, Any] = {}


_call = msgspec.json.Decoder(_Call).decode


class ScriptNode:
    """Performs the script of a graph node."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        call = _call(given)
        script = compile_script(call.language, call.source, sorted(call.values))
        outputs = await executor.in_thread(lambda: script.call(call.values))
        return encode(outputs, what="the script returned")

    def is_final(self, error: BaseException) -> bool:
        """Return True, because a script that failed would fail again."""
        return True
