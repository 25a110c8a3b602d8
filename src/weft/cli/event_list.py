"""Print the log of a run, event by event."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.cli.output import SafeText, console, failure_text, iso_time, time_text
from weft.cli.store_access import open_run
from weft.core import values
from weft.core.escapes import escape_json
from weft.errors import Failure
from weft.observe.changes import is_change
from weft.observe.event_parts import EventPart
from weft.observe.history import History

# Fields that are not printed, because the line already shows them or only the engine needs them.
_OMITTED = frozenset({"kind", "at", "add", "digest", "task", "timer", "wait", "ask", "entry", "uid"})
_MOMENTS = frozenset({"due", "retry_at", "scheduled_at", "nominal", "first", "last", "next", "backfill_next"})
COLOURS = {"failed": "red", "cancelled": "yellow", "held": "red", "succeeded": "green", "completed": "green"}


async def print_events(
    run: str, *, after: int, follow: bool, url: str | None, app: str | None, json: bool, changes: bool = False
) -> None:
    """Print events in order. With ``follow``, also print new ones until the run ends.

    With ``changes``, print only what people have changed.
    """
    out = console()
    async with open_run(run, url, app) as (service, row):
        history = History()
        async for stored in service.reader.events(row, follow=follow):
            # Events before ``after`` are read, too, because they have the locations of operations.
            for part, operation in history.add(stored):
                if stored.seq <= after or (changes and not is_change(part.event)):
                    continue
                location = operation.location if operation is not None else ""
                if json:
                    print(escape_json(msgspec.json.encode(event_document(part, location)).decode()), flush=True)
                else:
                    out.print(_event_line(part, location))


def event_document(event: EventPart, location: str) -> dict[str, Any]:
    """Return an event for programs."""
    kind, data = event.split()
    return {
        "seq": event.seq,
        "part": event.part,
        "at": iso_time(event.at),
        "kind": kind,
        "location": location or None,
        "data": data,
    }


def _event_line(stored: EventPart, location: str) -> SafeText:
    data = msgspec.json.decode(stored.body)
    kind = data["kind"]
    colour = COLOURS.get(kind.rpartition("_")[2], "")
    details = [f"{name}={_short(name, part)}" for name, part in data.items() if name not in _OMITTED]
    return SafeText.assemble(
        (f"{_event_number(stored):>7}  {time_text(stored.at)}  ", "dim"),
        (f"{kind:<17}", colour),
        f"  {location}" if location else "",
        ("  " + " ".join(details) if details else "", "dim"),
    )


def _event_number(event: EventPart) -> str:
    return f"{event.seq}.{event.part}" if event.part else f"{event.seq}"


def _short(name: str, part: Any) -> str:
    if name in _MOMENTS:
        return time_text(part) if part else "never"
    if name == "failure":
        return failure_text(msgspec.convert(part, Failure))
    return part if isinstance(part, str) and part.isprintable() and len(part) <= 60 else values.preview_text(part)
