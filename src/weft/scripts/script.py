"""One protocol for every script language: compiled once, called with values by name, no state between calls.

A script is immutable and safe in threads. It sees JSON and gives JSON; what it may use is bounded (`limits`), and
what it did is gone when the call ends. Calls block: on an event loop use the `a…` forms, which run in a thread.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from weft.core.values import encode
from weft.errors import WeftError
from weft.scripts.failures import too_much
from weft.scripts.limits import INPUT_BYTES_MAX


class CompiledScript(ABC):
    """A compiled script. `inputs` are the names it may use, sorted; a value that is not given is null."""

    __slots__ = ("inputs", "language", "source")

    def __init__(self, language: str, source: str, inputs: tuple[str, ...]) -> None:
        self.language = language
        self.source = source
        self.inputs = inputs

    @abstractmethod
    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """What the script gives, as JSON.

        Raises:
            ScriptFailed: it raised, or gave something that is not JSON.
            LimitExceeded: it took too much.
            BadValue: a value given to it is not JSON.
        """

    @abstractmethod
    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the script, as a predicate, gives what its language takes for true. Raises what `evaluate` does."""

    def call(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs: an object as it is, anything else as `result`. Raises what `evaluate` does."""
        value = self.evaluate(values)
        return value if type(value) is dict else {"result": value}

    async def aevaluate(self, values: Mapping[str, Any]) -> Any:
        """`evaluate`, beside the event loop."""
        return await asyncio.to_thread(self.evaluate, values)

    async def aholds(self, values: Mapping[str, Any]) -> bool:
        """`holds`, beside the event loop."""
        return await asyncio.to_thread(self.holds, values)

    async def acall(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """`call`, beside the event loop."""
        return await asyncio.to_thread(self.call, values)

    def arguments(self, values: Mapping[str, Any]) -> bytes:
        """The values of the inputs as a JSON array, in the order of `inputs`."""
        given = [values.get(name) for name in self.inputs]
        what = "The script got"
        try:
            raw = encode(given, what=what)
        except WeftError:
            encode(dict(zip(self.inputs, given, strict=True)), what=what)  # says which input it is
            raise
        if len(raw) > INPUT_BYTES_MAX:
            raise too_much(self.language, "size")
        return raw

    def __repr__(self) -> str:
        return f"<{self.language} script of {len(self.source)} characters>"
