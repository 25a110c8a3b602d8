"""Stored versions of workflows in memory."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.errors import Conflict
from weft.ports.definitions import Definition, Origin
from weft.stores.memory.content import MemoryContent
from weft.stores.rules import origins_below


class MemoryDefinitions:
    """The definitions of a memory store."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def put(self, definition: Definition) -> bool:
        known = self._content.definitions.setdefault((definition.name, definition.version), definition)
        if (known.body, known.style) != (definition.body, definition.style):
            raise Conflict(
                f"Version {definition.version} of {definition.name} is already stored with another definition.",
                hint="A stored version never changes. Store the new definition under another version.",
            )
        return known is definition

    async def get(self, name: str, version: str) -> Definition | None:
        return self._content.definitions.get((name, version))

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        all_of_them = [one for one in self._content.definitions.values() if name in {None, one.name}]
        return sorted(all_of_them, key=lambda one: (one.name, one.created_at))

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        return sorted(key for key, one in self._content.definitions.items() if one.style == style)

    async def promote(self, name: str, version: str, origin: Origin) -> None:
        known = self._content.definitions.get((name, version))
        if known is not None and known.origin in origins_below(origin):
            self._content.definitions[name, version] = msgspec.structs.replace(known, origin=origin)
