"""Read retry policies from graph and step documents."""

from __future__ import annotations

from weft.core.graph.model import Backoff, RetryRule
from weft.documents.fields import Fields

BACKOFFS: dict[str, Backoff] = {"fixed": "fixed", "linear": "linear", "exponential": "exponential"}
RETRY = ("attempts", "backoff", "delay", "max_delay", "max_attempts", "backoff_ms")
ATTEMPTS_MAX = 10_000


def read_retry(holder: Fields) -> RetryRule:
    """Read ``retry``: a number of attempts, or a mapping. The step's own policy applies to absent fields."""
    raw = holder.raw.get("retry")
    if "retry" not in holder:
        return RetryRule()
    if not isinstance(raw, dict):
        return RetryRule(attempts=_read_attempts(holder, "retry"))
    retry = Fields(raw, holder.place("retry"), holder.problems, RETRY)
    delay_ms: int | None = None
    if retry.spelling("delay", "backoff_ms") == "backoff_ms":
        delay_ms = retry.integer("backoff_ms", least=0)
    elif "delay" in retry:
        delay_ms = retry.duration("delay")
    return RetryRule(
        attempts=_read_attempts(retry, retry.spelling("attempts", "max_attempts")),
        backoff=retry.choice("backoff", BACKOFFS, None),
        delay_ms=delay_ms,
        delay_ms_max=retry.duration("max_delay") if "max_delay" in retry else None,
    )


def _read_attempts(fields: Fields, key: str) -> int | None:
    attempts = fields.integer(key)
    if attempts is not None and attempts > ATTEMPTS_MAX:
        fields.wrong(key, f"at most {ATTEMPTS_MAX:,}")
        return None
    return attempts
