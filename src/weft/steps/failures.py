"""Convert exceptions to ``Failure`` and back, with the same result live and on replay.

An exception whose class is in ``raises`` keeps its class, its ``args`` and its attributes, as JSON. Every other
exception becomes ``StepFailed``. Class names in the data are looked up only among the classes in ``raises``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from weft.core.run.repeats import is_in_doubt
from weft.core.values import decode, encode, preview_text
from weft.errors import (
    BudgetExceeded,
    Failure,
    OutcomeUnknown,
    RecordedTraceback,
    Rollback,
    StepFailed,
    StepTimedOut,
    TimedOut,
    WeftError,
    WorkerLost,
)
from weft.pipelines.faults import FAMILY, PipelineFailed
from weft.steps.secrets import replace_secrets, strike_value
from weft.steps.tracebacks import traceback_of, user_line_of

T = TypeVar("T")

MESSAGE_CHARS_MAX = 2_000
DATA_BYTES_MAX = 8 * 1024
ROLLBACK = "run.rollback"
"""The code of ``weft.Rollback``, which a workflow gets as ``Rollback``, not as ``StepFailed``."""
_NEVER_ITSELF = frozenset(
    {"BaseExceptionGroup", "CancelledError", "GeneratorExit", "KeyboardInterrupt", "StopIteration", "SystemExit"}
)
"""Exceptions with a special meaning for Python or asyncio, which must not be raised in a workflow."""
_RECORDED = "__weft_failure__"
"""The attribute in which a rebuilt exception keeps its recorded failure."""


def failure_of(error: BaseException, *, step: str = "", location: str = "", attempts: int = 1) -> Failure:
    """Convert an exception to a ``Failure`` for the log. Never raises, even if the exception is malformed."""
    return Failure(
        type=type(error).__name__,
        message=text_of(error),
        code=_code(error),
        step=step,
        location=location,
        attempts=attempts,
        data=tuple(strike_value(_failure_json(read_safely(lambda: list(_arguments(error)), []), []))),
        attributes=read_safely(lambda: _attributes(error), {}),
        where=read_safely(lambda: user_line_of(error.__traceback__), ""),
    )


def read_safely(ask: Callable[[], T], default: T) -> T:
    """Read something from an exception of user code, or return the default if reading raises.

    The properties and ``__str__`` of an exception are user code, too. They may raise anything, even a
    ``KeyboardInterrupt``, which would otherwise end the host.
    """
    try:
        return ask()
    except BaseException:  # noqa: BLE001
        return default


def _code(error: BaseException) -> str:
    if isinstance(error, WeftError):
        return error.code
    return ROLLBACK if isinstance(error, Rollback) else ""


def failure_of_step(error: BaseException, *, step: str, location: str = "", attempts: int) -> Failure:
    """Convert the exception that ended an attempt, with its traceback."""
    failure = failure_of(error, step=step, location=location, attempts=attempts)
    return msgspec.structs.replace(failure, traceback=traceback_of(error))


def failure_of_run(error: BaseException) -> Failure:
    """Convert the exception that ended a run, with the step that caused it and the reason."""
    failure = failure_of(error)
    nothing: list[tuple[BaseException, Failure]] = []
    causes = read_safely(lambda: list(_recorded_causes(error)), nothing)
    if not causes:
        return msgspec.structs.replace(failure, traceback=traceback_of(error))
    found, root = causes[0]
    return msgspec.structs.replace(
        failure,
        step=root.step,
        location=root.location,
        attempts=root.attempts,
        cause=root.cause if found is error else root.cause or root.brief(),
        traceback=traceback_of(error),
        in_doubt=any(is_in_doubt(cause) for _, cause in causes),
    )


def recorded(error: BaseException) -> Failure | None:
    """Return the recorded failure from which an exception was rebuilt; None if it was not."""
    attributes: dict[str, Any] = read_safely(lambda: vars(error), {})
    for name in (_RECORDED, "failure"):
        failure = attributes.get(name)
        if isinstance(failure, Failure):
            return failure
    return None


def _recorded_causes(error: BaseException) -> Iterator[tuple[BaseException, Failure]]:
    """Yield this exception, its branches and its causes as far as they were rebuilt from failures, nearest first."""
    todo, seen = [error], set[int]()
    while todo:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        failure = recorded(one)
        if failure is not None:
            yield one, failure
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
        following = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if following is not None:
            todo.append(following)


def rebuild_error(failure: Failure, raises: Sequence[type[BaseException]] = (), *, run_id: str = "") -> Exception:
    """Return a new exception for a recorded failure, which is then raised in the workflow."""
    for cls in _classes_named(failure.type, raises):
        if issubclass(cls, Exception):
            error = _made(cls, failure)
            if error is not None:
                return error
    return _marked(_rebuilt(failure, raises, run_id), failure)


def _marked(error: Exception, failure: Failure) -> Exception:
    vars(error)[_RECORDED] = failure
    if failure.traceback:
        error.__cause__ = RecordedTraceback(failure.traceback)
    return error


def _rebuilt(failure: Failure, raises: Sequence[type[BaseException]], run_id: str) -> Exception:
    if failure.code == ROLLBACK:
        return Rollback(*(failure.data or (failure.message,)))
    if failure.code == BudgetExceeded.code:
        facts = {name: failure.attributes[name] for name in BudgetExceeded.FACTS if name in failure.attributes}
        hint = recorded_hint(failure) or "To raise it: weft budget RUN --add UNIT=AMOUNT"
        return BudgetExceeded(f"{failure.message.rstrip('. ')}.", hint=hint, **facts)
    if failure.code in (StepTimedOut.code, TimedOut.code) and failure.step:
        times = f" in each of {failure.attempts} attempts" if failure.attempts > 1 else ""
        what = f"{failure.step} timed out{times}{_reason_text(failure)}."
        return StepTimedOut(what, failure=failure, hint=_retry(run_id))
    if failure.code == TimedOut.code:
        return TimedOut(f"{failure.message.rstrip('. ')}.", failure=failure)
    if failure.code == OutcomeUnknown.code:
        what = (
            f"{_step(failure)} ended without a result{_reason_text(failure)}. It may have been performed, so it is not "
            "repeated."
        )
        return OutcomeUnknown(what, failure=failure, hint="Find out whether it was performed, and continue by hand.")
    if failure.code == WorkerLost.code:
        what = f"{_step(failure)} was given up, because its workers died each time{_reason_text(failure)}."
        return WorkerLost(what, failure=failure, hint=f"Does it exhaust memory? {_retry(run_id)}".rstrip())
    if failure.code.startswith(FAMILY):
        index = failure.attributes.get("index")
        hint = f"{recorded_hint(failure)} {_retry(run_id)}".strip()
        what = _failed(failure, run_id)
        return PipelineFailed(what, index=index, failure=failure, hint=hint, code=failure.code)
    return StepFailed(_failed(failure, run_id), failure=failure, hint=_failed_hint(failure, raises, run_id))


def _failed(failure: Failure, run_id: str) -> str:
    times = f"failed after {failure.attempts} attempts" if failure.attempts > 1 else "failed"
    run = f" in {run_id}" if run_id else ""
    last = "last: " if failure.attempts > 1 else ""
    return f"{_step(failure)} {times}{run}, {last}{_exception_text(failure)}{_where_text(failure)}."


def _failed_hint(failure: Failure, raises: Sequence[type[BaseException]], run_id: str) -> str:
    if failure.code:  # a Weft error: its message says what to do
        return f"{recorded_hint(failure)} {_retry(run_id)}".strip()
    if any(True for _ in _classes_named(failure.type, raises)):
        catch = f"{failure.type} could not be rebuilt from its args {preview_text(failure.data)}."
    elif failure.type in _NEVER_ITSELF:
        catch = f"A workflow cannot catch {failure.type} from a step: catch weft.StepFailed, or raise an Exception."
    else:
        catch = f"To catch {failure.type} itself: @app.step(raises=[{failure.type}])."
    return f"{catch} {_retry(run_id)}".rstrip()


def recorded_hint(failure: Failure) -> str:
    """Return the recorded hint of a Weft error; empty for other exceptions."""
    return str(failure.attributes.get("hint", "")) if failure.code else ""


def _retry(run_id: str) -> str:
    return f"Try again: weft retry {run_id}" if run_id else ""


def _reason_text(failure: Failure) -> str:
    return f" ({failure.message.rstrip('. ')})" if failure.message else ""


def _step(failure: Failure) -> str:
    return failure.step or failure.location or "The step"


def _where_text(failure: Failure) -> str:
    return f" at {failure.where}" if failure.where else ""


def _exception_text(failure: Failure) -> str:
    """Return the exception as Python shows it if that is short, and otherwise its type and message."""
    if failure.data and not failure.code:
        text = f"{failure.type}({', '.join(map(repr, failure.data))})"
        if len(text) <= 200:
            return text
    message = failure.message if len(failure.message) <= 400 else f"{failure.message[:397]}..."
    return f"{failure.type}: {message}".rstrip(". ") if message else failure.type


def _classes_named(name: str, raises: Sequence[type[BaseException]]) -> Iterator[type[BaseException]]:
    """Yield the classes with this name among the declared classes and their subclasses, declared classes first."""
    level, seen = list(raises), set(raises)
    while level:
        yield from (cls for cls in level if cls.__name__ == name)
        below = [sub for cls in level for sub in cls.__subclasses__() if sub not in seen]
        seen.update(below)
        level = list(dict.fromkeys(below))


def _made(cls: type[Exception], failure: Failure) -> Exception | None:
    for make in (_constructed, _rebuild_without_init):
        try:
            error = _marked(make(cls, failure), failure)
            str(error)
        except BaseException:  # noqa: BLE001, S112  # the user's class may raise anything; the failure must not be lost
            continue
        if isinstance(error, cls):
            return error
    return None


def _constructed(cls: type[Exception], failure: Failure) -> Exception:
    error = cls(*failure.data)
    if text_of(error) != failure.message or _attributes(error) != failure.attributes:
        raise ValueError(failure.type)  # its ``__init__`` takes other arguments than ``args``
    return error


def _rebuild_without_init(cls: type[Exception], failure: Failure) -> Exception:
    """Rebuild an exception without its ``__init__``, whose arguments are not known."""
    error = cls.__new__(cls, *failure.data)
    error.args = failure.data or ((failure.message,) if failure.message else ())
    error.__dict__.update(failure.attributes)
    return error


def _arguments(error: BaseException) -> tuple[Any, ...]:
    if isinstance(error, OSError) and error.filename is not None:
        return (error.errno, error.strerror, error.filename)  # its ``args`` do not have the file name
    return error.args


def _attributes(error: BaseException) -> dict[str, Any]:
    if isinstance(error, WeftError):
        index = {"index": error.index} if isinstance(error, PipelineFailed) else {}
        facts = BudgetExceeded.FACTS if isinstance(error, BudgetExceeded) else ()
        known = {**index, **{name: error.context[name] for name in facts if name in error.context}}
        return {"hint": error.hint, **known} if error.hint else known
    kept: dict[str, Any] = {}
    for name, value in vars(error).items():
        if not name.startswith("__"):
            kept |= _failure_json({name: value}, {})
    return dict(strike_value(_failure_json(kept, {})))


def _failure_json(value: Any, default: Any) -> Any:
    """Return the value after a round trip through JSON, or the default if it is not JSON or too big."""
    try:
        raw = encode(value)
    except BaseException:  # noqa: BLE001  # an exception can carry any value
        return default
    return decode(raw) if len(raw) <= DATA_BYTES_MAX else default


def error_phrase(error: BaseException) -> str:
    """Return the class of an exception and its message, if it has one, for the middle of a sentence."""
    return f"{type(error).__name__}: {text_of(error)}".rstrip(": .")


def text_of(error: BaseException) -> str:
    """Return the message of an exception. Never raises: a broken ``__str__`` must not hide the failure."""
    broken = f"<{type(error).__name__} without a text>"
    text = replace_secrets(read_safely(lambda: str(error.message if isinstance(error, WeftError) else error), broken))
    if len(text) > MESSAGE_CHARS_MAX:
        text = f"{text[: MESSAGE_CHARS_MAX - 3]}..."
    return text.replace("\0", "\\0").encode("utf-8", "replace").decode()
