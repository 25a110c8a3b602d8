"""Steps that are Python functions: async on the loop, plain ones in a thread, CPU work in a process on request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from weft.errors import BadValue, Critical, LimitExceeded, Rollback
from weft.steps.base import Executor
from weft.steps.codec import Codec
from weft.steps.signature import Signature


class PythonStep:
    """One function, with the types of its hints."""

    __slots__ = ("_asynchronous", "_raises", "_result", "_signature", "fn", "name", "run_in")

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        signature: Signature,
        *,
        raises: Sequence[type[BaseException]] = (),
        run_in: Literal["thread", "process"] = "thread",
    ) -> None:
        self.name = name
        self.fn = fn
        self.run_in = run_in
        self._signature = signature
        self._result: Codec[Any] = signature.result
        self._raises = tuple(raises)
        self._asynchronous = inspect.iscoroutinefunction(fn)

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        arguments = self._signature.unpack(given)
        if self._asynchronous:
            value = await self.fn(**arguments)
        elif self.run_in == "process":
            value = await executor.in_process(self.fn, arguments)
        else:
            value = await executor.in_thread(partial(self.fn, **arguments))
        return self._result.encode(value, what=f"{self.name} returned")

    def is_final(self, error: BaseException) -> bool:
        return isinstance(error, (Critical, Rollback, BadValue, LimitExceeded, *self._raises))
