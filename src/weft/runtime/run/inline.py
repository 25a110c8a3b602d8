"""Inline steps: ``ctx.step("name", lambda: …)``.

The body exists only while the code that defines it is in memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from weft.errors import BadValue, Critical, LimitExceeded, Rollback
from weft.steps.codec import Codec
from weft.steps.raised import call_in_thread
from weft.steps.task import Executor


class InlineStep:
    """A body without arguments: a plain function, which runs in a thread, or one that returns an awaitable."""

    __slots__ = ("_body", "name")

    def __init__(self, name: str, body: InlineBody) -> None:
        self.name = name
        self._body = body

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        return await self._body.perform(self.name, executor)

    def is_final(self, error: BaseException) -> bool:
        return isinstance(error, (Critical, Rollback, BadValue, LimitExceeded))


class InlineBody:
    """The function in the code, and the codec of its result."""

    __slots__ = ("_asynchronous", "_fn", "_result")

    def __init__(self, fn: Callable[[], Any], result: Codec[Any]) -> None:
        self._fn = fn
        self._result = result
        self._asynchronous = inspect.iscoroutinefunction(fn)

    async def perform(self, name: str, executor: Executor) -> bytes:
        if self._asynchronous:
            value = await self._fn()
        else:
            value = await call_in_thread(executor, self._fn)
            if inspect.isawaitable(value):
                value = await value
        return self._result.encode(value, what=f"{name} returned")
