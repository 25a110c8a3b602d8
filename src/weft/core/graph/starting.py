"""What a token that has arrived begins: its input is worked out, and its node's work becomes one event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.code.asks import child_uid
from weft.core.decider import Env
from weft.core.graph.binding import View
from weft.core.graph.model import AskWork, Node, PassWork, StepWork, WaitWork, WorkflowWork
from weft.core.graph.routing import arriving, route
from weft.core.graph.tokens import GraphState, Token
from weft.errors import Failure, WeftError

if TYPE_CHECKING:
    from weft.core.graph.machine import GraphProgram

_encode = msgspec.json.Encoder().encode


def start(program: GraphProgram, state: GraphState, token: Token, env: Env) -> Sequence[e.AnyEvent]:
    """The event by which a token begins its node's work, or fails to."""
    node = program.graph.nodes[token.node]
    view = View(graph=program.graph, state=state, token=token, output=token.value, data=state.data, error=token.error)
    try:
        given = arriving(view, node.input, program.reader)
        match node.work:
            case PassWork():
                return _passed(program, view, given)
            case StepWork(step=step):
                return (_task(program, node, token, step, given),)
            case WaitWork(ms=ms):
                return (e.TimerSet(token=token.id, due=env.now + ms),)
            case WorkflowWork():
                return (_child(program, view, given, env),)
            case AskWork():
                return (_ask(program, node, view, env),)
    except WeftError as error:
        failure = Failure(type=error.code, message=str(error), code=error.code, step=node.id)
        return (e.NodeFailed(token=token.id, failure=failure),)
    kind = type(node.work).__name__.removesuffix("Work").lower()
    wrong = Failure(type="unknown_work", message=f"nothing here can perform {kind}", code="unknown_work", step=node.id)
    return (e.NodeFailed(token=token.id, failure=wrong),)


def _task(program: GraphProgram, node: Node, token: Token, step: str, given: Raw) -> e.TaskScheduled:
    return e.TaskScheduled(
        token=token.id, step=step, input=given, policy=program.policy(node.id), undo=program.undo(node.id)
    )


def _passed(program: GraphProgram, view: View, given: Raw) -> Sequence[e.AnyEvent]:
    """A node without work of its own is gone through at once."""
    view.output = given
    found = route(program.graph, view, program.reader)
    if found.failure is not None:
        return (e.NodeFailed(token=view.token.id, failure=found.failure),)
    event = e.NodeRouted(
        token=view.token.id,
        taken=found.taken,
        writes=found.writes,
        verdicts=found.verdicts,
        skips=found.skips,
        output=given,
    )
    return (event,)


def _child(program: GraphProgram, view: View, given: Raw, env: Env) -> e.ChildStarted:
    state, token = view.state, view.token
    node = program.graph.nodes[token.node]
    work = node.work
    assert isinstance(work, WorkflowWork)
    version, style = program.version(work.workflow)
    return e.ChildStarted(
        token=token.id,
        workflow=work.workflow,
        version=work.version or version,
        style=style,
        run_id=f"{state.run_id}.{node.id}.{token.id[:8]}",
        uid=child_uid(state.uid, state.seq + 1),
        input=given,
        due=env.now + node.timeout_ms if node.timeout_ms else 0,
    )


def _ask(program: GraphProgram, node: Node, view: View, env: Env) -> e.AskOpened:
    work = node.work
    assert isinstance(work, AskWork)
    about = e.NULL
    if work.about is not None:
        about = Raw(_encode(program.reader.template(work.about.source, view.bind(work.about))))
    return e.AskOpened(
        token=view.token.id,
        title=str(program.reader.template(work.title.source, view.bind(work.title))),
        about=about,
        form=work.form,
        of=work.of,
        quorum=work.quorum,
        due=env.now + work.timeout_ms if work.timeout_ms else 0,
        on_timeout=work.on_timeout,
    )
