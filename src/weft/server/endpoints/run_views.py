"""Views of one run for screens: its picture, how it stands, its places and its timeline, after any event."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from weft.errors import NotFound
from weft.observe.box_standing import BoxStanding
from weft.observe.explain import explain_past
from weft.observe.explanation import Explanation
from weft.observe.pictures.drawn import DrawnPicture
from weft.observe.place_rows import Order, PlaceRow, PlaceSearch, find_places, matching_places
from weft.observe.places import RunPlace
from weft.observe.timeline import TimelineRow, TimeWindow, place_row, timeline_rows
from weft.observe.timeline_marks import IdleGap, TimelineLine, gaps_of, lines_of
from weft.observe.viewed_run import ViewedRun
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.runs import explain_now, requested_run
from weft.server.request import ApiCall

Mark = Literal["idle", "done", "working", "waiting", "queued", "failed", "skipped"]


class AtQuery(views.Form, frozen=True, kw_only=True):
    """A moment of a run."""

    at: views.Offset | None = None
    """The number of an event; without it, the newest."""


class PlacesQuery(AtQuery, frozen=True, kw_only=True):
    """A filter for places."""

    box: views.Id | None = None
    mark: Annotated[list[Mark], Meta(max_length=7)] = msgspec.field(default_factory=list)
    kind: Annotated[list[views.Name], Meta(max_length=20)] = msgspec.field(default_factory=list)
    """What a place is, such as ``step``, ``ask`` or ``sleep``."""
    q: views.Text = ""
    """A part of the place, of what it does, or of its failure."""
    order: Order = "first"
    after: views.Offset | None = None
    limit: views.Limit = 200


class TimelineQuery(AtQuery, frozen=True, kw_only=True):
    """A window of the timeline."""

    since: views.Moment | None = None
    """The left edge; without it, when the run began. ``until`` is the right edge; without it, the moment shown."""
    until: views.Moment | None = None
    columns: Annotated[int, Meta(ge=10, le=4_000)] = 400
    """How many columns a box is divided into if it has too many places to show each. Gaps have no columns."""
    box: views.Id | None = None
    """Only the places of this box, each in a row of its own."""
    mark: Annotated[list[Mark], Meta(max_length=7)] = msgspec.field(default_factory=list)
    kind: Annotated[list[views.Name], Meta(max_length=20)] = msgspec.field(default_factory=list)
    q: views.Text = ""
    """Only places like these, as for the list of places."""
    after: views.Offset | None = None
    """The number of the last place of the page before, if ``box`` is given."""
    limit: views.Limit = 200


class StandingView(msgspec.Struct, frozen=True):
    """How a run stood after an event: its boxes by id, and how often each arrow was taken."""

    seq: int
    at: views.Moment | None
    status: str
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]


class PlacesView(msgspec.Struct, frozen=True):
    """A page of places. Pass ``after`` to get the next page; null after the last place."""

    seq: int
    places: list[PlaceRow]
    after: int | None


class TimelineView(msgspec.Struct, frozen=True):
    """The timeline of a run between two moments, in milliseconds since 1970.

    ``begun`` and ``now`` are those of the run. ``gaps`` are the times of the whole run in which nothing happened.
    Pass ``after`` to get more places of a box.
    """

    seq: int
    since: int
    until: int
    begun: int
    now: int
    rows: list[TimelineRow]
    gaps: list[IdleGap]
    lines: list[TimelineLine]
    after: int | None


async def show_run_picture(call: ApiCall) -> DrawnPicture:
    """Return the picture of a run with its layout. It changes only when boxes or arrows do."""
    row, viewed, seq = await viewed_run(call)
    found = await viewed.picture(call.service, row, seq)
    if found is None:
        raise NotFound(f"There is no picture of {row.id}: it has not begun.", hint=f"weft explain {row.id}")
    return await call.services.viewed.drawn(found)


async def show_run_standing(call: ApiCall) -> StandingView:
    """Return how a run stood after an event."""
    row, viewed, seq = await viewed_run(call)
    found = await viewed.standing(call.service, row, seq)
    return StandingView(found.seq, views.api_time(found.at), found.status, found.boxes, found.arrows)


async def list_run_places(call: ApiCall) -> PlacesView:
    """Return a page of places."""
    asked = call.query_as(PlacesQuery)
    _, viewed, seq = await viewed_run(call)
    search = PlaceSearch(
        seq=seq,
        box=asked.box,
        marks=frozenset(asked.mark),
        kinds=frozenset(asked.kind),
        text=asked.q,
        order=asked.order,
        after=asked.after,
        limit=asked.limit,
    )
    found, after = find_places(viewed.log, search)
    return PlacesView(seq, found, after)


async def show_run_timeline(call: ApiCall) -> TimelineView:
    """Return the timeline of a run."""
    asked = call.query_as(TimelineQuery)
    row, viewed, seq = await viewed_run(call)
    log = viewed.log
    begun, shown = log.time_of(log.first), log.time_of(seq)
    is_open = seq == log.seq and row.ended_at is None
    now = max(shown, call.service.clock.now_ms()) if is_open else shown
    since = int(asked.since.timestamp() * 1000) if asked.since is not None else begun
    until = int(asked.until.timestamp() * 1000) if asked.until is not None else now
    gaps = gaps_of(log, seq, now)
    window = TimeWindow(since, max(since + 1, until), asked.columns, now, gaps)
    search = PlaceSearch(
        seq=seq,
        box=asked.box,
        marks=frozenset(asked.mark),
        kinds=frozenset(asked.kind),
        text=asked.q,
        after=asked.after,
        limit=asked.limit,
    )
    if asked.box is not None:
        found, after = find_places(log, search)
        rows = [place_row(log.places[one.number - 1], seq, window) for one in found]
    else:
        is_filtered = search.marks or search.kinds or search.text
        places = matching_places(log, search) if is_filtered else log.until(seq)
        rows, after = timeline_rows(places, seq, window), None
    return TimelineView(seq, since, until, begun, now, rows, gaps, lines_of(log, seq), after)


async def explain_run(call: ApiCall) -> Explanation:
    """Explain what the run waits for, now or after an event."""
    if call.query_as(AtQuery).at is not None:
        row, viewed, seq = await viewed_run(call)
        return with_places(await explain_past(call.service, row, await viewed.machine(call.service, row, seq)), viewed)
    found = await explain_now(call)
    viewed, _ = await call.services.viewed.get_readable_until(call.service, await requested_run(call), None)
    return with_places(found, viewed)


def with_places(explanation: Explanation, viewed: ViewedRun) -> Explanation:
    """Return an explanation whose waits have the numbers of their places."""
    waiting = []
    for wait in explanation.waiting:
        place = viewed.log.place_at(wait.number)
        waiting.append(msgspec.structs.replace(wait, number=place.number if place is not None else 0))
    return msgspec.structs.replace(explanation, waiting=waiting)


async def viewed_run(call: ApiCall) -> tuple[RunRow, ViewedRun, int]:
    """Return the run that the path names, its fold, and the number of the event that is asked for."""
    row = await requested_run(call)
    asked = call.query.at if isinstance(call.query, AtQuery) else None
    viewed = await call.services.viewed.get_until(call.service, row, asked)
    seq = viewed.log.seq if asked is None else asked
    if not 0 < seq <= viewed.log.seq and (asked is not None or row.seq):
        raise NotFound(f"{row.id} has {viewed.log.seq:,} events, and no event {seq:,}.")
    return row, viewed, seq


def place_number(viewed: ViewedRun, text: str) -> RunPlace | None:
    """Return the place with a number, as a path or a reference has it; None if there is none."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
    return viewed.log.places[number - 1] if 0 < number <= len(viewed.log.places) else None
