"""Names of things, as types, so that one cannot be passed for another."""

from __future__ import annotations

from hashlib import blake2b
from typing import NewType

RunId = NewType("RunId", str)
"""What people call a run. Chosen by them, or made; free again once the run was deleted."""

RunUid = NewType("RunUid", str)
"""One incarnation of a run: made at start, never re-used. Keys and child uids derive from it."""

HostId = NewType("HostId", str)
EntryId = NewType("EntryId", int)
"""The sequence number of the event that made the entry: unique in its run, ordered by creation."""

Seq = NewType("Seq", int)
Epoch = NewType("Epoch", int)
Millis = NewType("Millis", int)
"""Milliseconds since 1970, or a span of them where the name ends in ``_ms``."""


def derive(*causes: object) -> str:
    """An id that follows from its causes."""
    return blake2b("\x1f".join(map(str, causes)).encode(), digest_size=9).hexdigest()


def child_uid(uid: str, seq: int) -> str:
    """The uid of the child that event ``seq`` of a run starts."""
    return blake2b(f"{uid}/{seq}".encode(), digest_size=16).hexdigest()


GOAL = "goal"
"""The workflow of a goal run that was started without one."""

TENANT_MARK = "@"
"""Ids of a tenant's runs begin with it: ``@acme/order-7``."""


def tenant_prefix(run_id: str) -> str:
    """What all ids of the same tenant begin with; empty for a run that belongs to none."""
    name, slash, _ = run_id.partition("/")
    return f"{name}/" if slash and len(name) > 1 and name.startswith(TENANT_MARK) else ""


RESERVED_KEYS = "weft/"
"""What the keys of users may not begin with."""


def request_key(message: str) -> str:
    """The key of a message whose sender waits for an answer."""
    return f"{RESERVED_KEYS}request/{message}"


def answer_key(message: str) -> str:
    """The key under which the answer to a message is found."""
    return f"{RESERVED_KEYS}answer/{message}"


CANCEL = EntryId(0)
"""Stands in the list of facts where a request to end the code (cancel, run deadline) takes effect."""
