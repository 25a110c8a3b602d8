"""Where a client that comes back stood: ``Last-Event-ID`` as browsers send it, or ``after`` in the query."""

from __future__ import annotations

from weft.errors import BadValue
from weft.server.request import Call, Reply
from weft.server.views import FollowQuery

DIGITS_MAX = 15
NOTHING_MORE = Reply(b"", 204)
"""The answer that ends the reconnects of a browser: the client has seen everything, and the run is over."""


def is_reconnect(call: Call) -> bool:
    """Whether the client listened before, as browsers tell it."""
    return bool(call.headers.get("last-event-id"))


def resumed(call: Call) -> int:
    """The number of the last event or chunk that the client saw. Raises BadValue."""
    last = call.headers.get("last-event-id")
    if last:
        if not (last.isascii() and last.isdigit() and len(last) <= DIGITS_MAX):
            raise BadValue(f"Last-Event-ID {last[:40]!r} is no number of an event.", code="value.wrong_type")
        return int(last)
    return call.asked(FollowQuery).after or 0
