"""Turn the policies that users write for a step into the form that the log records."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from weft.core.durations import duration_ms
from weft.core.events import DEFAULT_POLICY, Effect, Policy
from weft.errors import BadValue

Duration = str | float | timedelta
"""``"250ms"``, ``"30s"``, ``"1h30m"``, ``"2d"``, ISO 8601, a timedelta, or seconds."""

Backoff = Literal["fixed", "linear", "exponential"]
ATTEMPTS_MAX = 10_000
EFFECTS = ("pure", "idempotent", "irreversible")


@dataclass(frozen=True, slots=True)
class Retry:
    """How a failed step is retried. ``attempts`` counts the first attempt, too."""

    attempts: int = 4
    backoff: Backoff = "exponential"
    delay: Duration = "200ms"
    max_delay: Duration | None = None
    """The longest delay between attempts. The default is 30 seconds, or ``delay`` if that is longer."""


def bad_policy(name: str, value: object, wanted: str, example: str) -> BadValue:
    """Return the error for an invalid value of a policy."""
    return BadValue(f"{name}={value!r} is not {wanted}.", hint=f"Write {example}.", code="value.bad_policy")


def _retry(retries: object) -> Retry:
    """Return the retry policy for ``retries=``: a ``Retry``, or a number of retries. Raises BadValue."""
    retry = retries if isinstance(retries, Retry) else None
    attempts = retry.attempts if retry is not None else retries + 1 if isinstance(retries, int) else None
    is_integer = isinstance(attempts, int) and not isinstance(retries, bool) and not isinstance(attempts, bool)
    if not is_integer or not 1 <= attempts <= ATTEMPTS_MAX:  # type: ignore[operator]  # an integer, as checked
        raise BadValue(
            f"retries={retries!r} is not valid: the number of attempts must be an integer from 1 to {ATTEMPTS_MAX}.",
            hint="Write retries=3 for 4 attempts in all, or weft.Retry(attempts=4, delay=…).",
            code="value.bad_policy",
        )
    return retry if retry is not None else Retry(attempts)  # type: ignore[arg-type]  # as above


def check_body(fn: object, *, raises: object, run_in: object, width: object) -> None:
    """Refuse a function or options that no step can have. Raises BadValue."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        name = getattr(fn, "__qualname__", fn)
        raise BadValue(
            f"{name} is a generator, but a step must return one value.",
            hint="Return a list, or write pieces with weft.task().emit(stream, piece).",
            code="value.bad_policy",
        )
    if run_in not in ("thread", "process"):
        raise bad_policy("run_in", run_in, '"thread" or "process"', 'run_in="process"')
    if not isinstance(raises, Sequence) or isinstance(raises, str):
        raise bad_policy("raises", raises, "a sequence of exceptions", "raises=(ValueError,)")
    for error in raises:
        if not isinstance(error, type) or not issubclass(error, BaseException):
            raise bad_policy("raises", raises, "a sequence of exceptions", "raises=(ValueError,)")
        if not issubclass(error, Exception) or issubclass(error, StopIteration):
            raise BadValue(
                f"raises= contains {error.__name__}, which a workflow cannot catch from a step.",
                hint="Name subclasses of Exception other than StopIteration. The workflow gets every other exception "
                "as weft.StepFailed, and its failure.type has the name of the class.",
                code="value.bad_policy",
            )
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise bad_policy("width", width, "an integer of at least 1", "width=8")


def _delay_ms_max(retry: Retry) -> int:
    if retry.max_delay is not None:
        return duration_ms(retry.max_delay)
    return max(DEFAULT_POLICY.delay_ms_max, duration_ms(retry.delay))


def policy_of(
    *, retries: int | Retry = 3, timeout: Duration | None = None, effect: Effect = "idempotent", queue: str = "default"
) -> Policy:
    """Return the policy as the log records it. Raises BadValue, BadDuration."""
    if effect not in EFFECTS:
        raise BadValue(f"effect={effect!r} is not one of {', '.join(EFFECTS)}.", code="value.bad_policy")
    queue_name: object = queue
    if not isinstance(queue_name, str) or not queue_name:
        raise bad_policy("queue", queue, "the name of a queue", 'queue="gpu"')
    retry = _retry(retries)
    if retry.backoff not in ("fixed", "linear", "exponential"):
        raise BadValue(f"backoff={retry.backoff!r} is not one of fixed, linear, exponential.", code="value.bad_policy")
    policy = Policy(
        attempts_max=1 if effect == "irreversible" else retry.attempts,
        backoff=retry.backoff,
        delay_ms=duration_ms(retry.delay),
        delay_ms_max=_delay_ms_max(retry),
        timeout_ms=duration_ms(timeout) if timeout is not None else 0,
        effect=effect,
        queue=queue,
    )
    # Events omit the default policy, which they recognise by identity.
    return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy


def reuse_ms(cache: Duration | bool | None) -> int | None:  # noqa: FBT001 - users write ``cache=True``
    """Return for how many milliseconds a result is reused for equal inputs. 0 means forever, None means never."""
    if cache is None or cache is False:
        return None
    return 0 if cache is True else duration_ms(cache)
