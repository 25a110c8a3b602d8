"""Merge branch outputs into one value, and write values into nested data. Pure."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from weft.core.graph.model import Merge
from weft.core.graph.tokens import Frame, GraphState
from weft.core.run.composites import (
    MARK,
    compose,
    composite_fields,
    escape_fields,
    has_marks,
    leaf,
    part_at,
    with_mark,
    without_mark,
)


def branch_output(state: GraphState, frame: Frame, index: int) -> Raw:
    """Return the output of a branch: its writes, or else the value of its parked token (of several: by sender)."""
    branch = frame.branches[index]
    if branch.writes is not None:
        return compose(branch.writes)
    parked = [state.tokens[token_id] for token_id in branch.parked]
    if len(parked) == 1:
        return parked[0].value
    return compose({token.sender: leaf(token.value) for token in parked})


def source_path(merge: Merge) -> list[str]:
    """Return the path that a merge reads in the output of a branch. Empty for the whole output."""
    words = list(merge.source)
    if words[:1] == ["branch"]:
        words = words[1:]
    return words[1:] if words[:1] == ["output"] else words


def merge_outputs(merge: Merge, outputs: Sequence[tuple[int, Any]]) -> Any:
    """Merge the outputs in the order given. If the merge has a source path, it is followed in each output first."""
    words = source_path(merge)
    values = [(index, part_at(value, words)) for index, value in outputs]
    match merge.how:
        case "append":
            return [value for _, value in values]
        case "keyed_by_branch":
            return {str(index): value for index, value in values}
        case "last_wins":
            return values[-1][1] if values else None
    union: dict[str, Any] = {}
    for _, value in values:
        union.update(composite_fields(value))
    return escape_fields(union)


def begin_late_merge(merge: Merge, frame: Frame) -> None:
    """Record what has been merged, so that late branches can be added to it."""
    frame.order = sorted(frame.arrived) if merge.how != "last_wins" else []
    frame.given = {}
    if merge.how == "merge_object":
        words = source_path(merge)
        for index in frame.order:
            frame.given.update(
                dict.fromkeys(composite_fields(part_at(leaf(frame.branches[index].result), words)), index)
            )


def add_late_branch(merge: Merge, frame: Frame, held: Any, index: int) -> tuple[Any, bool] | None:
    """Add one branch to the merged value in place, at the cost of that branch.

    Returns None if everything must be merged again.

    The second part of the result says whether the branch contributed something that is not plain JSON.
    """
    value = part_at(leaf(frame.branches[index].result), source_path(merge))
    fields = composite_fields(value) if merge.how == "merge_object" else {}
    if merge.how == "last_wins" or MARK in fields or MARK in frame.given:
        return None
    inner = without_mark(held)
    match merge.how:
        case "append":
            place = bisect(frame.order, index)
            frame.order.insert(place, index)
            inner.insert(place, value)
        case "keyed_by_branch":
            inner[str(index)] = value
        case "merge_object":
            for key, item in fields.items():
                if frame.given.get(key, -1) < index:
                    frame.given[key] = index
                    inner[key] = item
    marked = has_marks(value)
    return with_mark(inner) if marked else held, marked


def read_path(data: Any, path: Sequence[str]) -> Any:
    """Return the value at a path in nested data."""
    for word in path:
        data = data[word]
    return data


def write_path(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set a value in nested data. Anything on the path that is not an object is replaced by one."""
    for word in path[:-1]:
        inner = data.get(word)
        if not isinstance(inner, dict):
            inner = data[word] = {}
        data = inner
    data[path[-1]] = value
