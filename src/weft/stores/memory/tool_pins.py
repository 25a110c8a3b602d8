"""Pinned tools in memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.ports.tool_pins import ToolPin
from weft.stores.memory.content import MemoryContent


class MemoryToolPins:
    """The pinned tools of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def list(self, server: str = "") -> Sequence[ToolPin]:
        pins = self._content.tool_pins
        return [pins[key] for key in sorted(pins) if not server or key[0] == server]

    async def begin(self, pins: Sequence[ToolPin]) -> bool:
        known = self._content.tool_pins
        if any(key[0] == pin.server for key in known for pin in pins):
            return False
        for pin in pins:
            known[pin.server, pin.tool] = pin
        return True

    async def note(self, pin: ToolPin) -> None:
        known = self._content.tool_pins
        before = known.get((pin.server, pin.tool), msgspec.structs.replace(pin, accepted="", by=""))
        known[pin.server, pin.tool] = msgspec.structs.replace(before, seen=pin.seen)

    async def accept(self, pin: ToolPin) -> bool:
        known = self._content.tool_pins
        before = known.get((pin.server, pin.tool))
        if before is None or not before.seen or before.seen != pin.seen:
            return False
        known[pin.server, pin.tool] = msgspec.structs.replace(pin, accepted=pin.seen, seen="")
        return True
