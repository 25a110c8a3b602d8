"""When hops are drained: all the time, after a while, or when the run does something that must be durable at once."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.core.durations import duration_ms
from weft.errors import BadDuration, UsageError

_SLACK_SECONDS: Final = 10.0
"""A hop may be this much older than the policy says before new hops wait."""
_HINT: Final = 'Use "event" (drain all the time), a duration such as "10s", or "end".'


class HotPolicy(msgspec.Struct, frozen=True):
    """How long acknowledged hops may stay out of the durable store."""

    name: str
    """The policy as the user writes it."""
    delay_seconds: float
    """A hop that is this old is drained."""
    age_seconds_max: float
    """New hops wait while there is one that is older than this."""


EVENT: Final = HotPolicy("event", 0.005, _SLACK_SECONDS)
"""Hops within a few milliseconds share a transaction, because a transaction costs Postgres more than the hops in it."""
END: Final = HotPolicy("end", 30.0, 60.0)


def hot_policy(text: str) -> HotPolicy:
    """Return the policy with this name. Raises UsageError."""
    if text in {EVENT.name, END.name}:
        return EVENT if text == EVENT.name else END
    try:
        seconds = duration_ms(text) / 1000
    except BadDuration:
        raise UsageError(f"hot={text!r} is not a policy.", hint=_HINT) from None
    if seconds <= 0:
        raise UsageError(f"hot={text!r} is not a policy: it must be longer than 0.", hint=_HINT)
    return HotPolicy(text, seconds, seconds + _SLACK_SECONDS)
