"""Retry a graph run from a place: a patch that changes no document and moves one token back. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core.graph import kept_branches
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import AgentWork, GraphModel, WorkflowWork
from weft.core.graph.patch.form import GraphPatch
from weft.core.graph.patch.going_back import WayBack
from weft.core.graph.patch.judge import GraphJudge, judge_way_back
from weft.core.graph.patch.past import Fold
from weft.core.graph.tokens import GraphState, copy_graph_state
from weft.core.ids import EntryId
from weft.core.run import patches
from weft.core.run.by_hand import is_irreversible_in_flight, withdrawn_in_flight
from weft.core.run.env import Env
from weft.core.run.repeats import child_in_doubt, irreversible_in_flight, is_in_doubt, outcome_unknown


def decide_retry_from(
    program: HostedGraph, fold: Fold, state: GraphState, command: c.RetryRun, env: Env
) -> Sequence[e.AnyEvent]:
    """Return the events that perform everything from a place on once more.

    Raises:
        MissingInputs: the log is not in memory.
        NotFound, Refused: the run cannot go back there, or an irreversible task is in flight there.
        PatchRefused: the run could get stuck from there.
    """
    back, past = judge_way_back(program, fold, state, command.start, env)
    unknown = _give_up_tasks(state, back, force=command.force)
    now = copy_graph_state(state)
    for event in unknown:
        fold(program, now).evolve(event, at=env.now)
    form = GraphPatch(unchecked=command.force)
    judged = GraphJudge(program, program, now, form, past, back=back).judge()
    patch = c.PatchRun(patch=back.patch(), version=state.version, by=command.by, reason=command.reason)
    patched = msgspec.structs.replace(
        patches.judged_event(state, patch, judged),
        approved=command.approved,
        forced=[event.task for event in unknown],
        retried=command.start,
    )
    return (*unknown, patched, *_continue_after_patch(program.graph, state, patched, command))


def check_children(graph: GraphModel, state: GraphState, approved: Sequence[str] = ()) -> None:
    """Raise Refused if a retry would repeat a child run that failed with a step that must not be performed twice."""
    letters = [state.letters[token] for token in kept_branches.kept_tokens(graph, state)]
    doubtful = [letter.node for letter in letters if is_in_doubt(letter.failure) and letter.node not in approved]
    places = [
        name
        for name in doubtful
        if name in graph.nodes and isinstance(graph.nodes[name].work, AgentWork | WorkflowWork)
    ]
    if places:
        raise child_in_doubt(state, places)


def _give_up_tasks(state: GraphState, back: WayBack, *, force: bool) -> list[e.TaskFailed]:
    """Return the ends of irreversible tasks in flight. Raises Refused unless they may be given up."""
    numbers = [EntryId(token.task) for token in back.leaving if is_irreversible_in_flight(state, token.task)]
    numbers += withdrawn_in_flight(state, {back.node, *(token.node for token in back.leaving)})
    if numbers and not force:
        raise irreversible_in_flight(state, numbers)
    return [outcome_unknown(number, state.tasks.get(number) or state.parked[number]) for number in numbers]


def _continue_after_patch(
    graph: GraphModel, state: GraphState, patched: e.RunPatched, command: c.RetryRun
) -> Sequence[e.AnyEvent]:
    """Return the event that lets a run that stands still go on. One that is paused stays paused."""
    if state.status == "held":
        return (e.RunResumed(reason=command.reason, by=command.by),)
    if state.status != "failed":
        return ()
    moved = [one.to for one in patched.tokens if one.do == "move"]
    return (e.RunRetried(tokens=[*kept_branches.kept_tokens(graph, state), *moved]),)
