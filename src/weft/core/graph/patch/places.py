"""Check that every live token, fan-out and loop has a place in the new graph. Pure.

Rules: docs/internals/patches.md#places.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from weft.core.graph.model import START, GraphModel
from weft.core.graph.patch.identity import GraphIdentity
from weft.core.graph.patch.static_scopes import Levels, StaticScopes, levels_of
from weft.core.graph.tokens import Frame, GraphState, LoopRun, Path, Token
from weft.core.run.patch_plan import PatchRefusal


class NewPlaces:
    """Finds the places of live tokens, fan-outs and loops in the new graph."""

    def __init__(self, old: StaticScopes, new: StaticScopes, same: GraphIdentity, state: GraphState) -> None:
        self._old, self._new, self._same = old, new, same
        self._graph: GraphModel = new.graph
        self._state = state

    def levels(self, path: Path) -> Levels | None:
        """Return the scope of a path in the new graph; None if a branch or loop on it is gone."""
        found = []
        for kind, name in levels_of(self._state, path, self._old):
            now = self._same.edges.get(name) if kind == "f" else self._same.loops.get(name)
            if now is None:
                return None
            found.append((kind, now))
        return tuple(found)

    def refusals(self, leaving: Container[str]) -> Iterator[PatchRefusal]:
        """Yield what has no place. Tokens in ``leaving`` are moved or dropped, so they need none."""
        staying = [token for token in self._state.tokens.values() if token.id not in leaving]
        for token in staying:
            yield from self._check_token(token)
        for frame in self._state.frames.values():
            yield from self._check_frame(frame)
        needed = {seg.id for token in staying for seg in token.path}
        for run in self._state.loops.values():
            if run.id in needed:
                yield from self._check_loop(run)

    def _check_token(self, token: Token) -> Iterator[PatchRefusal]:
        if token.mode in ("parked", "queued"):
            return  # their frame says whether they have a place
        place = f"{token.node}/{token.id}"
        node = self._graph.nodes.get(self._same.node(token.node))
        if node is None:
            hint = "Keep the node, rename it, or move or drop the token."
            text = f"the new document has no {token.node}, where a token is"
            yield PatchRefusal("patch.node_removed", text, place, hint=hint)
            return
        levels = self.levels(token.path)
        if token.mode == "joining":
            yield from self._check_waiting_token(token, place, levels)
        elif levels is None or levels not in self._new.works[node.id]:
            hint = "Restart or move the token, or wait until it has left the node."
            text = f"{token.node} is in other branches or loops than the token that is there"
            yield PatchRefusal("patch.scope_changed", text, place, hint=hint)

    def _check_waiting_token(self, token: Token, place: str, levels: Levels | None) -> Iterator[PatchRefusal]:
        node = self._graph.nodes[self._same.node(token.node)]
        edges = self._new.delivers[node.id].get(levels, []) if levels is not None else []
        single = node.join == "plain" and len(edges) == 1
        if node.fan_in is not None or not edges or (node.join != "edges" and not single):
            hint = "Wait until it has fired, or fork the run."
            text = f"a token waits at {token.node}, which no longer joins its edges here"
            yield PatchRefusal("patch.join_in_use", text, place, hint=hint)

    def _check_frame(self, frame: Frame) -> Iterator[PatchRefusal]:
        problem = self._frame_problem(frame)
        if problem:
            hint = "Wait until the fan-out is closed, or fork the run before it."
            opener = frame.opener or "start"
            text = f"the fan-out of {opener} is open, and {problem}"
            yield PatchRefusal("patch.frame_open", text, opener, hint=hint)

    def _frame_problem(self, frame: Frame) -> str:
        """Return why a frame has no place; "" if it has one."""
        graph = self._graph
        opener = self._same.node(frame.opener) if frame.opener != START else START
        if frame.opener != START and not opener:
            return "the new document does not have that node"
        if frame.fan_in and not self._same.node(frame.fan_in):
            return f"the new document does not have {frame.fan_in}, which closes it"
        closer = graph.nodes[opener].closed_by if opener else graph.start_closed_by
        if closer != (self._same.node(frame.fan_in) if frame.fan_in else ""):
            return f"it is closed by {closer or 'nothing'} instead of {frame.fan_in or 'nothing'}"
        # The scopes around a frame that has fired may be gone.
        scope = () if frame.fired else self.levels(frame.path)
        if scope is None:
            return "it is in other branches or loops"
        for branch in frame.branches.values():
            if branch.status != "open":
                continue
            edge = graph.edges.get(self._same.edges.get(branch.edge, ""))
            if edge is None or not edge.opens:
                return f"{branch.edge} no longer opens a branch"
            works: set[Levels] = self._new.works[opener] if opener else {()}
            if not frame.fired and not any(self._new.along(edge, one)[:-1] == scope for one in works):
                return "it is in other branches or loops"
        return ""

    def _check_loop(self, run: LoopRun) -> Iterator[PatchRefusal]:
        now = self._same.loops.get(run.loop)
        levels = self.levels(run.path) if now is not None else None
        if now is None or levels is None or not self._new.exists((*levels, ("l", now))):
            hint = "Restart or move its tokens, or wait until they have left the loop."
            text = f"the loop of {run.loop} is running, and the new document does not have it here"
            yield PatchRefusal("patch.loop_open", text, run.loop, hint=hint)
