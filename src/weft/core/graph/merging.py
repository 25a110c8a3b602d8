"""Branch outputs into one value, and values into nested data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from weft.core.graph.model import Merge
from weft.core.graph.opening import composed, follow, items, leaf
from weft.core.graph.tokens import Frame, GraphState


def branch_output(state: GraphState, frame: Frame, index: int) -> Raw:
    """What a branch gives: its mapped writes, else what its parked token brought (several: by their senders)."""
    branch = frame.branches[index]
    if branch.writes is not None:
        return composed(branch.writes)
    parked = [state.tokens[token_id] for token_id in branch.parked]
    if len(parked) == 1:
        return parked[0].value
    return composed({token.sender: leaf(token.value) for token in parked})


def words_of(merge: Merge) -> list[str]:
    """The path into a branch's output that a merge reads; empty: the whole."""
    words = list(merge.source)
    if words[:1] == ["branch"]:
        words = words[1:]
    return words[1:] if words[:1] == ["output"] else words


def merged(merge: Merge, outputs: Sequence[tuple[int, Any]]) -> Any:
    """The outputs, in the order given, by the strategy; a path of the merge's source is followed first."""
    words = words_of(merge)
    values = [(index, follow(value, words)) for index, value in outputs]
    match merge.how:
        case "append":
            return [value for _, value in values]
        case "keyed_by_branch":
            return {str(index): value for index, value in values}
        case "last_wins":
            return values[-1][1] if values else None
    union: dict[str, Any] = {}
    for _, value in values:
        union.update(items(value))
    return union


def write(data: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Set a value in nested data; what stands in the way is replaced by an object."""
    for word in path[:-1]:
        inner = data.get(word)
        if not isinstance(inner, dict):
            inner = data[word] = {}
        data = inner
    data[path[-1]] = value
