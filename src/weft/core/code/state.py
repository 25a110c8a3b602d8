"""What a code run is now: its entries by location, and the order of facts, all that replay needs."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.events import NULL, Path
from weft.core.ids import EntryId
from weft.core.run.state import State
from weft.errors import Failure


class Entry(msgspec.Struct, omit_defaults=True):
    """One recorded operation of a code run, found again by its location."""

    id: EntryId
    key: str
    kind: str
    status: Literal["open", "done", "failed", "cancelled"] = "open"
    digest: str = ""
    output: Raw = NULL
    failure: Failure | None = None
    round: int = 0
    child: str = ""
    due: int = 0
    """When a wait for messages ends: a refused one does not lengthen it."""
    optional: bool = False
    """Replay may miss it: a pure step, or one recorded after something that a retry dropped."""


class Scope(msgspec.Struct):
    """What lives directly below one place, so that it can be dropped without looking at anything else."""

    entries: list[int] = []
    scopes: dict[str, None] = {}
    """In order of creation; one that was dropped is not remembered here either."""


class CodeState(State, kw_only=True, omit_defaults=True):
    """A code run: its entries, and its facts in the order in which the code was, and will be, told of them."""

    names: list[str] = msgspec.field(default_factory=lambda: ["~", "&"])
    entries: dict[int, Entry] = {}
    facts: list[int] = []
    reborn: dict[str, int] = {}
    """How often a child was given up by a retry, by place: the next one there needs an id of its own."""
    dropped: int = 0
    """How many of the facts belong to entries that have left the state."""


class CodeIndex:
    """What can be rebuilt from a ``CodeState`` and is needed to find things in it quickly."""

    __slots__ = ("keys", "name_ids", "paths", "scopes")

    def __init__(self, state: CodeState) -> None:
        self.name_ids = {name: i for i, name in enumerate(state.names)}
        self.keys: dict[str, int] = {}
        self.paths: dict[str, Path] = {"": []}
        self.scopes: dict[str, Scope] = {}
        for entry in state.entries.values():
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Make an entry findable by its location and droppable with its scope."""
        self.keys[entry.key] = entry.id
        cut = entry.key.rfind("/") + 1
        if cut:
            self._scope(entry.key[:cut]).entries.append(entry.id)

    def _scope(self, prefix: str) -> Scope:
        found = self.scopes.get(prefix)
        if found is None:
            found = self.scopes[prefix] = Scope()
            cut = prefix.rfind("/", 0, -1) + 1
            if cut:
                self._scope(prefix[:cut]).scopes[prefix] = None
        return found

    def below(self, prefix: str) -> list[int]:
        """The entries in a scope and all below it."""
        found = self.scopes.get(prefix)
        if found is None:
            return []
        return [*found.entries, *(number for inner in found.scopes for number in self.below(inner))]

    def drop(self, prefix: str) -> list[int]:
        """Forget a scope and all below it; the entries that were there."""
        outer = self.scopes.get(prefix[: prefix.rfind("/", 0, -1) + 1])
        if outer is not None:
            outer.scopes.pop(prefix, None)
        return self._drop(prefix)

    def _drop(self, prefix: str) -> list[int]:
        found = self.scopes.pop(prefix, None)
        if found is None:
            return []
        gone = list(found.entries)
        for inner in found.scopes:
            gone.extend(self._drop(inner))
        self.paths.pop(prefix, None)
        return gone
