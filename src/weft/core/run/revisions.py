"""The revisions of a run: which patch an undo or a redo refers to, and which version was in force when. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.core.events import AnyEvent, RunPatched, RunStarted
from weft.core.run.state import Revision, State
from weft.errors import Refused


def version_at(state: State, seq: int) -> str:
    """Return the version that the run followed when the event with this number was recorded."""
    later = next((revision for revision in state.revisions if revision.seq >= seq), None)
    return state.version if later is None else later.base


def versions_in(events: Iterable[AnyEvent]) -> list[str]:
    """Return the versions that events name, in the order in which the run followed them."""
    named = (event.version for event in events if isinstance(event, RunStarted | RunPatched))
    return [version for version in dict.fromkeys(named) if version]


def to_undo(state: State) -> int:
    """Return the rev that an undo undoes: the last one in force. Raises Refused if there is none."""
    undone = _undone_revisions(state.revisions)
    for rev in range(len(state.revisions), 0, -1):
        if rev not in undone and not state.revisions[rev - 1].retried and not _is_way_back(state.revisions, rev):
            return rev
    raise Refused(f"{state.run_id} has no patch that can be undone.", code="patch.nothing_to_undo")


def to_redo(state: State) -> int:
    """Return the rev of the undo that a redo undoes. Raises Refused if there is none since the last new patch."""
    undone = _undone_revisions(state.revisions)
    for rev in range(len(state.revisions), 0, -1):
        if rev in undone or state.revisions[rev - 1].retried:
            continue
        if _is_way_back(state.revisions, rev):
            return rev
        if not state.revisions[rev - 1].undoes:
            break
    raise Refused(f"{state.run_id} has no undone patch that can be applied again.", code="patch.nothing_to_undo")


def _undone_revisions(revisions: Sequence[Revision]) -> set[int]:
    found: set[int] = set()
    for rev in range(len(revisions), 0, -1):
        if rev not in found and revisions[rev - 1].undoes:
            found.add(revisions[rev - 1].undoes)
    return found


def _is_way_back(revisions: Sequence[Revision], rev: int) -> bool:
    """Return whether a revision undoes a patch. One that undoes an undo goes forward again."""
    undoes = revisions[rev - 1].undoes
    return bool(undoes) and not _is_way_back(revisions, undoes)
