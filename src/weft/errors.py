"""Every error that Weft raises, grouped by what the caller can do about it.

    WeftError                     message, hint, code (``weft help CODE``), context
    ├── UsageError                the calling code is wrong; a repetition does not help
    │   ├── NotRunning  LoopRunning  UsedAfterFork  NotAsync  NoContext  RunAtImport  MissingExtra
    │   ├── NameTaken  UnknownWorkflow  UnknownStep
    │   ├── BadDuration  BadValue (BadExpression, BadScript)  BadGraph  BadPlan  BadSchedule  BadStep  BadPatch
    │   ├── BadPolicy
    │   └── BadHook  BadResource  BadAnswer  PrefixTaken  StreamsInCluster  ForeignAwait
    ├── Refused                   well formed, but not possible now
    │   ├── IdTaken  RunOpen  KeyReused  RunFinished  RunUndone  AlreadyDecided  NotOver  RunKept
    │   ├── PatchRefused (StaleBase)  a patch does not fit the run as it stands: .plan
    │   └── NotAllowed (AddressRefused)  NotFound
    ├── StepFailed                a step failed for good: .failure
    │   ├── OutcomeUnknown        an irreversible step was lost; it may have run
    │   ├── PipelineFailed        a step of a pipeline failed: .index
    │   ├── StepTimedOut          its attempts ran out of time; also a TimedOut
    │   ├── WorkerLost            its worker died too often
    │   └── AgentFailed           an agent came to no answer: .turn .text
    ├── TimedOut                  a wait ran out of time; also a TimeoutError
    ├── BranchesFailed            several branches failed; also an ExceptionGroup, by name in .errors
    ├── RunFailed  RunCancelled   what handle.result() raises
    ├── Diverged                  the code and the log disagree on replay
    ├── StoreError                the store refused, or did not answer
    │   ├── Conflict  Fenced      another process has written
    │   ├── Unavailable           no answer; the outcome is unknown
    │   ├── Full                  no space is left
    │   └── Corrupt (RunUnreadable)  NewerSchema  WrongSchema  stored data cannot be read
    ├── HttpFailed                an HTTP call returned an error; .status
    │   ├── HttpUnavailable       no answer, or a temporary error
    │   ├── NotAnAnswer           the answer cannot be read as outputs
    │   └── ModelFailed           a language model gave no answer; .code says what can help
    ├── ToolFailed  ToolUnavailable  a tool of an MCP server failed; its server gave no answer
    ├── ResourceFailed            a resource could not be opened; .resource
    ├── ScriptFailed              a script in Lua or Ale raised; .line .reason
    ├── EvaluationFailed          an expression cannot be evaluated with its values
    └── LimitExceeded             a limit on size, depth, count or time
        └── BudgetExceeded        not enough of a budget is left for a call: .unit .limit .spent .reserved .wanted

    Critical  Rollback            raised by users: no retry; fail the run now
    Evicted                       control flow, a BaseException: passes ``except Exception``

Cancellation is ``asyncio.CancelledError``. Every class has a stable ``code``; one error may carry a narrower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failure as recorded in the log.

    ``data`` and ``attributes`` are its ``args`` and fields as JSON, ``where`` is "app.py:22", ``cause`` the root in one
    line, ``traceback`` without Weft's frames and secrets. ``in_doubt``: an irreversible step may have been performed.
    """

    type: str
    message: str
    code: str = ""
    step: str = ""
    location: str = ""
    attempts: int = 1
    data: tuple[Any, ...] = ()
    attributes: dict[str, Any] = {}
    where: str = ""
    cause: str = ""
    traceback: str = ""
    in_doubt: bool = False

    def brief(self) -> str:
        """Return the failure in one line, with the step that failed and where."""
        message = self.message.partition("\n")[0].rstrip(". ")
        if self.code.startswith("step.") and message:
            return message  # the message already names the step, its attempts and the place
        step = f"{self.step}: " if self.step else ""
        where = f" at {self.where}" if self.where else ""
        return f"{step}{self.type}{f': {message}' if message else ''}{where}"


