"""Work that a token comes to again because a patch has moved it back. Its effect contract says what happens then. Pure.

Equal work has the same step and input: it keeps its key, and an irreversible step keeps its recorded result. The places
of tokens change with a move, so work is found by its node, inside the scope to which the token was moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from weft.core import events as e
from weft.core.graph.patch.past import Past
from weft.core.graph.patch.static_scopes import StaticScopes
from weft.core.graph.tokens import GraphState, Path, Repeatable, Seg, Token

Target = tuple[str, list[tuple[str, str, int]]]
"""A node to which a token is moved, and the scope, as events have it."""


def find_repeated(state: GraphState, token: Token, digest: str) -> e.Earlier | None:
    """Return the earlier work that a token repeats: equal work first, else any other that was done there."""
    works = [one.work for one in state.repeated.get(token.node, ()) if _is_inside(token.path, one.path)]
    return next((work for work in works if work.digest == digest), works[0] if works else None)


def find_dropped(state: GraphState, token: Token) -> list[e.Earlier]:
    """Return the irreversible work that the run went back behind, at any node, and has not come to again."""
    found = (one for works in state.repeated.values() for one in works if _is_inside(token.path, one.path))
    return [one.work for one in found if one.work.step]


def forget_repeated(state: GraphState, again: e.Repetition) -> None:
    """Forget work that is done again. Other work at the same node may still be."""
    for node, works in list(state.repeated.items()):
        left = [one for one in works if (one.work.place, one.work.n) != (again.place, again.n)]
        if left:
            state.repeated[node] = left
        else:
            del state.repeated[node]


def evolve_repeated(state: GraphState, event: e.RunPatched) -> None:
    """Remember the work that the run comes to again. A later patch replaces what it names."""
    if event.nodes:
        state.repeated = {event.nodes.get(node, node): works for node, works in state.repeated.items()}
    for one in event.repeated:
        path = [Seg(kind, name, n) for kind, name, n in one.path]  # type: ignore[arg-type]
        known = [have for have in state.repeated.get(one.node, ()) if have.work.place != one.work.place]
        state.repeated[one.node] = [*known, Repeatable(path, one.work)]


def works_behind(
    targets: Iterable[Target], scopes: StaticScopes, past: Past, live: Iterable[str]
) -> Iterator[tuple[e.RepeatedWork, str]]:
    """Yield the work that is done again behind nodes to which tokens were moved, each with its effect.

    ``live`` are the tokens that go on with their work. Irreversible work that began after such a node had run counts
    too, if no token comes to its node now: another node may do the same.
    """
    staying = set(live)
    found: dict[tuple[str, int], tuple[e.RepeatedWork, str]] = {}
    for node, steps in targets:
        path = [Seg(kind, name, n) for kind, name, n in steps]  # type: ignore[arg-type]
        reached = _nodes_behind(scopes, node)
        visit = past.has_run(path).get(node)
        for token, one in past.works.items():
            if token in staying or one.effect == "pure" or not _is_inside(one.path, path):
                continue
            is_passed = one.effect == "irreversible" and visit is not None and one.seq > visit.seq
            if one.node in reached or is_passed:
                work = one.work
                if one.effect == "irreversible":
                    work = msgspec.structs.replace(work, step=one.step)
                repeated = e.RepeatedWork(one.node, steps, work)
                found[one.work.place, one.work.n] = (repeated, one.effect)
    yield from found.values()


def _nodes_behind(scopes: StaticScopes, node: str) -> set[str]:
    """Return a node and all nodes to which a token can come from it, over forward edges."""
    found, todo = {node}, [node]
    while todo:
        for edge in scopes.out(todo.pop()):
            if edge.to not in found:
                found.add(edge.to)
                todo.append(edge.to)
    return found


def _is_inside(path: Sequence[Seg], scope: Path) -> bool:
    return list(path[: len(scope)]) == scope
