"""Bind the names that expressions in a graph can use to their values at the position of a token. Pure.

Only the names and nodes that an expression uses are bound, so a hop costs no more than its expressions need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.graph.model import Expr, GraphModel
from weft.core.graph.tokens import Frame, GraphState, Seg, Token, innermost_branch
from weft.core.run.composites import compose, is_blob, leaf, open_parts, open_raw
from weft.core.run.env import Env, MissingInputs
from weft.errors import Failure

_LASTING = frozenset({"input", "state", "output", "error"})
"""Names that do not depend on the position of a token."""


class View(msgspec.Struct):
    """The position of a token, seen by an expression. ``output``: the node's output or, for its input, what arrived."""

    graph: GraphModel
    state: GraphState
    token: Token
    output: Raw
    env: Env
    data: Mapping[str, Any]
    """The state, including the writes of this hop."""
    branch_writes: Mapping[str, Any] | None = None
    error: Failure | None = None
    kept: Mapping[str, Any] | None = None
    """The names bound at the position of the token while it was there, for an expression that is evaluated later."""

    composing: bool = False
    """Whether values stay in the form of the log, so that they can become parts of other values."""
    memo: dict[int, tuple[Raw, Any]] = {}
    """Values that expressions of this hop have opened: several expressions may use the same output."""
    refs: dict[str, tuple[Any, Raw]] = {}
    """Fields of the state that are in blobs, with their references. Outlives the hop."""

    def bind(self, expr: Expr) -> dict[str, Any]:
        """Return the names that an expression uses, with their values."""
        if self.kept is None:
            return {name: self._value_of_name(name, expr.nodes) for name in expr.names}
        return {
            name: open_parts(self.kept[name], self.env.blob)
            if name in self.kept
            else self._value_of_name(name, expr.nodes)
            for name in expr.names
        }

    def keep(self, expr: Expr) -> Raw:
        """Return the bindings that depend on the position, for later evaluation. Loads nothing."""
        self.composing = True
        return compose({name: self._value_of_name(name, expr.nodes) for name in expr.names if name not in _LASTING})

    def _value_of_name(self, name: str, nodes: Sequence[str]) -> Any:
        match name:
            case "input":
                return self._run_input()
            case "state":
                return {**self.bind_state(), "_last_error": _error_fields(self.error)}
            case "output":
                return self._open_value(self.output)
            case "error":
                return _error_fields(self.error)
            case "nodes" | "ctx":
                return self._node_outputs(nodes)
            case "branch" | "_branch":
                return self._branch_values(innermost_branch(self.token.path), own=True)
            case "join":
                return {"failed": self.token.missing}
        return self._for_each_item(name)

    def bind_state(self) -> Mapping[str, Any]:
        """Return the state as expressions see it. Raises MissingInputs once, with all missing blobs."""
        if not self.state.marked:
            return self.data
        found: dict[str, Any] = {}
        missing: list[str] = []
        for name, value in self.data.items():
            try:
                found[name] = self._state_field(name, value)
            except MissingInputs as error:
                missing += error.blobs
        if missing:
            raise MissingInputs(blobs=missing)
        return found

    def _state_field(self, name: str, value: Any) -> Any:
        """Return a field of the state. A blob is opened once for many hops, most of which do not read it."""
        if not is_blob(value):
            return open_parts(value, self.env.blob)
        known = self.refs.get(name)
        if known is None or known[0] is not value:
            known = self.refs[name] = (value, compose(value))
        raw = known[1]
        return self.env.recall(raw, lambda: open_raw(raw, self.env.blob))

    def _node_outputs(self, nodes: Sequence[str]) -> dict[str, Any]:
        wanted = self.token.seen if "*" in nodes else nodes
        seen = self.token.seen
        return {node: {"output": self._open_value(seen[node].output)} for node in wanted if node in seen}

    def _run_input(self) -> Any:
        raw = self.state.input
        return leaf(raw) if self.composing else self.env.recall(raw, lambda: open_raw(raw, self.env.blob))

    def _open_value(self, raw: Raw) -> Any:
        if self.composing:
            return leaf(raw)
        known = self.memo.get(id(raw))
        if known is None:
            # Keep the raw value next to the opened one, so that its id is not reused.
            known = self.memo[id(raw)] = (raw, open_raw(raw, self.env.blob))
        return known[1]

    def _branch_values(self, seg: Seg | None, *, own: bool) -> Any:
        frame = self.state.frames.get(seg.id) if seg is not None else None
        if seg is None or frame is None:
            return None
        branch = frame.branches[seg.n]
        writes = self.branch_writes if own and self.branch_writes is not None else branch.writes
        around = innermost_branch(frame.path)
        return {
            "index": seg.n,
            "total": frame.total,
            "item": self._open_value(branch.item),
            "output": dict(writes or {}) if self.composing else open_parts(dict(writes or {}), self.env.blob),
            "parent": self._branch_values(around, own=False),
        }

    def _for_each_item(self, name: str) -> Any:
        """Return the item of the nearest for_each that uses this name."""
        for seg in reversed(self.token.path):
            frame = self.state.frames.get(seg.id) if seg.kind == "f" else None
            if frame is not None and self._names_item(frame, seg.n) == name:
                return self._open_value(frame.branches[seg.n].item)
        return None

    def _names_item(self, frame: Frame, index: int) -> str:
        each = self.graph.edges[frame.branches[index].edge].each
        return each.name if each is not None else ""


def _error_fields(error: Failure | None) -> Any:
    if error is None:
        return None
    return {
        "type": error.type,
        "message": error.message,
        "code": error.code or error.type,
        "node": error.step,
        "attempts": error.attempts,
        "data": list(error.data),
    }


def with_writes(data: Mapping[str, Any], writes: Sequence[tuple[Sequence[str], Any]]) -> Mapping[str, Any]:
    """Return the data after these writes. Unchanged parts are shared."""
    if not writes:
        return data
    changed = dict(data)
    for path, value in writes:
        place = changed
        for word in path[:-1]:
            inner = place.get(word)
            place[word] = dict(inner) if isinstance(inner, dict) else {}
            place = place[word]
        place[path[-1]] = value
    return changed
