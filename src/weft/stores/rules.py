"""What all stores compute in the same way: shapes of appends, new rows, attributes, cursors. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.core.ids import Epoch, Millis, RunId, RunUid
from weft.errors import UsageError
from weft.ports.store import PENDING, START_MAIL, Append, Mail, NewRun

_encode = msgspec.json.Encoder(order="deterministic").encode


def is_plain(append: Append) -> bool:
    """Return whether an append has events and nothing else."""
    return append.status is None and append.create is None and is_lean(append)


def is_lean(append: Append) -> bool:
    """Return whether an append has only events and, at most, begins or ends its run."""
    return (
        not (append.taken or append.keys or append.mail or append.refs or append.children)
        and append.attributes is None
        and append.reopen is None
        and append.resolved is None
        and append.snapshot is None
    )


def start_mail(run: NewRun) -> Mail | None:
    """Return the first piece of mail of a new run, if it has one."""
    if run.start is None:
        return None
    return Mail(id=START_MAIL, to=run.uid, body=run.start, at=run.created_at)


def status_of(run: NewRun) -> str:
    """Return the status of a new row."""
    return PENDING if run.owner is None else "running"


def epoch_of(run: NewRun) -> Epoch:
    """Return the epoch of a new row."""
    return Epoch(0 if run.owner is None else 1)


def free_id(child: NewRun, taken: Callable[[RunId], bool]) -> RunId:
    """Return the id for the row of a child: its own, or, if that is taken, one made unique by its uid."""
    if not taken(child.id):
        return child.id
    short = RunId(f"{child.id}~{child.uid[:8]}")
    return RunId(f"{child.id}~{child.uid}") if taken(short) else short


def merge_attributes(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes after a change, as JSON gives them back. None removes a name."""
    merged = {**old, **plain(changes)}
    return {name: value for name, value in merged.items() if value is not None}


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy attributes as JSON gives them back: tuples become lists."""
    if not attributes:
        return {}
    return msgspec.json.decode(msgspec.json.encode(attributes), type=dict[str, Any])


def canonical(value: Any) -> str:
    """Return one text per JSON value: 1 and 1.0 are equal, 1 and true are not, the order of names does not matter."""
    return _encode(_whole_numbers(value)).decode()


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_whole_numbers(part) for part in value]
    if isinstance(value, Mapping):
        return {name: _whole_numbers(part) for name, part in value.items()}
    return value


def cursor_of(created_at: Millis, uid: RunUid) -> str:
    """Return the cursor of the end of a page. Runs that are added later do not shift it."""
    return f"{created_at}.{uid}"


def position(cursor: str) -> tuple[int, str]:
    """Parse a cursor of ``cursor_of``. Raises UsageError."""
    created_at, dot, uid = cursor.partition(".")
    if not dot or not created_at.removeprefix("-").isdigit():
        raise UsageError(f"{cursor!r} is not a cursor.", hint="Pass the cursor of the previous page as it came.")
    return int(created_at), uid
