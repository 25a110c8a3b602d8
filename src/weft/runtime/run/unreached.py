"""Recorded entries that replay has not reached. They reveal a renamed step before it acts twice.

Unchanged code makes its calls in the order in which they were recorded. So when code asks for new work, it has reached
every entry that is recorded in its scope. If it has not, the code was changed.

Rules: docs/internals/engine.md#rule-21.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, NamedTuple

from weft.core.code.state import CodeState, Entry
from weft.errors import Diverged
from weft.runtime.run.scopes import NameScope

log = logging.getLogger("weft")

NEW_WORK = frozenset({"step", "child", "ask"})
"""The kinds of entries that act on the outside world. Timers, messages and recorded values do not."""
_ACTS = frozenset({"step", "child"})
_SHOWN_MAX = 5


class Missed(NamedTuple):
    """A recorded entry that acted, and that the code did not reach."""

    entry: Entry
    place: str
    """The place of the entry in the scope of the code."""
    kind: str

    def error(self, run_id: str, asked: str, kind: str) -> Diverged:
        """Make the error: it names both places and the possible fixes."""
        recorded = f"the {self.entry.kind} `{self.entry.key}`"
        name = _step_name(self.place)
        renamed = f'Renamed: @app.{"step" if self.entry.kind == "step" else "workflow"}(name="{name}")'
        removed = f'Removed: await ctx.removed("{name}", "{self.kind}")'
        if self.kind == "task":
            renamed, removed = "Moved out of an asyncio task: move it back", "Removed: create the task as before"
        elif self.kind == "branch":
            renamed = f'Renamed: give the branch its name "{name}" back'
            removed = "Removed: keep the branch behind ctx.version"
        elif self.place != self.entry.key:
            renamed = f'Renamed: give the {self.kind} its name "{name}" back'
        return Diverged(
            f"{run_id} stopped for you: the code asks for the new {kind} `{asked}`, but replay no longer reaches "
            f"{recorded}, which is recorded. If it was renamed, it would act twice. Nothing was undone.",
            hint=f"{renamed}. {removed}. "
            f'Inserted on purpose: if await ctx.version("{_step_name(asked)}", 2) >= 2. Then: weft resume {run_id}.',
            location=self.entry.key,
            recorded=recorded,
            asked=asked,
        )


class Unreached:
    """The entries that were recorded before this replay began and that it has not reached yet.

    They are found when they are first asked for: a replay reaches nearly all entries before that.
    """

    def __init__(self, state: CodeState, visited: set[int]) -> None:
        """``visited`` are the entries that the code has reached or made."""
        self._state = state
        self._visited = visited
        self.found: dict[int, Entry] | None = None if state.entries else {}
        """What ``entries`` has found, if it was asked for. A new run has none."""

    @property
    def entries(self) -> dict[int, Entry]:
        if self.found is None:
            visited = self._visited
            # A cancelled entry need not be reached again. "!" marks places of the engine itself.
            self.found = {
                number: entry
                for number, entry in self._state.entries.items()
                if number not in visited and entry.status != "cancelled" and "!" not in entry.key
            }
        return self.found

    def forget(self, number: int) -> None:
        """Forget an entry that was reached or already reported. One that was reached is among the visited too."""
        if self.found:
            self.found.pop(number, None)

    def missed(self, scope: NameScope[Any], state: CodeState) -> Missed | None:
        """Return the first entry that acted and that the code has passed, in this scope or an outer one."""
        for number, entry in self.entries.items():
            if entry.kind not in _ACTS or entry.optional or number not in state.entries:
                continue
            at: NameScope[Any] | None = scope
            while at is not None:
                if entry.key.startswith(at.prefix):
                    found = _missed_in(at, entry, state)
                    if found is not None:
                        return found
                at = at.outer
        return None

    def passed(self, scope: NameScope[Any], state: CodeState, keys: Collection[str]) -> tuple[str, ...]:
        """Return the places of dropped irreversible work that the code has passed, in this scope or an outer one.

        ``keys`` are the places of entries that the code has reached.
        """
        found = []
        for key, earlier in state.earlier.items():
            if not earlier.step or key in keys:
                continue
            at: NameScope[Any] | None = scope
            while at is not None and not (key.startswith(at.prefix) and _is_passed(at, key)):
                at = at.outer
            if at is not None:
                found.append(key)
        return tuple(found)

    def has_items(self, inner: NameScope[Any], count: int) -> bool:
        """Return whether something acted in an item of a map after the first ``count``."""
        prefix = f"{inner.prefix}~"
        numbers = (
            entry.key[len(prefix) :].partition("/")[0]
            for entry in self.entries.values()
            if entry.kind in _ACTS and entry.key.startswith(prefix)
        )
        return any(int(number) >= count for number in numbers)

    def report(self, state: CodeState) -> None:
        """Log the entries that replay never reached. Called when the run ends."""
        gone = [entry.key for number, entry in self.entries.items() if number in state.entries and not entry.optional]
        if gone:
            names = ", ".join(gone[:_SHOWN_MAX]) + (f" and {len(gone) - _SHOWN_MAX} more" if gone[_SHOWN_MAX:] else "")
            log.warning("weft: %s ends, and replay no longer reaches the recorded %s", state.run_id, names)


def _is_passed(scope: NameScope[Any], key: str) -> bool:
    """Return whether the code has passed a place that it has not reached, and that lies in its scope."""
    first, _, rest = key[len(scope.prefix) :].partition("/")
    return not rest or not (first[0] == "~" or scope.has_entered(first))


def _missed_in(scope: NameScope[Any], entry: Entry, state: CodeState) -> Missed | None:
    if not _is_passed(scope, entry.key):
        return None
    first, _, rest = entry.key[len(scope.prefix) :].partition("/")
    place = scope.prefix + first
    if not rest:
        return Missed(entry, place, entry.kind)
    return Missed(entry, place, "branch" if scope.holds_branches else _operation_kind(place, rest, state))


def _operation_kind(place: str, rest: str, state: CodeState) -> str:
    """Return the kind of operation that contains these branches or rounds. Only races and loops are recorded."""
    if _step_name(place).startswith("&"):
        return "task"
    for entry in state.entries.values():
        if entry.key == place:
            return entry.kind
    return "map" if rest.startswith("~") else "join"


def _step_name(place: str) -> str:
    return place.rpartition("/")[2].partition("#")[0]
