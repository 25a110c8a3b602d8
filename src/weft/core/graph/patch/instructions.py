"""The instructions of a patch: which tokens are moved, dropped, started or restarted, and where to. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core import events as e
from weft.core.graph.patch.apply import path_steps
from weft.core.graph.patch.form import GraphPatch, MoveForm, StartForm, TokenName
from weft.core.graph.patch.past import Past, work_of
from weft.core.graph.patch.static_scopes import Levels, StaticScopes, levels_of
from weft.core.graph.tokens import AT_WORK, GraphState, Path, Token, innermost_branch, path_key
from weft.core.ids import derive
from weft.core.run.patch_plan import PatchRefusal


class Instructions:
    """Resolves the instructions of a patch against a run that has the names of the new graph."""

    def __init__(self, form: GraphPatch, scopes: StaticScopes, state: GraphState, past: Past, rev: int) -> None:
        self._form, self._scopes, self._state, self._past, self._rev = form, scopes, state, past, rev
        self._graph = scopes.graph
        self.refusals: list[PatchRefusal] = []
        self.changes: list[e.TokenPatch] = []
        self._taken: set[str] = set()

    def resolve(self) -> None:
        """Fill in ``changes`` and ``refusals``."""
        form = self._form
        for index, move in enumerate(form.move):
            for token in self._named_tokens(move, f"move[{index}]"):
                self._resolve_move(token, move, f"move[{index}]")
        for index, name in enumerate(form.restart):
            wanted = TokenName(node=name) if isinstance(name, str) else name
            for token in self._named_tokens(wanted, f"restart[{index}]", several=isinstance(name, str)):
                again = MoveForm(token=token.id, to=token.node)
                self._resolve_move(token, again, f"restart[{index}]", restart=True)
        for index, wanted in enumerate(form.drop):
            for token in self._named_tokens(wanted, f"drop[{index}]"):
                self.changes.append(e.TokenPatch(do="drop", token=token.id, node=token.node))
        for index, start in enumerate(form.start):
            self._resolve_start(start, index)
        for index, node in enumerate(form.again):
            if node not in self._graph.nodes:
                self._add_refusal("unknown_token", f"there is no node {node[:60]}", f"again[{index}]")

    def _add_refusal(self, code: str, message: str, path: str, place: str = "", hint: str = "") -> None:
        codes = {
            "unknown_token": "patch.unknown_token",
            "move_arrived": "patch.move_arrived",
            "say_via": "patch.say_via",
            "edge_taken": "patch.edge_taken",
            "scope_changed": "patch.scope_changed",
        }
        self.refusals.append(PatchRefusal(codes[code], f"{message} ({path})", place, path, hint))

    def _named_tokens(self, name: TokenName, path: str, *, several: bool = False) -> Iterator[Token]:
        """Yield the tokens that an instruction names."""
        found = [token for token in self._state.tokens.values() if _is_named(token, name)]
        wanted = (name.token or name.node)[:60]
        if not name.token and name.branch is not None:
            wanted += f"[{name.branch}]"[:60]
        if not found:
            self._add_refusal("unknown_token", f"no token is at {wanted}", path, hint="weft show lists the tokens.")
        elif len(found) > 1 and not several:
            places = ", ".join(f"{token.node}/{token.id}" for token in found[:5])
            self._add_refusal("unknown_token", f"{len(found)} tokens are at {wanted}: {places}", path)
        else:
            for token in found:
                if token.id in self._taken:
                    self._add_refusal("unknown_token", f"another instruction names the token at {wanted} too", path)
                elif token.mode == "parked":
                    place = f"{token.node}/{token.id}"
                    self._add_refusal("move_arrived", f"the token at {wanted} has arrived and stays there", path, place)
                else:
                    self._taken.add(token.id)
                    yield token

    def _resolve_move(self, token: Token, move: MoveForm, path: str, *, restart: bool = False) -> None:
        place = f"{token.node}/{token.id}"
        if move.to not in self._graph.nodes:
            self._add_refusal("unknown_token", f"there is no node {move.to[:60]}", path, place)
            return
        works_on = restart and token.mode in AT_WORK
        where = self._scope_at_node(move.to, token.path, works_on=works_on)
        if where is None:
            text = f"{move.to} is in other branches or loops than the token at {token.node}"
            self._add_refusal("scope_changed", text, path, place)
            return
        edge = "" if works_on else self._edge_to_join(move.to, move.via, where, path, place)
        if edge is None:
            return
        visit = self._past.has_run(where).get(move.to)
        value = move.input or (token.value if restart else visit.value if visit is not None else token.value)
        before = self._work_of_token(token) if restart else visit.work if visit is not None else None
        self.changes.append(
            e.TokenPatch(
                do="move",
                token=token.id,
                to=derive("moved", token.id, self._rev),
                node=move.to,
                path=path_steps(where),
                edge=edge,
                value=value,
                earlier=before,
            )
        )

    def _work_of_token(self, token: Token) -> e.Earlier | None:
        """Return the work that a token does now."""
        task = self._state.tasks.get(token.task) or self._state.parked.get(token.task)
        return work_of(self._state, task) if task is not None else token.earlier

    def _scope_at_node(self, node: str, path: Path, *, works_on: bool = False) -> Path | None:
        """Return the scope in which a token comes to a node, or works on there. It may leave loops, never a branch."""
        inside = list(path)
        scopes: set[Levels] = set()
        if works_on or self._graph.nodes[node].fan_in is None:
            scopes |= self._scopes.works[node]
        if not works_on or self._graph.nodes[node].fan_in is None:
            scopes |= self._scopes.delivers[node].keys()
        while True:
            if levels_of(self._state, inside, self._scopes) in scopes:
                return inside
            if not inside or inside[-1].kind == "f":
                return None
            inside.pop()

    def _edge_to_join(self, node: str, via: str, where: Path, path: str, place: str) -> str | None:
        """Return the edge over which a token comes to a join; "" if it needs none, None if that is not possible."""
        target = self._graph.nodes[node]
        if target.join != "edges" and target.fan_in is None:
            if via and not any(edge.source == via and edge.to == node for edge in self._graph.edges.values()):
                self._add_refusal("say_via", f"there is no edge from {via[:60]} to {node}", path, place)
                return None
            return ""
        edges = self._scopes.delivers[node].get(levels_of(self._state, where, self._scopes), [])
        names = [name for name in edges if self._graph.edges[name].source == via] if via else []
        if not names:
            sources = ", ".join(dict.fromkeys(self._graph.edges[name].source for name in edges))
            self._add_refusal("say_via", f"{node} is a join: say via which of {sources} the token comes", path, place)
            return None
        if self._is_taken(node, names[0], where):
            self._add_refusal("edge_taken", f"something waits at {node} over the edge from {via} already", path, place)
            return None
        return names[0]

    def _is_taken(self, node: str, edge: str, where: Path) -> bool:
        if any(one.edge == edge and one.path == path_steps(where) for one in self.changes):
            return True
        if self._graph.nodes[node].fan_in is not None:
            sender = self._graph.edges[edge].source
            tokens = self._state.tokens.values()
            return any(t.mode == "parked" and t.node == node and t.path == where and t.sender == sender for t in tokens)
        slot = self._state.slots.get(f"{node}|{path_key(where)}")
        return slot is not None and bool(slot.items.get(edge))

    def _resolve_start(self, start: StartForm, index: int) -> None:
        path = f"start[{index}]"
        beside = self._state.tokens.get(start.beside)
        if start.node not in self._graph.nodes or (start.beside and beside is None):
            known = start.node in self._graph.nodes
            missing = f"token {start.beside[:60]}" if known else f"node {start.node[:60]}"
            self._add_refusal("unknown_token", f"there is no {missing}", path)
            return
        where = self._scope_at_node(start.node, beside.path if beside is not None else [])
        if where is None:
            self._add_refusal("scope_changed", f"{start.node} is in other branches or loops than the new token", path)
            return
        if any(seg.kind == "f" and self._state.frames[seg.id].branches[seg.n].status != "open" for seg in where):
            self._add_refusal("move_arrived", f"the branch of token {start.beside} has arrived", path, start.node)
            return
        edge = self._edge_to_join(start.node, "", where, path, start.node)
        if edge is not None:
            to = derive("started", start.node, self._rev, index)
            change = e.TokenPatch(do="start", to=to, node=start.node, path=path_steps(where), value=start.input)
            self.changes.append(change)


def _is_named(token: Token, name: TokenName) -> bool:
    if name.token:
        return token.id == name.token
    branch = innermost_branch(token.path)
    return token.node == name.node and (name.branch is None or (branch is not None and branch.n == name.branch))
