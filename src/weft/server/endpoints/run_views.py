"""Views of one run for screens: its picture, how it stands, its places and its timeline, after any event."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from weft.core.ids import Seq
from weft.errors import NotFound
from weft.observe.box_standing import BoxStanding
from weft.observe.event_parts import Unfolding, read_parts
from weft.observe.explain import explain_past
from weft.observe.explanation import Explanation
from weft.observe.pictures.drawn import DrawnPicture
from weft.observe.place_rows import Order, PlaceRow, PlaceSearch, find_places, row_of
from weft.observe.timeline import TimelineRow, TimeWindow, timeline_of
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
    """How many columns a box is divided into if it has too many places to show each."""


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


class AttemptView(msgspec.Struct, frozen=True):
    """An attempt that failed."""

    attempt: int
    at: views.Moment
    failure: str
    retry_at: views.Moment | None = None


class PlaceDetail(msgspec.Struct, frozen=True):
    """A place with its values, and the attempts that failed."""

    place: PlaceRow
    input: Raw | None
    output: Raw | None
    attempts: list[AttemptView]
    traceback: str = ""


class TimelineView(msgspec.Struct, frozen=True):
    """The timeline of a run between two moments, in milliseconds since 1970."""

    seq: int
    since: int
    until: int
    rows: list[TimelineRow]


async def picture(call: ApiCall) -> DrawnPicture:
    """Return the picture of a run with its layout. It changes only when boxes or arrows do."""
    row, viewed, seq = await _viewed(call)
    found = await viewed.picture(call.service, row, seq)
    if found is None:
        raise NotFound(f"There is no picture of {row.id}: it has not begun.", hint=f"weft explain {row.id}")
    return await call.services.viewed.drawn(found)


async def standing(call: ApiCall) -> StandingView:
    """Return how a run stood after an event."""
    row, viewed, seq = await _viewed(call)
    found = await viewed.standing(call.service, row, seq)
    return StandingView(found.seq, views.moment(found.at), found.status, found.boxes, found.arrows)


async def places(call: ApiCall) -> PlacesView:
    """Return a page of places."""
    asked = call.query_as(PlacesQuery)
    _, viewed, seq = await _viewed(call)
    search = PlaceSearch(
        seq=seq,
        box=asked.box,
        marks=frozenset(asked.mark),
        text=asked.q,
        order=asked.order,
        after=asked.after,
        limit=asked.limit,
    )
    found, after = find_places(viewed.log, search)
    return PlacesView(seq, found, after)


async def place(call: ApiCall) -> PlaceDetail:
    """Return one place with its values and attempts."""
    row, viewed, seq = await _viewed(call)
    text = call.parameters["number"]
    found = viewed.log.places.get(int(text)) if text.isdecimal() and len(text) < 16 else None
    now = found.standing(seq) if found is not None else None
    if found is None or now is None:
        raise NotFound(f"{row.id} has no place {text[:40]!r}.", hint=f"weft show {row.id}")
    is_done = now.status == "done"
    return PlaceDetail(
        row_of(found, now),
        await _input(call, row, found.number),
        Raw(await call.service.values.load(now.output)) if is_done else None,
        [
            AttemptView(
                number,
                views.required_moment(change.at),
                f"{change.failure.type}: {change.failure.message}" if change.failure is not None else "",
                views.moment(change.due) if change.status == "open" else None,
            )
            for number, change in enumerate(found.attempts(seq), 1)
        ],
        now.failure.traceback if now.failure is not None else "",
    )


async def _input(call: ApiCall, row: RunRow, number: int) -> Raw | None:
    """Return the input that a place began with; None if the log has none for it."""
    stored = await call.service.store.log.events(row.uid, after=Seq(number - 1), limit=1)
    for part in await read_parts(call.service, row, stored, Unfolding()):
        raw = getattr(part.event, "input", None)
        if isinstance(raw, Raw) and bytes(raw):
            return Raw(await call.service.values.load(bytes(raw)))
    return None


async def timeline(call: ApiCall) -> TimelineView:
    """Return the timeline of a run."""
    asked = call.query_as(TimelineQuery)
    row, viewed, seq = await _viewed(call)
    begun, shown = viewed.log.time_of(1), viewed.log.time_of(seq)
    is_open = seq == viewed.log.seq and row.ended_at is None
    now = max(shown, call.service.clock.now_ms()) if is_open else shown
    since = int(asked.since.timestamp() * 1000) if asked.since is not None else begun
    until = int(asked.until.timestamp() * 1000) if asked.until is not None else now
    window = TimeWindow(since, max(since + 1, until), asked.columns)
    return TimelineView(seq, since, until, timeline_of(viewed.log.until(seq), seq, window))


async def explain_run(call: ApiCall) -> Explanation:
    """Explain what the run waits for, now or after an event."""
    if call.query_as(AtQuery).at is None:
        return await explain_now(call)
    row, viewed, seq = await _viewed(call)
    return await explain_past(call.service, row, await viewed.machine(call.service, row, seq))


async def _viewed(call: ApiCall) -> tuple[RunRow, ViewedRun, int]:
    """Return the run that the path names, its fold, and the number of the event that is asked for."""
    row = await requested_run(call)
    viewed = await call.services.viewed.get(call.service, row)
    asked = call.query_as(AtQuery).at
    seq = viewed.log.seq if asked is None else asked
    if not 0 < seq <= viewed.log.seq and (asked is not None or row.seq):
        raise NotFound(f"{row.id} has {viewed.log.seq:,} events, and no event {seq:,}.")
    return row, viewed, seq
