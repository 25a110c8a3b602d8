"""Computations about rows that all stores share: new rows and their mail, attributes, and cursors of pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid
from weft.errors import UsageError
from weft.ports.definitions import Origin
from weft.ports.new_run import START_MAIL, NewRun
from weft.ports.retention import DOOMED
from weft.ports.starts import RuledStart
from weft.ports.store import PENDING, Mail, RunRow

LAST_CHARACTER = "\U0010ffff"
"""Follows every character of an id, so that it ends the range of ids with a prefix."""
NOT_DOOMED = f"status <> '{DOOMED}'"
"""For statements that find runs by anything but their uid: leave out what is being deleted."""
NOBODY = HostId("")
"""The host of an append that creates a run without an owner."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def json_text(value: object) -> str:
    """Encode a value as JSON text."""
    return msgspec.json.encode(value).decode()


def origins_below(origin: Origin) -> Sequence[str]:
    """Return the origins of versions that may be raised to this one."""
    origins: tuple[str, ...] = get_args(Origin)
    return origins[: origins.index(origin)]


def start_mail(run: NewRun) -> Mail | None:
    """Return the first piece of mail of a new run, if it has one."""
    if run.start is None:
        return None
    return Mail(id=START_MAIL, to=run.uid, body=run.start, at=run.created_at)


def added_input(start: RuledStart, to: RunUid) -> Mail:
    """Return the mail that adds the input of a start to a batch that has not begun."""
    return Mail(id=f"{START_MAIL}/{start.new.uid}", to=to, body=start.new.start or b"", at=start.new.created_at)


def cancel_mail(start: RuledStart, other: RunRow) -> Mail:
    """Return the mail that cancels a run, because this start replaces it."""
    return Mail(id=f"{start.new.uid}/replaces", to=other.uid, body=start.cancel, at=start.new.created_at)


def initial_status(run: NewRun) -> str:
    """Return the status of a new row."""
    return PENDING if run.owner is None else "running"


def initial_epoch(run: NewRun) -> Epoch:
    """Return the epoch of a new row."""
    return Epoch(0 if run.owner is None else 1)


def free_id(child: NewRun, taken: Callable[[RunId], bool]) -> RunId:
    """Return the id for the row of a child: its own, or, if that is taken, one made unique by its uid."""
    if not taken(child.id):
        return child.id
    short = RunId(f"{child.id}~{child.uid[:8]}")
    return RunId(f"{child.id}~{child.uid}") if taken(short) else short


def merge_attributes(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes after a change. A value of None removes its name."""
    merged = {**old, **as_json(changes)}
    return {name: value for name, value in merged.items() if value is not None}


def as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as they are after a round trip through JSON, which turns tuples into lists."""
    if not attributes:
        return {}
    return msgspec.json.decode(msgspec.json.encode(attributes), type=dict[str, Any])


def canonical_json(value: Any) -> str:
    """Encode a JSON value so that equal values have equal text. 1 equals 1.0 but not true; names are in one order."""
    return _encode(_with_integers(value)).decode()


def _with_integers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_with_integers(part) for part in value]
    if isinstance(value, Mapping):
        return {name: _with_integers(part) for name, part in value.items()}
    return value


def make_cursor(created_at: Millis, uid: RunUid) -> str:
    """Return the cursor for the page after this run. Runs that are added later do not shift it."""
    return f"{created_at}.{uid}"


def parse_cursor(cursor: str) -> tuple[int, str]:
    """Parse a cursor that ``make_cursor`` made. Raises UsageError if the text is not a cursor."""
    created_at, dot, uid = cursor.partition(".")
    if not dot or not created_at.removeprefix("-").isdigit():
        raise UsageError(f"{cursor!r} is not a cursor.", hint="Pass the cursor of the previous page unchanged.")
    return int(created_at), uid
