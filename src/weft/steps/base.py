"""The protocol of steps, with JSON in and JSON out, and the task that a step performs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from weft.core import values
from weft.core.code.locations import check_name
from weft.errors import Failure, LimitExceeded, NoContext, UsageError

T = TypeVar("T")

CHUNK_BYTES_MAX = 64 * 1024
"""The limit of one chunk of output."""


class Task:
    """The task that a step is performing."""

    __slots__ = ("_away", "_beat", "_emit", "attempt", "key", "number", "run_id", "step")

    def __init__(
        self,
        *,
        key: str,
        attempt: int,
        run_id: str,
        step: str,
        number: int = 0,
        beat: Callable[[], bool] | None = None,
        away: Callable[[], AbstractContextManager[None]] = nullcontext,
        emit: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self.key = key
        """The same in every attempt and delivery of this call: send it as the idempotency key."""
        self.attempt = attempt
        """1, 2, 3 … counted over failures."""
        self.run_id = run_id
        self.step = step
        self.number = number
        """The number of the task in the log of its run; 0: it is in no log."""
        self._beat = beat
        self._away = away
        self._emit = emit

    @property
    def uid(self) -> str:
        """Return the uid of the run. Unlike ``run_id``, it is never reused."""
        return self.key.partition("/")[0]

    def heartbeat(self) -> bool:
        """Report that the step is still working. The step's timeout starts again.

        False: the result is no longer needed, so stop. This is how a step in a thread learns that it was cancelled.
        """
        if self._beat is None:
            raise UsageError(
                f"{self.step} runs in another process, which cannot send heartbeats.",
                hint="Leave run_in='process' out, or give the step a longer timeout.",
            )
        return self._beat()

    def emit(self, stream: str, chunk: Any) -> None:
        """Write a chunk to an output stream of the run. The stream can be read while the step runs.

        The chunk is stored before the step's result. A repeated attempt writes again, under its own number.
        """
        if self._emit is None:
            raise UsageError(
                f"{self.step} runs in another process, which cannot emit output.",
                hint="Leave run_in='process' out, or return the output as the result.",
            )
        self._emit(check_name(stream), chunk_of(stream, chunk))


CURRENT_TASK: ContextVar[Task] = ContextVar("weft_task")


def chunk_of(stream: str, chunk: Any) -> bytes:
    """Encode a chunk of output as JSON. Raises BadValue, LimitExceeded."""
    raw = values.encode(chunk, what=f'the stream "{stream}" got')
    if len(raw) > CHUNK_BYTES_MAX:
        raise LimitExceeded(
            f'A chunk of "{stream}" has {len(raw):,} bytes; the limit is {CHUNK_BYTES_MAX:,}.',
            hint="Emit it in smaller pieces.",
        )
    return raw


def away() -> AbstractContextManager[None]:
    """Free the slot of this step while the step waits for a run, which may need the slot."""
    found = CURRENT_TASK.get(None)
    return found._away() if found is not None else nullcontext()  # noqa: SLF001


def task() -> Task:
    """Return the current task. Only inside a step."""
    found = CURRENT_TASK.get(None)
    if found is None:
        raise NoContext(
            "weft.task() outside a step.",
            hint="In a workflow use weft.context(). A step called outside a workflow is the plain function: no task.",
        )
    return found


class Executor(Protocol):
    """Runs bodies that must not run on the event loop."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        """Run a function in a thread, with the context variables of the caller."""
        ...

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        """Run a module-level function in another process."""
        ...


class PerformedElsewhere(Exception):
    """A body failed in another process. Carries the recorded failure instead of the exception."""

    def __init__(self, failure: Failure, *, final: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.final = final


class StepBody(Protocol):
    """A registered step, as the worker sees it."""

    name: str

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        """Perform the step: arguments and result are JSON. Raises any exception of the body, or BadValue."""
        ...

    def is_final(self, error: BaseException) -> bool:
        """Return whether a retry cannot help: for a declared error, or ``Critical``."""
        ...
