"""One place of a run in full: its values, its attempts, what led to it and where it led."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.run.composites import size_of
from weft.errors import NotFound
from weft.observe.event_parts import EventPart, Unfolding
from weft.observe.event_records import read_records
from weft.observe.event_text import event_text, failure_line
from weft.observe.place_rows import PlaceRow, row_of
from weft.observe.places import PlaceChange, RunPlace
from weft.observe.viewed_run import ViewedRun
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.run_state import inline_value
from weft.server.endpoints.run_views import place_number, viewed_run
from weft.server.request import ApiCall

INLINE_BYTES_MAX = 64 * 1024
ROUTES_MAX = 200
"""How many later events are searched for the one that says which edges were taken."""
STREAMS_MAX = 20
CHUNKS_MAX = 200


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that failed."""

    attempt: int
    started_at: views.Moment
    at: views.Moment
    """When it failed."""
    failure: str
    """The first line of the failure, and below the line of the code and the traceback."""
    where: str
    traceback: str
    retry_at: views.Moment | None = None


class OpenAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt that has not ended, and the host that has the run. Logs do not say who performed the others."""

    attempt: int
    started_at: views.Moment
    host: str


class ValueSize(msgspec.Struct, frozen=True):
    """The size of a value, and the reference with which it is read in full: ``GET runs/{id}/values/{ref}``."""

    ref: str
    bytes: int


class EdgeVerdictView(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of the condition of an edge, and the values that it read."""

    arrow: str
    taken: bool
    seen: dict[str, Any]


class PlaceCause(msgspec.Struct, frozen=True, kw_only=True):
    """The event that led to the place."""

    seq: int
    text: str


class PlaceDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A place with its values and attempts, what led to it, and where it led."""

    place: PlaceRow
    input: Raw | None
    """Null if there is none, or if it has more than 64 KiB; so for ``output``."""
    output: Raw | None
    input_size: ValueSize | None
    """Null if there is no input; so for ``output_size``."""
    output_size: ValueSize | None
    attempts: list[AttemptView]
    """The attempts that failed."""
    open_attempt: OpenAttempt | None
    traceback: str
    """That of the failure with which the place ended."""
    verdicts: list[EdgeVerdictView]
    """The conditions of the edges of its node."""
    cause: PlaceCause | None
    undo: PlaceRow | None
    """The place that undoes it, if that has begun."""
    streams: list[str]
    """The output streams that it has written to."""


async def place(call: ApiCall) -> PlaceDetail:
    """Return one place with its values and attempts."""
    row, viewed, seq = await viewed_run(call)
    text = call.parameters["number"]
    found = place_number(viewed, text)
    now = found.standing(seq) if found is not None else None
    if found is None or now is None:
        raise NotFound(f"{row.id} has no place {text[:40]!r}.", hint=f"weft show {row.id}")
    around = [number for number in (found.began - 1, found.began) if number >= viewed.log.first]
    begun = await read_records(call.service, row, around, Unfolding())
    attempts = list(_attempts(found, seq))
    return PlaceDetail(
        place=row_of(found, now),
        **_value_fields(found, now, _input(found, begun), seq),
        attempts=attempts,
        open_attempt=_open_attempt(found, now, attempts, row.owner or ""),
        traceback=now.failure.traceback if now.failure is not None else "",
        verdicts=await _verdicts(call, row, viewed, (found, now, _tokens(found, begun))),
        cause=_event_before(found, begun),
        undo=_undo(viewed, found, seq),
        streams=await _streams(
            call, row, {found.operation.location, *(f"{found.box}/{token}" for token in _tokens(found, begun))}
        ),
    )


def _value_fields(place: RunPlace, now: PlaceChange, given: bytes | None, seq: int) -> dict[str, Any]:
    """Return the fields with the input and the output of a place."""
    output = now.output if now.status == "done" else None
    return {
        "input": inline_value(given, INLINE_BYTES_MAX) if given is not None else None,
        "input_size": ValueSize(f"place:{place.number}:input", size_of(given)) if given is not None else None,
        "output": inline_value(output, INLINE_BYTES_MAX) if output is not None else None,
        "output_size": ValueSize(f"place:{place.number}:output:{seq}", size_of(output)) if output is not None else None,
    }


def _input(place: RunPlace, begun: list[EventPart]) -> bytes | None:
    """Return the input that a place began with; None if the log has none for it."""
    for part in begun:
        raw = getattr(part.event, "input", None) if part.seq == place.began else None
        if isinstance(raw, Raw) and bytes(raw):
            return bytes(raw)
    return None


def _attempts(place: RunPlace, seq: int) -> Iterator[AttemptView]:
    """Yield the attempts that failed."""
    since = place.changes[0].at
    for number, change in enumerate(place.attempts(seq), 1):
        assert change.failure is not None
        again = change.due if change.status == "open" else 0
        yield AttemptView(
            attempt=number,
            started_at=views.required_time(since),
            at=views.required_time(change.at),
            failure=failure_line(change.failure),
            where=change.failure.where,
            traceback=change.failure.traceback,
            retry_at=views.api_time(again),
        )
        since = max(change.at, again)


def _open_attempt(place: RunPlace, now: PlaceChange, failed: list[AttemptView], owner: str) -> OpenAttempt | None:
    """Return the attempt that is being made; None if there is none, or if it has to wait."""
    if now.status != "open" or now.mark != "working":
        return None
    since = views.required_time(place.changes[0].at)
    if failed:
        since = failed[-1].retry_at or failed[-1].at
    return OpenAttempt(attempt=now.attempts, started_at=since, host=owner)


def _event_before(place: RunPlace, begun: list[EventPart]) -> PlaceCause | None:
    """Return the event before the one with which the place began."""
    own = [part for part in begun if part.seq == place.began]
    earlier = [*(part for part in begun if part.seq < place.began), *own[:-1]]
    if not earlier:
        return None
    return PlaceCause(seq=earlier[-1].seq, text=event_text(earlier[-1], ""))


def _undo(viewed: ViewedRun, place: RunPlace, seq: int) -> PlaceRow | None:
    wanted = f"{place.operation.location}!undo"
    for other in viewed.log.until(seq)[place.number :]:
        standing = other.standing(seq) if other.operation.location == wanted else None
        if standing is not None:
            return row_of(other, standing)
    return None


def _tokens(place: RunPlace, begun: list[EventPart]) -> set[str]:
    """Return the token of a graph that a place began with; empty in other runs."""
    return {getattr(part.event, "token", "") for part in begun if part.seq == place.began} - {""}


async def _verdicts(
    call: ApiCall, row: RunRow, viewed: ViewedRun, found: tuple[RunPlace, PlaceChange, set[str]]
) -> list[EdgeVerdictView]:
    """Return the verdicts with which the token of a place left its node."""
    place, now, tokens = found
    if not tokens or now.status == "open":
        return []
    later = range(now.seq, min(viewed.log.seq, now.seq + ROUTES_MAX) + 1)
    routed = [seq for seq in later if any(one.kind == "node_routed" for one in viewed.log.subjects_of_record(seq))]
    for part in await read_records(call.service, row, routed, Unfolding()):
        if isinstance(part.event, e.NodeRouted) and part.event.node == place.box and part.event.token in tokens:
            return [EdgeVerdictView(arrow=one.edge, taken=one.taken, seen=one.seen) for one in part.event.verdicts]
    return []


async def _streams(call: ApiCall, row: RunRow, writers: set[str]) -> list[str]:
    """Return the streams whose first chunks are of a place."""
    streams = call.service.store.streams
    names = list(await streams.lengths(row.uid))[:STREAMS_MAX]
    found = []
    for name in names:
        chunks = await streams.read(row.uid, name, after=0, limit=CHUNKS_MAX)
        if any(chunk.by in writers for chunk in chunks):
            found.append(name)
    return found
