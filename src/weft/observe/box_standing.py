"""How the boxes of a picture stand: how many of their places are open, done, failed or skipped."""

from __future__ import annotations

import msgspec

from weft.observe.pictures import Mark

FIRST: tuple[Mark, ...] = ("working", "waiting", "queued", "failed", "done", "skipped")
"""The marks by priority. The first one that a place of a box has is the mark of the box."""


class BoxStanding(msgspec.Struct, omit_defaults=True):
    """How a box stands: its mark, and how many of its places stand how."""

    mark: Mark = "idle"
    open: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    queued: int = 0
    badges: list[str] = []
