"""``RUN:PLACE``, as questions and dead letters are named."""

from __future__ import annotations

from weft.core.ids import RunId
from weft.errors import NotFound
from weft.ports.store import RunRow
from weft.runtime.door import Door

RUN_ID_CHARS_MAX = 1_000
"""A start may choose 500; ids of tenants and of child runs have more before and behind that."""


async def named(door: Door, text: str, what: str) -> tuple[RunRow, str]:
    """The run and the place that are meant: both may have colons, so the longest id that exists is taken."""
    cut = text.rfind(":", 0, RUN_ID_CHARS_MAX + 1)
    while cut > 0:
        row = await door.store.directory.find(RunId(text[:cut]))
        if row is not None:
            return row, text[cut + 1 :]
        cut = text.rfind(":", 0, cut)
    raise NotFound(f"No {what} {text[:100]!r} is known here.")
