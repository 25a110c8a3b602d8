"""Types for ids, so that one kind cannot be mistaken for another, and functions that derive ids. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    RunId = NewType("RunId", str)
    """The public name of a run, chosen by the caller or generated. Can be reused after the run is deleted."""

    RunUid = NewType("RunUid", str)
    """The unique id of one run, created at its start and never reused. Keys and child uids derive from it."""

    HostId = NewType("HostId", str)
    EntryId = NewType("EntryId", int)
    """The sequence number of the event that created the entry: unique in its run, ordered by creation."""

    Seq = NewType("Seq", int)
    Epoch = NewType("Epoch", int)
    Millis = NewType("Millis", int)
    """Milliseconds since 1970, or a duration if the name ends in ``_ms``."""
else:  # a call of a NewType costs six times as much, and each step makes ten
    RunId = RunUid = HostId = str
    EntryId = Seq = Epoch = Millis = int


def derive(*causes: object) -> str:
    """Derive an id from its causes. Equal causes have equal ids."""
    return blake2b("\x1f".join(map(str, causes)).encode(), digest_size=9).hexdigest()


def child_uid(uid: str, seq: int) -> str:
    """Return the uid of the child that event ``seq`` of a run starts."""
    return blake2b(f"{uid}/{seq}".encode(), digest_size=16).hexdigest()


def delivery_uid(uid: str, seq: int, hook: str) -> str:
    """Return the uid of the run that delivers event ``seq`` of a run to a hook."""
    return blake2b(f"{uid}/{seq}/{hook}".encode(), digest_size=16).hexdigest()


GOAL = "goal"
"""The workflow of a goal run that was started without one."""

INTERNAL_WORKFLOWS = ("weft.schedule", "weft.bulk", "weft.hook")
"""Workflows of Weft's own runs. Lists and counts of runs leave them out unless they are named."""

HOOK_CHAIN = "weft.hook_chain"
"""The attribute of runs that the code of hooks started, and of the runs below them: how many there are in their chain.

A hook may start a run whose events call hooks again. The number lets such a chain end.
"""

TENANT_MARK = "@"
"""The first character of the ids of a tenant's runs: ``@acme/order-7``."""


def tenant_prefix(run_id: str) -> str:
    """Return the prefix of all ids of the run's tenant, or an empty string if the run has no tenant."""
    name, slash, _ = run_id.partition("/")
    return f"{name}/" if slash and len(name) > 1 and name.startswith(TENANT_MARK) else ""


RESERVED_IDS = ("schedule/", "bulk/", "hook/")
"""Prefixes of the ids of Weft's own runs, which runs of users must not have."""


def reserved_prefix(run_id: str) -> str:
    """Return the beginning of an id that only Weft's own runs have; empty if it has none."""
    name = run_id.removeprefix(tenant_prefix(run_id))
    return next((prefix for prefix in RESERVED_IDS if name.startswith(prefix)), "")


RESERVED_KEYS = "weft/"
"""A prefix that keys of users must not have."""


def request_key(message: str) -> str:
    """Return the key of a message whose sender waits for an answer."""
    return f"{RESERVED_KEYS}request/{message}"


def answer_key(message: str) -> str:
    """Return the key of the answer to a message."""
    return f"{RESERVED_KEYS}answer/{message}"


CANCEL = EntryId(0)
"""The number that stands for the run's own deadline among timers, and for a cancel in the order of facts."""
