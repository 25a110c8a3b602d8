"""The protocol of steps: JSON in, JSON out, with the task that is being performed."""

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
        """The same in every attempt and delivery of this very call: send it as idempotency key."""
        self.attempt = attempt
        """1, 2, 3 … counted over failures."""
        self.run_id = run_id
        self.step = step
        self.number = number
        """Of the task in the log of its run; 0: it is in none."""
        self._beat = beat
        self._away = away
        self._emit = emit

    @property
    def uid(self) -> str:
        """Return the uid of the run. Unlike ``run_id``, it is never reused."""
        return self.key.partition("/")[0]

    def heartbeat(self) -> bool:
        """Report that the work goes on. The step's timeout starts again.

        False: nobody waits for the result any more, so stop. Only there does a thread learn that it was cancelled.
        """
        if self._beat is None:
            raise UsageError(
                f"{self.step} runs in another process, from where no heartbeat can be sent.",
                hint="Leave run_in='process' out, or give the step a longer timeout.",
            )
        return self._beat()

    def emit(self, stream: str, chunk: Any) -> None:
        """Write to an output stream of the run. Others can read it while the step runs.

        It is stored before the step's result is. An attempt that is repeated writes again, under its own number.
        """
        if self._emit is None:
            raise UsageError(
                f"{self.step} runs in another process, from where nothing can be emitted.",
                hint="Leave run_in='process' out, or return what it has to say.",
            )
        self._emit(check_name(stream), chunk_of(stream, chunk))


CURRENT_TASK: ContextVar[Task] = ContextVar("weft_task")


def chunk_of(stream: str, chunk: Any) -> bytes:
    """Encode a piece of output as JSON. Raises BadValue, LimitExceeded."""
    raw = values.encode(chunk, what=f'the stream "{stream}" got')
    if len(raw) > CHUNK_BYTES_MAX:
        raise LimitExceeded(
            f'A chunk of "{stream}" has {len(raw):,} bytes; the limit is {CHUNK_BYTES_MAX:,}.',
            hint="Emit it in smaller pieces.",
        )
    return raw


def away() -> AbstractContextManager[None]:
    """Free the slot of this step while it waits for a run, which may need the slot."""
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
        """Run it in a thread; its context variables are those of the caller."""
        ...

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        """Run a module-level function in another process."""
        ...


class PerformedElsewhere(Exception):
    """A body failed in another process. Has what is left of its exception."""

    def __init__(self, failure: Failure, *, final: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.final = final


class StepBody(Protocol):
    """A registered step, as the worker sees it."""

    name: str

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        """Perform the step: arguments and result are JSON. Raises what the body raises, or BadValue."""
        ...

    def is_final(self, error: BaseException) -> bool:
        """Return whether a retry cannot help: for a declared error, or ``Critical``."""
        ...
