"""The events of a log that record what people have changed in a run: who, when and why."""

from __future__ import annotations

from collections.abc import AsyncIterator

from weft.core import events as e
from weft.core.unfold import ViewEvent
from weft.observe.event_parts import EventPart, follow_parts
from weft.ports.store import RunRow
from weft.runtime.service import RunService

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


def is_change(event: ViewEvent) -> bool:
    """Return whether an event records a change that somebody asked for."""
    return isinstance(event, _CHANGES)


async def changes_of(service: RunService, row: RunRow) -> AsyncIterator[EventPart]:
    """Yield the changes of a run, oldest first."""
    async for part in follow_parts(service, row):
        if is_change(part.event):
            yield part
