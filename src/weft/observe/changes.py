"""The events of a log that record what people have changed in a run: who, when and why."""

from __future__ import annotations

from weft.core import events as e
from weft.core.unfold import ViewEvent
from weft.observe.event_parts import kind_of

_CHANGES = (
    e.RunPatched,
    e.PatchAsked,
    e.PatchReviewAsked,
    e.PatchDropped,
    e.ResultSet,
    e.RunRetried,
    e.RunForked,
    e.RunEdited,
    e.RunPaused,
    e.RunResumed,
    e.CancelRequested,
)
CHANGE_KINDS = frozenset(kind_of(event) for event in _CHANGES)


def is_change(event: ViewEvent) -> bool:
    """Return whether an event records a change that somebody asked for."""
    return isinstance(event, _CHANGES)
