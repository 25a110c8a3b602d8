"""W3C trace context of runs. Pure.

The ids of traces and spans derive from the uids of runs, so every host gives the same span the same id: a run that
continues on another host stays in its trace. A run tree is one trace: that of whoever started its root, else one that
derives from the root's uid.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

SAMPLED = 1
_FORMAT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_MASK = (1 << 64) - 1
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceParent(NamedTuple):
    """The trace of a caller, and its span in it."""

    trace_id: int
    span_id: int
    flags: int = SAMPLED

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def parse_traceparent(text: str) -> TraceParent | None:
    """Read a ``traceparent`` header; None if it is not valid, and a new trace must be begun."""
    found = _FORMAT.fullmatch(text)
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    if text.startswith("00") and len(text) != len("00-") + 32 + len("-") + 16 + len("-00"):
        return None  # only later versions may have more fields
    return TraceParent(int(found[1], 16), int(found[2], 16), int(found[3], 16))


def trace_of(uid: str, root: str, trace: str) -> int:
    """Return the trace of a run: as its start said, else that of the run at the root of its tree."""
    given = parse_traceparent(trace) if trace else None
    return given.trace_id if given is not None else _trace_number(f"trace {root or uid}", 16)


@lru_cache(maxsize=16_384)
def run_span(uid: str) -> int:
    """Return the span of a run."""
    return _trace_number(f"run {uid}", 8)


def entry_span(uid: str, entry: int) -> int:
    """Return the span of a wait, a question or a child run, by the number of its entry."""
    return run_span(uid) ^ _distance(1, entry)


def attempt_span(uid: str, task: int, attempt: int, delivery: int) -> int:
    """Return the span of one delivery of one attempt at a task."""
    return run_span(uid) ^ attempt_distance(task, attempt, delivery)


def work_span(uid: str, task: int, attempt: int, delivery: int) -> int:
    """Return the span of the work on a task in another process than that of its run."""
    return run_span(uid) ^ _distance(3, task, attempt, delivery)


def commit_span(uid: str, seq: int) -> int:
    """Return the span of the commit that wrote this event."""
    return run_span(uid) ^ commit_distance(seq)


def attempt_distance(task: int, attempt: int, delivery: int) -> int:
    """Return by which bits the span of an attempt differs from that of its run: XOR gives it, cheaper than a hash."""
    return _distance(2, task, attempt, delivery)


def commit_distance(seq: int) -> int:
    """Return by which bits the span of a commit differs from that of its run."""
    return _distance(4, seq)


def _distance(kind: int, first: int, second: int = 0, third: int = 0) -> int:
    """Return a number with well spread bits. Different arguments give different numbers."""
    total = kind * 0x9E3779B97F4A7C15 + first * 0xBF58476D1CE4E5B9
    total += second * 0x94D049BB133111EB + third * 0xD6E8FEB86659FD93
    total &= _MASK
    mixed = ((total ^ (total >> 32)) * 0xFF51AFD7ED558CCD) & _MASK
    return mixed ^ (mixed >> 29)


def _trace_number(text: str, size: int) -> int:
    # Never 0, which stands for no id.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest()) or 1
