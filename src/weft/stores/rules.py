"""What every store decides the same way. Pure.

Two stores that answer differently are two databases; these are the places where they would drift apart first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.core.ids import Epoch, Millis, RunId, RunUid
from weft.errors import UsageError
from weft.ports.store import PENDING, START_MAIL, Append, Mail, NewRun

_encode = msgspec.json.Encoder(order="deterministic").encode


def is_plain(append: Append) -> bool:
    """Whether there are events and nothing else."""
    return append.status is None and append.create is None and is_lean(append)


def is_lean(append: Append) -> bool:
    """Whether there is nothing but events, and perhaps the beginning or the end of a run."""
    return (
        not (append.taken or append.keys or append.mail or append.refs or append.children)
        and append.attributes is None
        and append.reopen is None
        and append.resolved is None
        and append.snapshot is None
    )


def start_mail(run: NewRun) -> Mail | None:
    """The first piece of mail of a new run, if it is made with one."""
    if run.start is None:
        return None
    return Mail(id=START_MAIL, to=run.uid, body=run.start, at=run.created_at)


def status_of(run: NewRun) -> str:
    """The status of a row that has no events yet."""
    return PENDING if run.owner is None else "running"


def epoch_of(run: NewRun) -> Epoch:
    """The epoch of a row that has no events yet."""
    return Epoch(0 if run.owner is None else 1)


def free_id(child: NewRun, taken: Callable[[RunId], bool]) -> RunId:
    """The id under which a child's row is made: its own, or one that nobody else can have."""
    if not taken(child.id):
        return child.id
    short = RunId(f"{child.id}~{child.uid[:8]}")
    return RunId(f"{child.id}~{child.uid}") if taken(short) else short


def merge_attributes(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes after a change, as JSON gives them back; None removes a name."""
    merged = {**old, **plain(changes)}
    return {name: value for name, value in merged.items() if value is not None}


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes as JSON gives them back: tuples are lists, and nothing is shared with the caller."""
    if not attributes:
        return {}
    return msgspec.json.decode(msgspec.json.encode(attributes), type=dict[str, Any])


def canonical(value: Any) -> str:
    """One text per JSON value: 1 and 1.0 are the same, 1 and true are not, the order of names says nothing."""
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
    """Where a page ends, so that the next one goes on there even if runs were added meanwhile."""
    return f"{created_at}.{uid}"


def position(cursor: str) -> tuple[int, str]:
    """What ``cursor_of`` was made from. Raises UsageError for anything else."""
    created_at, dot, uid = cursor.partition(".")
    if not dot or not created_at.removeprefix("-").isdigit():
        raise UsageError(f"{cursor!r} is not a cursor.", hint="Pass the cursor of the previous page as it came.")
    return int(created_at), uid
