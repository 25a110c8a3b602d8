"""The past is not asked again: skips for edges that cannot deliver any more, and skips that are taken back. Pure.

Rules: docs/internals/patches.md#what-has-happened-stays-decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from weft.core import events as e
from weft.core.graph.model import Node
from weft.core.graph.patch.apply import path_steps
from weft.core.graph.patch.past import NodeVisit
from weft.core.graph.patch.reach import Reached, ScopeReach, begin_in
from weft.core.graph.patch.static_scopes import StaticScopes, levels_of
from weft.core.graph.tokens import GraphState, Path, Seg, Slot, Token, path_key


class PatchSide(msgspec.Struct, frozen=True):
    """A run under one graph: before or after the patch."""

    scopes: StaticScopes
    reach: ScopeReach
    state: GraphState

    def walk(self, path: Path, ran: Mapping[str, object], free: set[str], *, tokens: bool = False) -> Reached:
        """Return what can still happen in a scope."""
        last = path[-1] if path else None
        own = self.state.loops[last.id].loop if last is not None and last.kind == "l" else ""
        begin = begin_in(self.state, self.scopes.graph, path, free)
        return self.reach.walk(begin, own, ran, tokens=tokens)


def live_paths(state: GraphState) -> list[Path]:
    """Return all scopes in which something is, outermost first."""
    found: dict[tuple[Seg, ...], None] = {(): None}
    paths = [token.path for token in state.tokens.values()]
    paths += [frame.path for frame in state.frames.values()]
    paths += [run.path for run in state.loops.values()]
    paths += [slot.path for slot in state.slots.values()]
    for path in paths:
        for size in range(1, len(path) + 1):
            found[tuple(path[:size])] = None
    return sorted((list(path) for path in found if _scope_exists(state, path)), key=len)


def _scope_exists(state: GraphState, path: tuple[Seg, ...]) -> bool:
    return all(seg.id in (state.frames if seg.kind == "f" else state.loops) for seg in path)


class LiveScope(msgspec.Struct, frozen=True):
    """One scope of a run: what could happen in it before the patch, and what can happen after."""

    path: Path
    ran: dict[str, NodeVisit]
    before: Reached
    """With the new names of edges and nodes."""
    after: Reached
    tokens_before: Reached
    tokens_after: Reached
    """The same for tokens alone, without skips."""


class JoinRules:
    """Works out what a patch does to the slots in one scope."""

    def __init__(self, after: PatchSide) -> None:
        self._scopes = after.scopes
        self._graph = after.scopes.graph
        self._state = after.state

    def slots(self, scope: LiveScope) -> Iterator[e.SlotPatch]:
        """Yield the changes to the slots in a scope."""
        levels = levels_of(self._state, scope.path, self._scopes)
        suffix = path_key(scope.path)
        for node in self._graph.nodes.values():
            edges = self._scopes.delivers[node.id].get(levels, [])
            slot = self._state.slots.get(f"{node.id}|{suffix}")
            if node.fan_in is None and (len(edges) > 1 or slot is not None):
                change = self._slot_change(node, edges, slot, scope)
                if change is not None:
                    yield change

    def _slot_change(self, node: Node, edges: list[str], slot: Slot | None, scope: LiveScope) -> e.SlotPatch | None:
        steps = path_steps(scope.path)
        waits = slot is not None and any(self._is_joining(item) for items in slot.items.values() for item in items)
        if node.id not in scope.after.nodes and not waits:
            forget = slot is not None and node.id in scope.before.nodes and not _has_real(slot, edges)
            return e.SlotPatch(node=node.id, path=steps, forget=True) if forget else None
        items = slot.items if slot is not None else {}
        owed = slot.owed if slot is not None else {}
        come = scope.after.edges
        skip = [edge for edge in edges if edge not in come and not items.get(edge) and not owed.get(edge)]
        unskip = [
            edge for edge in edges if "" in items.get(edge, ()) and edge in come and edge not in scope.before.edges
        ]
        known = slot is not None and (slot.ran or _has_real(slot, edges))
        free = all(edge in scope.after.freely for edge in edges)
        anew = free and slot is not None and (slot.ran or self._has_gone(slot))
        ran = node.id in scope.ran and len(edges) > 1 and not known and not free
        if not (skip or unskip or ran or anew):
            return None
        return e.SlotPatch(node=node.id, path=steps, skip=skip, unskip=unskip, ran=ran, anew=anew)

    def _has_gone(self, slot: Slot) -> bool:
        """Return whether the slot notes tokens that have come and are no longer there."""
        return any(item and item not in self._state.tokens for items in slot.items.values() for item in items)

    def _is_joining(self, item: str) -> bool:
        token = self._state.tokens.get(item)
        return token is not None and token.mode == "joining"


def _has_real(slot: Slot, edges: list[str]) -> bool:
    return any(item for edge in edges for item in slot.items.get(edge, ()))


def find_reroute(token: Token, sender: str, after: PatchSide, reached: Reached, new_edges: set[str]) -> str:
    """Return the new edge whose place a token takes that waits over an edge that is gone; "" if there is not one.

    ``sender`` is the new name of the node from which the token came.
    """
    levels = levels_of(after.state, token.path, after.scopes)
    found = []
    for name in after.scopes.delivers[token.node].get(levels, []):
        source = after.scopes.graph.edges[name].source
        if name not in new_edges or name in reached.edges or not source or not sender:
            continue
        if sender == source or after.reach.leads(sender, source) or after.reach.leads(source, sender):
            found.append(name)
    return found[0] if len(found) == 1 else ""
