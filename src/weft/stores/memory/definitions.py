"""Stored versions of workflows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.errors import Conflict, NotFound
from weft.ports.store import Definition
from weft.stores.memory.content import MemoryContent


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
        found = self._content.definitions.get((name, version))
        if found is not None:
            return found
        return self._content.definitions.get((name, self._content.tags.get((name, version), "")))

    async def versions(self, name: str | None = None) -> Sequence[Definition]:
        all_of_them = [one for one in self._content.definitions.values() if name in {None, one.name}]
        return sorted(all_of_them, key=lambda one: (one.name, one.created_at))

    async def names(self, style: str) -> Sequence[tuple[str, str]]:
        return sorted(key for key, one in self._content.definitions.items() if one.style == style)

    async def tag(self, name: str, tag: str, version: str) -> None:
        if (name, version) not in self._content.definitions:
            raise NotFound(f"{name} has no version {version}.", name=name, version=version)
        self._content.tags[name, tag] = version

    async def tags(self, name: str) -> Mapping[str, str]:
        return {tag: version for (known, tag), version in sorted(self._content.tags.items()) if known == name}
