"""The task that a step performs, and the protocol of steps: JSON in, JSON out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from weft.core import values
from weft.core.budget_text import check_amount, read_money
from weft.core.code.locations import check_name
from weft.core.trace_context import TraceParent
from weft.errors import Failure, LimitExceeded, NoContext, UsageError

T = TypeVar("T")

TOOL = "weft.tool."
"""The beginning of the names of the steps that perform Weft's own tools for agents."""
MODEL = "weft.model"
"""The built-in step that asks a language model."""
MCP = "weft.mcp"
"""The built-in step that calls a tool of an MCP server."""
CHUNK_BYTES_MAX = 64 * 1024
"""The limit of one chunk of output."""


class EmitOutput(Protocol):
    """Writes a chunk to an output stream of a run, or of the run at the root of its tree."""

    def __call__(self, stream: str, raw: bytes, *, at_root: bool = False) -> None: ...


class Task:
    """The task that a step is performing."""

    __slots__ = (
        "_beat",
        "_emit",
        "_note",
        "_release_slot",
        "_spend",
        "attempt",
        "key",
        "number",
        "output_tokens",
        "place",
        "run_id",
        "step",
    )

    def __init__(
        self,
        *,
        key: str,
        attempt: int,
        run_id: str,
        step: str,
        number: int = 0,
        beat: Callable[[], bool] | None = None,
        release_slot: Callable[[], AbstractContextManager[None]] = nullcontext,
        emit: EmitOutput | None = None,
        place: str = "",
        note: Callable[[str, str, int | None], None] | None = None,
        spend: Callable[[int, int, str], None] | None = None,
        output_tokens: int = 0,
    ) -> None:
        self.key = key
        """A key that is the same in every attempt and delivery of this call. Send it as the idempotency key."""
        self.attempt = attempt
        """The number of the attempt: 1 for the first, and one more after each failure."""
        self.run_id = run_id
        self.step = step
        self.number = number
        """The number of the task in the log of its run; 0 if the task is not in a log."""
        self.place = place
        """Where in the run the task is, such as ``turn/~3/model``; empty if the task is not in a run."""
        self._beat = beat
        self._release_slot = release_slot
        self._emit = emit
        self._note = note
        self._spend = spend
        self.output_tokens = output_tokens
        """How many tokens the budget lets a model write in this call; 0 if it does not say."""

    @property
    def uid(self) -> str:
        """Return the uid of the run. Unlike ``run_id``, it is never reused."""
        return self.key.partition("/")[0]

    def heartbeat(self) -> bool:
        """Report that the step is still working. The step's timeout starts again.

        Returns False if the result is no longer needed. A step in a thread learns in this way that it was cancelled,
        and should stop.
        """
        if self._beat is None:
            raise UsageError(
                f"{self.step} runs in another process, which cannot send heartbeats.",
                hint="Remove run_in='process', or give the step a longer timeout.",
            )
        return self._beat()

    def emit(self, stream: str, chunk: Any) -> None:
        """Write a chunk to an output stream of the run. The stream can be read while the step runs.

        The chunk is stored before the step's result. Another attempt of the step writes its chunks again.
        """
        self._emitter()(check_name(stream), chunk_of(stream, chunk))

    def emit_at_root(self, stream: str, chunk: Any) -> None:
        """Write a chunk to an output stream of the run at the root of the tree, so that one address follows a tree."""
        self._emitter()(check_name(stream), chunk_of(stream, chunk), at_root=True)

    def _emitter(self) -> EmitOutput:
        if self._emit is None:
            raise UsageError(
                f"{self.step} runs in another process, which cannot emit output.",
                hint="Remove run_in='process', or return the output as the result.",
            )
        return self._emit

    def spend(self, *, tokens: int = 0, money: str | Decimal | None = None, currency: str = "") -> None:
        """Report what the step has spent, if it calls a model itself. The amounts of several reports are added.

        ``money`` is text with its currency, such as "0.02 USD", or a ``Decimal`` with ``currency``. The budgets of the
        run and of the runs above it are charged when the result is recorded. From its second call in a run on, the step
        is refused if not even the most that it has spent so far is left.
        """
        if self._spend is None:
            raise UsageError(
                f"{self.step} runs in another process, which cannot report what it spends.",
                hint="Remove run_in='process', or return the amounts and report them in another step.",
            )
        amount, found = (0, "") if money is None else read_money(money, currency)
        self._spend(check_amount("tokens", tokens), amount, found)

    def note_output(self, source: str, text: str, level: int | None = None) -> None:
        """Keep what the step printed to a stream or, with a ``level``, logged. May be called on any thread."""
        if self._note is not None:
            self._note(source, text, level)


CURRENT_TASK: ContextVar[Callable[[], Task]] = ContextVar("weft_task")
"""Makes the task of the current step. Most steps never ask for it."""


class StepTrace(Protocol):
    """The span of an attempt, while its body runs."""

    def traceparent(self) -> TraceParent:
        """Return the span as the parent of what the body calls."""
        ...

    def note(self, attributes: Mapping[str, str | int]) -> None:
        """Add attributes: texts, and integers from 0."""
        ...


STEP_TRACE: ContextVar[StepTrace] = ContextVar("weft_step_trace")
"""The span of the current step, if it is traced."""

_NO_SLOT = nullcontext()


def current_task() -> Task | None:
    """Return the task of the current step, or None outside a step."""
    make = CURRENT_TASK.get(None)
    return make() if make is not None else None


def chunk_of(stream: str, chunk: Any) -> bytes:
    """Encode a chunk of output as JSON. Raises BadValue, LimitExceeded."""
    raw = values.encode(chunk, what=f'the stream "{stream}" got')
    if len(raw) > CHUNK_BYTES_MAX:
        raise LimitExceeded(
            f'A chunk of "{stream}" has {len(raw):,} bytes; the limit is {CHUNK_BYTES_MAX:,}.',
            hint="Emit it in smaller pieces.",
        )
    return raw


def release_slot() -> AbstractContextManager[None]:
    """Release the worker slot of the current step while it waits for a run, which may need it, or only for others."""
    current = current_task()
    return current._release_slot() if current is not None else _NO_SLOT  # noqa: SLF001


def task() -> Task:
    """Return the task of the current step. Raises NoContext outside a step."""
    current = current_task()
    if current is None:
        raise NoContext(
            "weft.task() was called outside a step.",
            hint="In a workflow use weft.context(). A step called outside a workflow is a plain function and has "
            "no task.",
        )
    return current


class Executor(Protocol):
    """Runs bodies that must not run on the event loop."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        """Run a function in a thread, with the context variables of the caller."""
        ...

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        """Run a module-level function in another process."""
        ...


class PerformedElsewhere(Exception):
    """Raised when a body failed in another process. It carries the recorded failure instead of the exception."""

    def __init__(self, failure: Failure, *, final: bool, in_doubt: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.final = final
        self.in_doubt = in_doubt


class StepBody(Protocol):
    """A registered step, as the worker sees it."""

    name: str

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        """Perform the step. Arguments and result are JSON. Raises BadValue, and any exception of the body."""
        ...

    def is_final(self, error: BaseException) -> bool:
        """Return whether a retry cannot help, as for a declared error or ``Critical``."""
        ...
