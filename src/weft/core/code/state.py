"""The state of a code run: its entries by location, and the order of its facts. Replay needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
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
    """When a wait for messages times out. A refused message does not extend it."""
    optional: bool = False
    """Whether replay may skip this entry, because it is a pure step or was recorded after one that a retry dropped."""
    once: str = ""
    """The step, if it must not be performed twice."""


class Scope(msgspec.Struct):
    """The entries and scopes directly below one place, so that they can be dropped without a search."""

    entries: list[int] = []
    scopes: dict[str, None] = {}
    """Inner scopes in order of creation. Dropped scopes are removed."""


class CodeState(State, kw_only=True, omit_defaults=True):
    """The entries of a code run, and its facts in the order in which the code receives them, live and on replay."""

    names: list[str] = msgspec.field(default_factory=lambda: ["~", "&"])
    entries: dict[int, Entry] = {}
    facts: list[int] = []
    reborn: dict[str, int] = {}
    """How often a retry dropped the child at a place. The next child at that place needs a new id."""
    dropped: int = 0
    """The number of facts whose entries were removed from the state."""


class CodeIndex:
    """An index of the entries of a ``CodeState``, which can be rebuilt from the state.

    Most of it is built on first use. A replay that reaches the entries in the order of the log never needs it.
    """

    __slots__ = ("_keys", "_scopes", "_state", "name_ids", "paths")

    def __init__(self, state: CodeState) -> None:
        self._state = state
        self.name_ids = dict(zip(state.names, range(len(state.names)), strict=True))
        self.paths: dict[str, Path] = {"": []}
        self._keys: dict[str, int] | None = None if state.entries else {}
        self._scopes: dict[str, Scope] | None = None

    @property
    def keys(self) -> dict[str, int]:
        """The number of the entry at each location."""
        if self._keys is None:
            self._keys = {entry.key: entry.id for entry in self._state.entries.values()}
        return self._keys

    @property
    def scopes(self) -> dict[str, Scope]:
        """The scope of each place that has entries below it."""
        if self._scopes is None:
            self._scopes = {}
            for entry in self._state.entries.values():
                self._add_to_scope(self._scopes, entry)
        return self._scopes

    def register(self, names: Iterable[str]) -> None:
        """Add names to the registry of the run."""
        known = self._state.names
        for name in names:
            self.name_ids[name] = len(known)
            known.append(name)

    def find(self, key: str) -> Entry | None:
        """Return the entry at a location, if there is one."""
        keys = self._keys
        number = (self.keys if keys is None else keys).get(key)
        return None if number is None else self._state.entries[number]

    def add(self, entry: Entry) -> None:
        """Add an entry to the index."""
        if self._keys is not None:
            self._keys[entry.key] = entry.id
        if self._scopes is not None:
            self._add_to_scope(self._scopes, entry)

    def forget(self, entry: Entry) -> None:
        """Remove the location of an entry that was removed from the state."""
        if self._keys is not None and self._keys.get(entry.key) == entry.id:
            del self._keys[entry.key]

    def _add_to_scope(self, scopes: dict[str, Scope], entry: Entry) -> None:
        cut = entry.key.rfind("/") + 1
        if cut:
            _get_or_add_scope(scopes, entry.key[:cut]).entries.append(entry.id)

    def below(self, prefix: str) -> list[int]:
        """Return the entries in a scope and in all scopes below it."""
        scope = self.scopes.get(prefix)
        if scope is None:
            return []
        return [*scope.entries, *(number for inner in scope.scopes for number in self.below(inner))]

    def drop(self, prefix: str) -> list[int]:
        """Remove a scope and all scopes below it. Returns their entries."""
        outer = self.scopes.get(prefix[: prefix.rfind("/", 0, -1) + 1])
        if outer is not None:
            outer.scopes.pop(prefix, None)
        return self._drop_scopes(prefix)

    def _drop_scopes(self, prefix: str) -> list[int]:
        scope = self.scopes.pop(prefix, None)
        if scope is None:
            return []
        entries = list(scope.entries)
        for inner in scope.scopes:
            entries.extend(self._drop_scopes(inner))
        self.paths.pop(prefix, None)
        return entries


def _get_or_add_scope(scopes: dict[str, Scope], prefix: str) -> Scope:
    scope = scopes.get(prefix)
    if scope is None:
        scope = scopes[prefix] = Scope()
        cut = prefix.rfind("/", 0, -1) + 1
        if cut:
            _get_or_add_scope(scopes, prefix[:cut]).scopes[prefix] = None
    return scope


def has_unchecked_input(state: CodeState) -> bool:
    """Return whether a run is a fork whose input was changed, and that has asked for nothing yet."""
    fork = state.fork
    return fork is not None and fork.has_new_input and not any(number > fork.point for number in state.entries)