class RecordedTraceback(Exception):
    """The recorded traceback of a failure, as the ``__cause__`` of the error that reports it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}" if self.args else ""


class WeftError(Exception):
    """The base class of all errors. ``str()`` says what happened, where, and what to do."""

    code: str = "weft.error"
    in_doubt: bool = False  # what failed may have been performed all the same

    def __init__(self, message: str, *, hint: str = "", code: str | None = None, **context: object) -> None:
        super().__init__(_without_double_stop(message))
        self.hint = _without_double_stop(hint)
        self.context = context
        if code is not None:
            self.code = code

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Steps in other processes pickle their errors. By default, that calls cls(*args) and loses keyword-only fields.
        return _revive, (type(self), self.args, self.__dict__)


def _without_double_stop(text: str) -> str:
    """Remove a doubled full stop, for example after a message that ends with another message."""
    return text[:-1] if text.endswith("..") and not text.endswith("...") else text


def _revive(cls: type[WeftError], args: tuple[Any, ...], attributes: dict[str, object]) -> WeftError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class UsageError(WeftError):
    """The calling code is wrong; nothing was started or changed."""

    code = "usage.invalid"


class NotRunning(UsageError):
    """No engine runs in this process, so the run would never make progress."""

    code = "usage.not_running"


class LoopRunning(UsageError):
    """A blocking call was made where an event loop already runs."""

    code = "usage.loop_running"


class UsedAfterFork(UsageError):
    """A forked process uses an engine or client that its parent had opened before the fork."""

    code = "usage.after_fork"


class NotAsync(UsageError):
    """A workflow must be ``async def``."""

    code = "usage.not_async"


class NoContext(UsageError):
    """``weft.context()`` was called outside a workflow, or ``weft.task()`` outside a step."""

    code = "usage.no_context"


class RunAtImport(UsageError):
    """A module runs its app while it is being imported."""

    code = "usage.run_at_import"


class MissingExtra(UsageError):
    """A part of Weft needs packages that are not installed. The hint has the install command."""

    code = "usage.missing_extra"


class NameTaken(UsageError):
    """Two different things have the same name."""

    code = "usage.name_taken"


class UnknownWorkflow(UsageError):
    """No workflow with that name is registered."""

    code = "usage.unknown_workflow"


class UnknownStep(UsageError):
    """No step with that name is registered."""

    code = "usage.unknown_step"


class BadDuration(UsageError):
    """A value is not a duration."""

    code = "value.bad_duration"


class BadValue(UsageError):
    """A value cannot be stored as JSON (``value.not_json``), or has the wrong type (``value.wrong_type``)."""

    code = "value.not_json"


class BadGraph(UsageError):
    """An invalid graph document or builder. ``findings`` lists its errors and warnings."""

    code = "graph.invalid"

    @property
    def findings(self) -> Sequence[Any]:
        findings = self.context.get("findings", ())
        return findings if isinstance(findings, list) else []


class BadSchedule(UsageError):
    """A schedule cannot be as it is described; ``findings`` has everything that is wrong with it."""

    code = "schedule.invalid"

    @property
    def findings(self) -> Sequence[Any]:
        found = self.context.get("findings", ())
        return found if isinstance(found, list) else []


class BadHook(UsageError):
    """A hook cannot be as it is declared: its kinds, its filter or its function are wrong."""

    code = "hook.invalid"


class BadPolicy(UsageError):
    """A policy cannot be read; ``findings`` has everything that is wrong with it."""

    code = "policy.invalid"


class BadPatch(UsageError):
    """A patch is not valid in itself, whatever the run; ``findings`` has everything that is wrong with it."""

    code = "patch.invalid"

    @property
    def findings(self) -> Sequence[Any]:
        found = self.context.get("findings", ())
        return found if isinstance(found, list) else []


class BadResource(UsageError):
    """A resource cannot be used as it is declared: it is unknown, ambiguous, needs itself, or is also an input."""

    code = "resource.invalid"


class BadPlan(UsageError):
    """The steps in the catalogue cannot reach a goal."""

    code = "goal.missing"


class ForeignAwait(UsageError):
    """A workflow waits for something that Weft cannot record."""

    code = "code.foreign_await"


class Refused(WeftError):
    """The request is well formed, but not possible in the current state. Nothing was changed."""

    code = "run.refused"


class IdTaken(Refused):
    """A run with this id exists, with another workflow or input."""

    code = "run.id_taken"


class RunOpen(Refused):
    """A run with the same key is open, and its workflow allows one at a time."""

    code = "run.open"


class KeyReused(Refused):
    """An idempotency key was used again with another body."""

    code = "run.key_reused"


class RunFinished(Refused):
    """The run is over."""

    code = "run.finished"


class NotOver(Refused):
    """A run that is not over, or whose tree is not, cannot be deleted."""

    code = "run.not_over"


class RunKept(Refused):
    """A hold keeps the run from deletion."""

    code = "run.kept"


class RunUndone(Refused):
    """The completed work of the run was undone, so the run cannot continue."""

    code = "run.undone"


class AlreadyDecided(Refused):
    """The question has already been answered."""

    code = "run.already_decided"


class PatchRefused(Refused):
    """A patch does not fit the run as it stands. ``plan`` has all reasons, and what the patch would do."""

    code = "patch.refused"

    @property
    def plan(self) -> Any:
        return self.context.get("plan")

    @property
    def findings(self) -> Sequence[Any]:
        found = self.context.get("findings", ())
        return found if isinstance(found, list) else []


class StaleBase(PatchRefused):
    """A patch was written against a version that is no longer the present one."""

    code = "patch.stale_base"


class NotAllowed(Refused):
    """The caller does not have permission."""

    code = "access.not_allowed"


class NotFound(Refused):
    """No such run, message, question or definition."""

    code = "run.not_found"


class StepFailed(WeftError):
    """A step failed for good. The workflow can catch this error and continue."""

    code = "step.failed"

    def __init__(
        self, message: str, *, failure: Failure, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.failure = failure


class OutcomeUnknown(StepFailed):
    """An irreversible step was lost, timed out, or returned what cannot be stored. It is not retried."""

    code = "step.outcome_unknown"


class WorkerLost(StepFailed):
    """The workers of a step died repeatedly before it ended."""

    code = "step.worker_lost"


class TimedOut(WeftError, TimeoutError):
    """A wait ran out of time. ``failure`` is the recorded failure, if there is one."""

    code = "wait.timed_out"

    def __init__(
        self,
        message: str,
        *,
        failure: Failure | None = None,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.failure = failure


class StepTimedOut(StepFailed, TimedOut):
    """Every attempt of a step ran out of time. ``except StepFailed`` and ``except TimedOut`` both catch it."""

    code = "step.timed_out"
    failure: Failure


class BranchesFailed(WeftError, ExceptionGroup[Exception]):
    """Several branches of a join or map failed. This is an ExceptionGroup; ``errors`` has the errors by branch name.

    Takes ``{name: exception}``, or a sequence, whose items are named by position.
    """

    code = "run.branches_failed"
    errors: dict[str, Exception]

    def __new__(
        cls, message: str, exceptions: Mapping[str, Exception] | Sequence[Exception], **_context: object
    ) -> Self:
        return super().__new__(cls, message, list(_by_name(exceptions).values()))

    def __init__(
        self,
        message: str,
        exceptions: Mapping[str, Exception] | Sequence[Exception],
        *,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.errors = _by_name(exceptions)
        self.args = (message, list(self.errors.values()))

    def derive(self, excs: Sequence[Any], /) -> BranchesFailed:  # type: ignore[override]  # contains only Exceptions
        """Keep the names when ``split`` and ``except*`` take the group apart."""
        names = {id(error): name for name, error in self.errors.items()}
        part = {names.get(id(error), str(index)): error for index, error in enumerate(excs)}
        # Splitting a nested group creates a new object that has no name here. Its errors must not be lost.
        kept: Mapping[str, Exception] | Sequence[Exception] = part if len(part) == len(excs) else excs
        return BranchesFailed(self.message, kept, hint=self.hint, code=self.code, **self.context)


def _by_name(exceptions: Mapping[str, Exception] | Sequence[Exception]) -> dict[str, Exception]:
    if isinstance(exceptions, Mapping):
        return dict(exceptions)
    return {str(index): error for index, error in enumerate(exceptions)}


class RunFailed(WeftError):
    """The run ended in failure; its undos have run."""

    code = "run.failed"

    def __init__(
        self, message: str, *, run_id: str, failure: Failure, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.run_id = run_id
        self.failure = failure
        if failure.traceback:
            self.__cause__ = RecordedTraceback(failure.traceback)


class RunCancelled(WeftError):
    """The run was cancelled; its undos have run."""

    code = "run.cancelled"

    def __init__(
        self, message: str, *, run_id: str, reason: str = "", hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.run_id = run_id
        self.reason = reason


class Diverged(WeftError):
    """The log has ``recorded`` at ``location``, but the code requests ``asked``.

    The run is held until a person acts.
    """

    code = "code.diverged"

    def __init__(
        self,
        message: str,
        *,
        location: str,
        recorded: str,
        asked: str,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.location = location
        self.recorded = recorded
        self.asked = asked


class StoreError(WeftError):
    """The store could not perform an operation."""

    code = "store.failed"


class Conflict(StoreError):
    """The log does not end where the writer expected."""

    code = "store.conflict"


class Fenced(StoreError):
    """Another host owns the run now."""

    code = "store.fenced"


class Unavailable(StoreError):
    """The store did not answer or is not writable. The operation may or may not have happened."""

    code = "store.unavailable"


class Corrupt(StoreError):
    """Stored data cannot be read."""

    code = "store.corrupt"


class RunUnreadable(Corrupt):
    """Stored data of a run cannot be read, so the run is held and accepts no commands."""

    code = "run.unreadable"


class NewerSchema(StoreError):
    """The store was written by a newer Weft."""

    code = "store.newer_schema"


class WrongSchema(StoreError):
    """The store lacks tables or columns that its schema number promises."""

    code = "store.wrong_schema"


class Full(StoreError):
    """The store has no space left."""

    code = "store.full"


class ResourceFailed(WeftError):
    """A resource could not be opened. ``resource`` is its name."""

    code = "resource.failed"

    @property
    def resource(self) -> str:
        return str(self.context.get("resource", ""))


class LimitExceeded(WeftError):
    """A limit on size, depth, count or time was reached; nothing was stored."""

    code = "limit.exceeded"


class BudgetExceeded(LimitExceeded):
    """Not enough of a budget is left for a call, so it was not made. Money is in millionths, time in milliseconds."""

    code = "budget.exceeded"
    FACTS = ("unit", "limit", "spent", "reserved", "wanted", "run", "per")
    run: str
    """The run whose budget it is; empty for a limit of the policy."""
    per: str
    """The window of time of a limit of the policy, such as ``day``; empty for the budget of a run."""
    unit: str
    limit: int
    spent: int
    reserved: int
    wanted: int

    def __getattr__(self, name: str) -> Any:
        if name not in self.FACTS:
            raise AttributeError(name)
        return self.context.get(name, "" if name in ("unit", "run", "per") else 0)


class Critical(Exception):
    """Raise in a step to make it fail now, without retries."""


class Rollback(Exception):
    """Raise in a workflow to make the run fail now. Its completed steps are undone, newest first."""


class Evicted(BaseException):
    """The engine removes the run from memory. Nothing is recorded, and the reaction of the code is ignored."""
