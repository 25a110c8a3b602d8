"""Stored versions of workflows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from weft.core.ids import Millis
from weft.errors import Conflict
from weft.ports.definitions import VERSION_MARK, Definition, Origin
from weft.stores.memory.content import MemoryContent
from weft.stores.rows import origins_below


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

    async def promote(self, name: str, version: str, origin: Origin, *, at: Millis) -> None:
        known = self._content.definitions.get((name, version))
        if known is not None:
            self._content.definitions_used[name, version] = at
        if known is not None and known.origin in origins_below(origin):
            self._content.definitions[name, version] = msgspec.structs.replace(known, origin=origin)

    async def unused(self, style: str, *, before: Millis, limit: int) -> Sequence[tuple[str, str]]:
        found = (key for key in await self.names(style) if self._is_unused(key, before))
        return list(islice(found, limit))

    async def remove(self, name: str, version: str, *, before: Millis) -> bool:
        key = (name, version)
        if key not in self._content.definitions or not self._is_unused(key, before):
            return False
        del self._content.definitions[key]
        self._content.definitions_used.pop(key, None)
        return True

    def _is_unused(self, key: tuple[str, str], before: Millis) -> bool:
        known = self._content.definitions[key]
        if max(known.created_at, self._content.definitions_used.get(key, 0)) >= before:
            return False
        name, version = key
        mark = f"{VERSION_MARK}{version}"
        runs = (*self._content.runs.values(), *self._content.doomed.values())
        if any((run.new.workflow, run.new.version) == key or mark in run.attributes for run in runs):
            return False
        moves = (moves for tag, moves in self._content.tag_moves.items() if tag.workflow == name)
        return not any(version in (move.before, move.after) for one in moves for move in one)
