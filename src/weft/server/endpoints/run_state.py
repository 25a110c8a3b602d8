"""What a run holds after an event, and single values of it in full."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from weft.core.ids import Seq
from weft.core.run.composites import is_unmarked, size_of
from weft.errors import NotFound
from weft.observe.event_parts import Unfolding, read_parts
from weft.observe.held_values import TITLES, held_values
from weft.observe.stored_values import load_value
from weft.observe.style_views import Held, SectionName
from weft.observe.viewed_run import ViewedRun
from weft.ports.store import RunRow
from weft.server import views
from weft.server.endpoints.run_views import place_number, viewed_run
from weft.server.request import ApiCall, ApiReply

INLINE_BYTES_MAX = 8 * 1024
"""Larger values are references."""
VALUES_MAX = 500
DIGITS_MAX = 15
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


class StateValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a run holds. ``name`` is empty if the section is this one value.

    A large value is null, and ``ref`` names it for ``GET runs/{id}/values/{ref}``.
    """

    name: str
    value: Raw | None
    ref: str
    bytes: int
    """The size of its JSON; without parts that are stored apart."""
    changed: bool
    """Whether the event has set or changed it."""


class StateSection(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one kind. ``left_out`` counts those that are not shown."""

    name: SectionName
    title: str
    values: list[StateValue]
    removed: list[str]
    """The names of the values that the event has removed."""
    left_out: int = 0


class StateView(msgspec.Struct, frozen=True, kw_only=True):
    """What a run holds after an event."""

    seq: int
    at: views.Moment | None
    status: views.Status
    sections: list[StateSection]


async def state(call: ApiCall) -> StateView:
    """Return what a run holds after an event, with what the event changed."""
    row, viewed, seq = await viewed_run(call)
    if not seq:
        return StateView(seq=0, at=None, status=row.status, sections=[])  # type: ignore[arg-type]
    before, after = await viewed.around(call.service, row, seq, held_values)
    machine = await viewed.machine(call.service, row, seq)
    names = [name for name in TITLES if name in after or name in (before or {})]
    return StateView(
        seq=seq,
        at=views.api_time(viewed.log.time_of(seq)),
        status=machine.state.status,
        sections=[_section(seq, name, before or {}, after) for name in names],
    )


def _section(seq: int, name: SectionName, before: Held, after: Held) -> StateSection:
    old: Mapping[str, bytes] = before.get(name, {})
    new: Mapping[str, bytes] = after.get(name, {})
    shown = list(new.items())[:VALUES_MAX]
    return StateSection(
        name=name,
        title=TITLES[name],
        values=[
            StateValue(
                name=key,
                value=inline_value(raw),
                ref=f"state:{seq}:{name}:{key}",
                bytes=size_of(raw),
                changed=old.get(key) != raw,
            )
            for key, raw in shown
        ],
        removed=[key for key in old if key not in new][:VALUES_MAX],
        left_out=len(new) - len(shown),
    )


def inline_value(raw: bytes, bytes_max: int = INLINE_BYTES_MAX) -> Raw | None:
    """Return a stored value as JSON; None if it is large or has parts elsewhere."""
    return Raw(raw) if len(raw) <= bytes_max and is_unmarked(raw) else None


# --- single values -----------------------------------------------------------------------------------------------


async def value(call: ApiCall) -> ApiReply:
    """Return one value of a run as JSON, or the range of its bytes that the request asks for.

    A reference names a value by where it is in this run, so that it can never name a value of another one.
    """
    row, viewed, _ = await viewed_run(call)
    raw = await _find(call, row, viewed, call.parameters["ref"])
    if raw is None:
        raise NotFound(f"{row.id} has no value {call.parameters['ref'][:100]!r}.")
    return _ranged(await load_value(call.service, raw), call.headers.get("range", ""))


async def _find(call: ApiCall, row: RunRow, viewed: ViewedRun, ref: str) -> bytes | None:
    kind, _, rest = ref.partition(":")
    number, _, name = rest.partition(":")
    if not (number.isascii() and number.isdecimal() and len(number) <= DIGITS_MAX):
        return None
    match kind:
        case "event":
            return await _of_event(call, row, int(number), name)
        case "state" if viewed.log.first <= int(number) <= viewed.log.seq:
            section, _, key = name.partition(":")
            _, held = await viewed.around(call.service, row, int(number), held_values)
            return held.get(section, {}).get(key)  # type: ignore[call-overload, no-any-return]
        case "place":
            return await _of_place(call, row, viewed, number, name)
    return None


async def _of_event(call: ApiCall, row: RunRow, seq: int, field: str) -> bytes | None:
    stored = await call.service.store.log.events(row.uid, after=Seq(max(0, seq - 1)), limit=1)
    for part in await read_parts(call.service, row, [one for one in stored if one.seq == seq], Unfolding()):
        raw = getattr(part.event, field, None) if field in part.event.__struct_fields__ else None
        if isinstance(raw, Raw) and bytes(raw):
            return bytes(raw)
    return None


async def _of_place(call: ApiCall, row: RunRow, viewed: ViewedRun, number: str, name: str) -> bytes | None:
    place = place_number(viewed, number)
    side, _, until = name.partition(":")
    seq = int(until) if until.isdecimal() and len(until) <= DIGITS_MAX else viewed.log.seq
    if place is None or side not in ("input", "output"):
        return None
    if side == "input":
        return await _of_event(call, row, place.began, "input")
    standing = place.standing(seq)
    return standing.output if standing is not None and standing.status == "done" else None


def _ranged(body: bytes, asked: str) -> ApiReply:
    """Return a body, or a range of it if the request asks for one."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found.group(0) == "bytes=-":
        return ApiReply(body, 200, {"accept-ranges": "bytes"})
    first, last = found.groups()
    begin = int(first) if first else max(0, len(body) - int(last))
    end = min(len(body), int(last) + 1) if first and last else len(body)
    if begin >= end:
        return ApiReply(b"", 416, {"content-range": f"bytes */{len(body)}"})
    headers = {"accept-ranges": "bytes", "content-range": f"bytes {begin}-{end - 1}/{len(body)}"}
    return ApiReply(body[begin:end], 206, headers)
