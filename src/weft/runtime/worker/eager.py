"""Begin coroutines at once. One that never waits ends without a task and without a turn of the loop.

Python 3.12 has eager tasks, but it makes a task for every coroutine. Here, coroutines begin on behalf of a spare task,
which is what ``asyncio.current_task`` returns to them. Most of them leave the spare task unused. If one waits, the
spare task continues it, so that timeouts and cancellations that refer to the task hold from the first line on.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator
from typing import Any

Body = Coroutine[Any, Any, None]


class _SpareTask:
    """A task that waits for a coroutine to continue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        self.given: asyncio.Future[None] = loop.create_future()
        self.waits = False
        """The task has begun and waits. A cancellation cannot end it before it knows its coroutine."""
        self._begun: tuple[Body, contextvars.Context, Any] | None = None
        self.task = loop.create_task(self._run(), context=context)
        self.task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it may never be needed

    def give(self, body: Body, context: contextvars.Context, waits_for: Any) -> None:
        """Let the task continue a coroutine that waits for ``waits_for``."""
        self._begun = (body, context, waits_for)
        self.task._log_destroy_pending = True  # type: ignore[attr-defined]  # noqa: SLF001
        if not self.given.done():  # it is, if the coroutine has cancelled its own task
            self.given.set_result(None)

    async def _run(self) -> None:
        self.waits = True
        cancelled: asyncio.CancelledError | None = None
        try:
            try:
                await self.given
            except asyncio.CancelledError as error:
                if self._begun is None:
                    raise
                cancelled = error
            assert self._begun is not None
            body, context, waits_for = self._begun
            if cancelled is not None and waits_for is not None and waits_for.cancel():
                cancelled = None  # what the coroutine waits for tells it
            await _continue(body, context, waits_for, cancelled)
        finally:
            if self._begun is not None:
                body, context, _ = self._begun
                context.run(body.close)  # it has ended, unless this task was closed


@types.coroutine
def _continue(
    body: Body, context: contextvars.Context, waits_for: Any, cancelled: BaseException | None
) -> Generator[Any, Any, None]:
    """Await a coroutine, in its own context, that began elsewhere and now waits for ``waits_for``."""
    try:
        if cancelled is not None:
            waits_for = context.run(body.throw, cancelled)
        while True:
            try:
                value = yield waits_for
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - the coroutine handles it
                waits_for = context.run(body.throw, error)
            else:
                waits_for = context.run(body.send, value)
    except StopIteration:
        return


class EagerStart:
    """Begins coroutines at once, each in a context of its own."""

    def __init__(self) -> None:
        self._spare: _SpareTask | None = None
        self._context = contextvars.copy_context()

    def spare(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
        """Return the task for which the next coroutine can begin at once. None if it needs a task of its own."""
        spare = self._spare
        if spare is not None and spare.waits and not spare.given.done():
            return spare.task
        if spare is None or spare.waits:
            self._spare = _SpareTask(loop, self._context)
        return None

    def begin(self, loop: asyncio.AbstractEventLoop, body: Body, context: contextvars.Context) -> bool:
        """Begin a coroutine for the spare task. Returns whether it waits, so that the task continues it."""
        spare = self._spare
        assert spare is not None, "the caller has asked for it"
        outer = asyncio.current_task(loop)
        if outer is not None:
            asyncio._leave_task(loop, outer)  # noqa: SLF001 - documented for those who extend asyncio
        asyncio._enter_task(loop, spare.task)  # noqa: SLF001
        try:
            waits_for = context.run(body.send, None)
        except StopIteration:
            return False
        finally:
            asyncio._leave_task(loop, spare.task)  # noqa: SLF001
            if outer is not None:
                asyncio._enter_task(loop, outer)  # noqa: SLF001
        self._spare = None
        spare.give(body, context, waits_for)
        return True

    async def close(self) -> None:
        """End the spare task."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.task.cancel()
            await asyncio.wait([spare.task])
