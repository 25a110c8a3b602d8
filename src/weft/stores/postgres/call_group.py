"""Combine calls: everything that is asked for during one call goes into the next. There are no timers, so no delay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from weft.errors import BadValue

Row = TypeVar("Row")
Answer = TypeVar("Answer")

ROWS_PER_CALL = 200


class CallGroup(Generic[Row, Answer]):
    """Passes rows to a function that takes many, one call at a time. Belongs to one event loop."""

    def __init__(self, call: Callable[[Sequence[Row]], Awaitable[Sequence[Answer]]]) -> None:
        """``call`` returns an answer for each row. If it raises BadValue, nothing was written."""
        self._call = call
        self._waiting: list[tuple[Row, asyncio.Future[Answer]]] = []
        self._calling: asyncio.Task[None] | None = None

    async def add(self, row: Row) -> Answer:
        """Return the answer for a row, or raise what its call raised."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, answer))
        if self._calling is None:
            self._calling = asyncio.get_running_loop().create_task(self._call_batches())
        return await answer

    async def _call_batches(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:ROWS_PER_CALL], self._waiting[ROWS_PER_CALL:]
                await self._call_batch(batch)
        finally:
            self._calling = None

    async def _call_batch(self, batch: Sequence[tuple[Row, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._call([row for row, _ in batch])
        except BadValue as error:
            if len(batch) == 1:
                _fail_futures(batch, error)
            for one in batch if len(batch) > 1 else ():  # the others must not suffer for one bad value
                await self._call_batch([one])
        except BaseException as error:
            _fail_futures(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)


def _fail_futures(batch: Sequence[tuple[Row, asyncio.Future[Answer]]], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.cancel() if isinstance(error, asyncio.CancelledError) else future.set_exception(error)
