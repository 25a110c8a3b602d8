"""The base class of compiled scripts in every language.

A script is called with values by name. It takes and returns JSON, within ``limits``, and keeps no state between calls.
It is immutable and thread-safe. Calls block; on an event loop, use the ``a…`` methods, which run in a thread.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from weft.core.values import encode
from weft.errors import WeftError
from weft.scripts.failures import limit_exceeded
from weft.scripts.limits import INPUT_BYTES_MAX


class CompiledScript(ABC):
    """A compiled script. ``inputs`` are the names that it may use, sorted. A missing value is null."""

    __slots__ = ("inputs", "language", "source")

    def __init__(self, language: str, source: str, inputs: tuple[str, ...]) -> None:
        self.language = language
        self.source = source
        self.inputs = inputs

    @abstractmethod
    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Run the script and return its result as JSON.

        Raises:
            ScriptFailed: the script raised an error, or its result is not JSON.
            LimitExceeded: the script reached a limit.
            BadValue: an input is not JSON.
        """

    @abstractmethod
    def holds(self, values: Mapping[str, Any]) -> bool:
        """Run the script as a predicate.

        Its language decides which results count as true. Raises as ``evaluate`` does.
        """

    def call(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Run the script and return its outputs. A result that is not an object is returned as ``{"result": …}``.

        Raises as ``evaluate`` does.
        """
        value = self.evaluate(values)
        return value if type(value) is dict else {"result": value}

    async def aevaluate(self, values: Mapping[str, Any]) -> Any:
        """Run ``evaluate`` in a thread."""
        return await asyncio.to_thread(self.evaluate, values)

    async def aholds(self, values: Mapping[str, Any]) -> bool:
        """Run ``holds`` in a thread."""
        return await asyncio.to_thread(self.holds, values)

    async def acall(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Run ``call`` in a thread."""
        return await asyncio.to_thread(self.call, values)

    def arguments(self, values: Mapping[str, Any]) -> bytes:
        """Return the values of the inputs as a JSON array, in the order of ``inputs``."""
        arguments = [values.get(name) for name in self.inputs]
        what = "The script got"
        try:
            raw = encode(arguments, what=what)
        except WeftError:
            encode(dict(zip(self.inputs, arguments, strict=True)), what=what)  # this error names the input
            raise
        if len(raw) > INPUT_BYTES_MAX:
            raise limit_exceeded(self.language, "size")
        return raw

    def __repr__(self) -> str:
        return f"<{self.language} script of {len(self.source)} characters>"
