"""The fast path of a graph run: a task succeeds, and its token moves to the next one along the only edge.

See ``weft.core.run.plain``. ``tests/graph/test_plain.py`` compares this path with the tables.
"""

from __future__ import annotations

from weft.core import commands as c
from weft.core import events as e
from weft.core.graph.style import GraphStyle
from weft.core.run.composites import is_unmarked
from weft.core.run.env import Env, MissingInputs
from weft.core.run.plain import Continuation, succeeded_task
from weft.core.run.tasks import make_perform_task


def take_success(style: GraphStyle, report: c.ReportTaskSucceeded, env: Env) -> Continuation | None:
    """Record the success of a task, and move its token on. None: this is not plain, and nothing has changed."""
    state, ways = style.state, style.ways
    token = state.tokens.get(state.by_task.get(report.task, ""))
    if token is None or token.path or state.agenda or state.unarmed or succeeded_task(state, report) is None:
        return None
    straight, output = ways.straight.get(token.node), report.output
    if (
        straight is None
        or state.rules is not None
        or state.hops >= ways.hops_max
        or len(state.tokens) >= ways.tokens_max
        or not is_unmarked(output)
    ):
        return None
    scheduled = None
    if straight.edge is not None:
        try:
            scheduled = style.follower.task_behind(token, straight.taken, output, env)
        except MissingInputs:
            return None
        if scheduled is None or scheduled.policy.deadline_ms:
            return None
    state.seq += 2
    state.at = env.now
    state.steps_done += 1
    state.executed[token.node] = state.executed.get(token.node, 0) + 1
    del state.tasks[report.task], state.by_task[report.task]
    token.output = output
    opened = style.hop(token, straight.edge, scheduled)
    events: list[e.AnyEvent] = [
        e.TaskSucceeded(task=report.task, output=output, attempt=report.attempt),
        e.NodeRouted(node=token.node, token=token.id, taken=straight.taken, task=scheduled),
    ]
    if opened is None:
        return Continuation(events, [], rests=False)
    return Continuation(events, [make_perform_task(state, state.seq, opened, opened.place)], rests=True)
