"""How often, how long, how carefully: the policies of a step, from what users write to what the log records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from weft.core.durations import duration_ms
from weft.core.events import DEFAULT_POLICY, Effect, Policy
from weft.errors import BadValue

Duration = str | float | timedelta
"""``"250ms"``, ``"30s"``, ``"1h30m"``, ``"2d"``, ISO 8601, a timedelta, or seconds."""

Backoff = Literal["fixed", "linear", "exponential"]
EFFECTS = ("pure", "idempotent", "irreversible")


@dataclass(frozen=True, slots=True)
class Retry:
    """How a failed step is tried again: at most ``attempts`` times in all."""

    attempts: int = 4
    backoff: Backoff = "exponential"
    delay: Duration = "200ms"
    max_delay: Duration | None = None
    """The longest pause; None: 30 s, or ``delay`` if that is longer."""


def _longest(retry: Retry) -> int:
    if retry.max_delay is not None:
        return duration_ms(retry.max_delay)
    return max(DEFAULT_POLICY.delay_ms_max, duration_ms(retry.delay))


def policy_of(
    *, retries: int | Retry = 3, timeout: Duration | None = None, effect: Effect = "idempotent", queue: str = "default"
) -> Policy:
    """The policy as it is recorded. Raises BadValue, BadDuration."""
    if effect not in EFFECTS:
        raise BadValue(f"effect={effect!r} is not one of {', '.join(EFFECTS)}.", code="value.bad_policy")
    retry = retries if isinstance(retries, Retry) else Retry(retries + 1)
    if isinstance(retries, bool) or retry.attempts < 1 or retry.attempts > 10_000:
        raise BadValue(
            f"retries={retries!r} must be 0 or more.",
            hint="retries=3 means 4 attempts in all.",
            code="value.bad_policy",
        )
    if retry.backoff not in ("fixed", "linear", "exponential"):
        raise BadValue(f"backoff={retry.backoff!r} is not one of fixed, linear, exponential.", code="value.bad_policy")
    policy = Policy(
        attempts_max=1 if effect == "irreversible" else retry.attempts,
        backoff=retry.backoff,
        delay_ms=duration_ms(retry.delay),
        delay_ms_max=_longest(retry),
        timeout_ms=duration_ms(timeout) if timeout is not None else 0,
        effect=effect,
        queue=queue,
    )
    # The default is one object: an event that has it leaves it out.
    return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy
