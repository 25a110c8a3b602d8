"""The query and the answer of the log of a run."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.observe.place_rows import Order
from weft.server import views
from weft.server.problems import ProblemDetails


class EventsQuery(views.Form, frozen=True, kw_only=True):
    """A window of a log.

    ``order`` says at which end the window begins: with ``first`` after ``after``, with ``last`` before ``before``. The
    events of a page are always oldest first.
    """

    after: views.Offset = 0
    before: views.Offset | None = None
    order: Order | None = None
    """Without it: ``last`` if only ``before`` is given, else ``first``."""
    at: views.Offset | None = None
    """Only events up to this one, as if the log ended there."""
    kind: Annotated[list[views.Name], Meta(max_length=50)] = msgspec.field(default_factory=list)
    """The kind of an event, such as ``task_failed``, or of the place that it is about, such as ``ask``."""
    mark: Annotated[list[views.Name], Meta(max_length=7)] = msgspec.field(default_factory=list)
    """Only events about places that stand like this now, or after ``at``."""
    place: views.Offset | None = None
    """The number of a place."""
    box: views.Id | None = None
    about: views.Text = ""
    """The location of a place or the id of a box: only events about them."""
    q: views.Text = ""
    """A part of the sentence, of the location or of the data."""
    limit: views.Limit = 200


class LargeValue(msgspec.Struct, frozen=True):
    """A value that is too large for the log. ``ref`` names it for ``GET runs/{id}/values/{ref}``."""

    name: str
    ref: str
    bytes: int


class LogEventView(views.EventView, frozen=True, kw_only=True):
    """An event with its sentence, and the place of the picture that it is about; the place is null if it has none."""

    text: str
    number: int | None = None
    """The number of the place, and below its location and its box."""
    place: str = ""
    box: str | None = None
    large: list[LargeValue]


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a log, oldest event first.

    Pass ``after`` or ``before`` to get the next window in that direction; null at that end of the log. A window may be
    empty and still have one. ``problem`` says why the next event cannot be read, if it cannot.
    """

    events: list[LogEventView]
    after: int | None
    before: int | None
    seq: int
    """The number of the last event of the log."""
    as_of: views.Moment | None = None
    """Up to when the events are known here, if the host of the run may have newer ones in Redis."""
    problem: ProblemDetails | None = None
