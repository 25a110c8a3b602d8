"""Steps that are Python functions. Async functions run on the event loop, others in a thread or a process."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from weft.errors import BadValue, Critical, Failure, LimitExceeded, Rollback, UsageError, WeftError
from weft.steps.attempt_log import AttemptOutput
from weft.steps.codec import Codec
from weft.steps.failures import failure_of_step
from weft.steps.output_capture import capture_output
from weft.steps.raised import call_in_thread
from weft.steps.secrets import strike_json
from weft.steps.signature import Signature
from weft.steps.task import CURRENT_TASK, Executor, PerformedElsewhere, Task, current_task
from weft.steps.task_permissions import PERMITS, Permits

FailedElsewhere = tuple[bytes, bool, bool]
"""The failure, whether it is final, and whether the function may have been performed all the same."""


class PythonStep:
    """A Python function with its type hints."""

    __slots__ = ("_asynchronous", "_raises", "_result", "_returned", "_signature", "fn", "name", "run_in")

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        signature: Signature,
        *,
        raises: Sequence[type[Exception]] = (),
        run_in: Literal["thread", "process"] = "thread",
    ) -> None:
        self.name = name
        self.fn = fn
        self.run_in = run_in
        self._signature = signature
        self._result: Codec[Any] = signature.result
        self._returned = f"{name} returned"
        self._raises = tuple(raises)
        self._asynchronous = inspect.iscoroutinefunction(fn)
        if signature.injected and run_in == "process":
            raise UsageError(
                f"{name} runs in another process, which has no resources.", hint='Remove run_in="process", or them.'
            )
        if run_in == "process":
            self._refuse_unreachable()

    def _refuse_unreachable(self) -> None:
        """Reject a function that another process cannot find by its name."""
        if self._asynchronous:
            raise UsageError(
                f"{self.name} is async, so it runs on the event loop.", hint="run_in='process' is for plain `def`."
            )
        if "<" in self.fn.__qualname__:
            raise UsageError(
                f"{self.name} is defined inside a function, so another process cannot find it.",
                hint="Move it to the top level of its module, or remove run_in='process'.",
            )

    def _refuse_hidden(self) -> None:
        """Raise BadValue if its function's name stands for something else than the step, as that is what is sent."""
        module = sys.modules.get(self.fn.__module__)
        if module is not None and not isinstance(_body_at(module, self.fn.__qualname__), PythonStep):
            place = f"{self.fn.__module__}.{self.fn.__qualname__}"
            raise BadValue(
                f"{self.name} runs in another process, which looks for it at {place}, and that is not the step.",
                hint=f"Write @app.step above `def {self.fn.__name__}` and all its other decorators.",
            )

    def check_result(self, raw: bytes) -> None:
        """Raise BadValue if this is not a result that the function could return, as JSON."""
        self._result.decode(raw, what=f"The result of {self.name} is")

    async def perform(self, given: bytes, executor: Executor) -> bytes:
        if self.run_in == "process":
            return await self._perform_in_process(given, executor)
        arguments = self._signature.unpack(given, what=self.name)
        if self._asynchronous:
            value = await self.fn(**arguments)
        else:
            value = await call_in_thread(executor, partial(self.fn, **arguments))
        return self.encode_result(value)

    def encode_result(self, value: Any) -> bytes:
        """Encode what the function returned. An error says that the function was performed."""
        try:
            return self._result.encode(value, what=self._returned)
        except WeftError as error:
            error.in_doubt = True
            raise

    async def _perform_in_process(self, given: bytes, executor: Executor) -> bytes:
        task = current_task()
        assert task is not None, "a step is performed for a task"
        self._refuse_hidden()
        where = (self.fn.__module__, self.fn.__qualname__)
        permits = PERMITS.get(None)
        answer, failed, printed = await executor.in_process(
            perform_here,
            where,
            given,
            (task.key, task.attempt, task.run_id, task.step),
            permits.for_process() if permits is not None else None,
        )
        for source, text, level in printed:
            task.note_output(source, text, level)
        if failed is None:
            return answer
        failure, final, in_doubt = failed
        raise PerformedElsewhere(msgspec.json.decode(failure, type=Failure), final=final, in_doubt=in_doubt)

    def perform_now(self, given: bytes) -> bytes:
        """Perform the step on this thread."""
        arguments = self._signature.unpack(given, what=self.name)
        return self.encode_result(self.fn(**arguments))

    def is_final(self, error: BaseException) -> bool:
        if isinstance(error, PerformedElsewhere):
            return error.final
        return isinstance(error, (Critical, Rollback, BadValue, LimitExceeded, *self._raises))


def perform_here(
    where: tuple[str, str], given: bytes, task: tuple[str, int, str, str], permits: Permits | None
) -> tuple[bytes, FailedElsewhere | None, list[tuple[str, str, int]]]:
    """Perform a step in a child process. Arguments and result are JSON, so that only plain data is exchanged.

    Returns the result or how it failed, and the lines that the step printed.
    """
    key, attempt, run_id, name = task
    output = AttemptOutput()
    CURRENT_TASK.set(partial(Task, key=key, attempt=attempt, run_id=run_id, step=name, note=output.note))
    body: PythonStep = _body_at(importlib.import_module(where[0]), where[1])
    end_capture = capture_output()
    PERMITS.set(permits)  # to None, too: the process may have performed other tasks
    try:
        return strike_json(body.perform_now(given)), None, output.lines()
    except BaseException as error:  # noqa: BLE001 - any exception of the body is the step's failure
        failure = failure_of_step(error, step=name, attempts=attempt)
        in_doubt = isinstance(error, WeftError) and error.in_doubt
        return b"", (msgspec.json.encode(failure), body.is_final(error), in_doubt), output.lines()
    finally:
        end_capture()


def _body_at(module: object, place: str) -> Any:
    """Return the body of the step at a place in a module; None if there is no step."""
    found: Any = module
    for part in place.split("."):
        found = getattr(found, part, None)
    return getattr(found, "body", None)
