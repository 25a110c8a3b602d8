"""Deliberate bugs of graph runs, one function each. Registered beside the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tests.sim.graphs import GRAPHS
from tests.sim.mutants import MUTANTS, PLAYED_BY, Mutant, mutant, swap
from weft.core import events as e
from weft.core.graph import board, game, moves
from weft.core.graph.follow import Follower
from weft.core.graph.style import GraphStyle
from weft.core.ids import derive
from weft.core.run import effects
from weft.core.run.kernel import Kernel
from weft.runtime import fetch
from weft.runtime.run import actor

__all__ = ["MUTANTS"]
"""All of them, these included."""


def graph_mutant(make: Callable[[], Iterator[None]]) -> Mutant:
    """Register a bug that worlds of graphs must catch."""
    PLAYED_BY[make.__name__] = GRAPHS
    return mutant(make)


@contextlib.contextmanager
def change(table: Any, key: Any, value: Any) -> Iterator[None]:
    """Put something in the place of an entry, for a while."""
    before = table[key]
    table[key] = value
    try:
        yield
    finally:
        table[key] = before


# --- failures and drops ------------------------------------------------------------------------------------------


@graph_mutant
def a_frame_is_dropped_before_anybody_takes_the_failure() -> Iterator[None]:
    def nearest(self: Any, path: Any, failure: Any, env: Any) -> tuple[str, Any]:
        frames = [seg.id for seg in path if seg.kind == "f" and seg.id in self.state.frames]
        return (frames[-1] if frames else ""), failure

    with swap(Follower, "_handling_frame", nearest):
        yield


@graph_mutant
def a_dropped_branch_is_not_undone() -> Iterator[None]:
    with swap(game.Game, "_undo_branches", lambda self, frame, lost: None):
        yield


@graph_mutant
def a_graph_completes_before_its_losers_are_undone() -> Iterator[None]:
    follow = Follower.follow

    def hasty(self: Any, env: Any) -> Any:
        hurried = self.state.begun and not (self.state.tokens or self.state.ended or self.state.over)
        return self._complete(env) if hurried else follow(self, env)

    with swap(Follower, "follow", hasty):
        yield


# --- joins -------------------------------------------------------------------------------------------------------


@graph_mutant
def a_join_counts_a_branch_twice() -> Iterator[None]:
    judge = game.Game._judge_fan_in

    def twice(self: Any, frame: Any, just: int | None = None) -> None:
        if just == 0 and frame.total > 2 and not frame.fired:
            frame.settled += 1
        judge(self, frame, just)

    with swap(game.Game, "_judge_fan_in", twice):
        yield


@graph_mutant
def a_skip_is_lost() -> Iterator[None]:
    with swap(moves.Moves, "_skip_others", lambda self, path, node, taken, *, opened: None):
        yield


@graph_mutant
def a_branch_that_waited_for_room_is_never_started() -> Iterator[None]:
    with swap(game.Game, "_start_queued", lambda self, frame, edge: None):
        yield


@graph_mutant
def a_late_branch_is_not_merged() -> Iterator[None]:
    def forgetful(self: Any, frame: Any, just: int) -> None:
        for token_id in list(frame.branches[just].parked):
            self.consume(self.state.tokens[token_id])

    with swap(game.Game, "_arrive_late", forgetful):
        yield


# --- tokens that are gone ----------------------------------------------------------------------------------------


@graph_mutant
def effects_of_a_dropped_token_are_performed() -> Iterator[None]:
    with swap(effects, "stop_removed", lambda state: []):
        yield


@graph_mutant
def a_child_of_a_dropped_token_is_not_told() -> Iterator[None]:
    mail = Kernel.mail

    def silent(self: Any, event: Any) -> Any:
        return () if isinstance(event, e.NodeRouted) else mail(self, event)

    with swap(Kernel, "mail", silent):
        yield


@graph_mutant
def a_dropped_task_in_its_second_attempt_is_not_waited_for() -> Iterator[None]:
    """This one was found by a world: it had been taken for one that only waits for its time."""
    stop = board.Board._stop_entry

    def hasty(self: Any, number: int) -> None:
        task = self.state.tasks.get(number)
        if task is not None and task.due:
            del self.state.tasks[number]
            self.state.gone.append(number)
        else:
            stop(self, number)

    with swap(board.Board, "_stop_entry", hasty):
        yield


@graph_mutant
def names_of_tokens_follow_from_nothing() -> Iterator[None]:
    numbers = count()

    def unrelated(*causes: object) -> str:
        return derive(*causes, next(numbers))

    with swap(moves, "derive", unrelated):
        yield


# --- trying again ------------------------------------------------------------------------------------------------


@graph_mutant
def a_retry_loses_tokens() -> Iterator[None]:
    shared, retried = GraphStyle.evolve[e.RunRetried]
    assert retried is not None

    def losing(self: Any, event: Any) -> None:
        retried(self, event)
        for token_id in event.tokens:
            del self.state.tokens[token_id]

    with change(GraphStyle.evolve, e.RunRetried, (shared, losing)):
        yield


# --- values in blobs ---------------------------------------------------------------------------------------------


@graph_mutant
def a_blob_that_is_not_durable_yet_is_looked_for_in_the_store() -> Iterator[None]:
    with swap(actor.Actor, "_undurable_blob", lambda self, digest: None):
        yield


@graph_mutant
def a_decision_that_lacks_a_blob_is_not_made_again() -> Iterator[None]:
    with swap(fetch.Fetcher, "fetch", lambda self, actor, wanting: None):
        yield
