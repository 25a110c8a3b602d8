"""Compare two traces: the first divergence, what changed, what only one run has, and times. Pure.

Ids, keys, absolute times and hosts are not compared. Values are compared by their JSON; the caller loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from weft.documents.json_diff import ChangedValue, changed_values
from weft.observe.run_trace import RunTrace, TraceItem

Aspect = Literal["presence", "input", "outcome", "value", "conditions", "attempts", "decided", "kind"]
Load = Callable[[bytes], Any]
"""Returns a value of the log, with its blobs."""
DIVERGING: frozenset[Aspect] = frozenset({"presence", "input", "outcome", "value", "conditions", "kind"})


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way in which the runs differ at a place."""

    place: str
    aspect: Aspect
    changes: list[ChangedValue] = []


class TimeDifference(msgspec.Struct, frozen=True):
    """How long something took in both runs: a step worked, anything else waited."""

    place: str
    a_ms: int
    b_ms: int


class TraceDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two runs."""

    first: Difference | None
    changed: list[Difference]
    only_a: list[str]
    only_b: list[str]
    times: list[TimeDifference]


def compare(a: RunTrace, b: RunTrace, load: Load) -> TraceDiff:
    """Compare two runs, place by place, in the order of the first."""
    runs = list(_differences(a.run, b.run, load))
    changed = [one for one in runs if one.aspect == "input"]
    only_a: list[str] = []
    first = changed[0] if changed else None
    for place, item in a.items.items():
        other = b.items.get(place)
        if other is None:
            only_a.append(place)
            first = first or Difference(place, "presence", [ChangedValue("", a=item.kind)])
            continue
        found = list(_differences(item, other, load))
        changed += found
        first = first or next((one for one in found if one.aspect in DIVERGING), None)
    only_b = [place for place in b.items if place not in a.items]
    if only_b:
        first = first or Difference(only_b[0], "presence", [ChangedValue("", b=b.items[only_b[0]].kind)])
    ends = [one for one in runs if one.aspect != "input"]
    first = first or next(iter(ends), None)
    return TraceDiff(
        first=first, changed=[*changed, *ends], only_a=only_a, only_b=only_b, times=_time_differences(a.items, b.items)
    )


def _differences(a: TraceItem, b: TraceItem, load: Load) -> Iterator[Difference]:
    sides: dict[Aspect, tuple[Any, Any]] = {"kind": (a.kind, b.kind)}
    if a.input != b.input:
        sides["input"] = load(a.input), load(b.input)
    sides["conditions"] = a.conditions, b.conditions
    sides["outcome"] = a.outcome, b.outcome
    if a.value != b.value:
        sides["value"] = _item_value(a, load), _item_value(b, load)
    sides["attempts"] = a.attempts, b.attempts
    sides["decided"] = a.by, b.by
    for aspect, (left, right) in sides.items():
        changes = changed_values(left, right)
        if changes:
            yield Difference(a.place, aspect, changes)


def _item_value(item: TraceItem, load: Load) -> Any:
    """Return the value of an item; none if it has not ended."""
    return UNSET if item.ended is None else load(item.value)


def _time_differences(a: Mapping[str, TraceItem], b: Mapping[str, TraceItem]) -> list[TimeDifference]:
    """Return how long things took that both runs did, the largest difference first."""
    found = [
        TimeDifference(place, item.took_ms, other.took_ms)
        for place, item in a.items()
        if (other := b.get(place)) is not None
        and item.took_ms is not None
        and other.took_ms is not None
        and item.took_ms != other.took_ms
    ]
    return sorted(found, key=lambda one: -abs(one.a_ms - one.b_ms))
