"""Start a node for a token that has arrived: compute its input and turn its work into events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.graph.hosted import AgentOrder, HostedGraph
from weft.core.graph.model import (
    AgentWork,
    AskWork,
    GoalWork,
    HttpWork,
    Node,
    PassWork,
    PipelineWork,
    ReceiveWork,
    ReplyWork,
    ScriptWork,
    StepWork,
    TypeWork,
    WaitWork,
    Work,
    WorkflowWork,
)
from weft.core.graph.route import check_field, node_input, route
from weft.core.graph.tokens import Token
from weft.core.graph.view import View
from weft.core.ids import GOAL, EntryId, child_uid
from weft.core.run import messages
from weft.core.run.composites import open_raw
from weft.core.run.env import Env, MissingInputs
from weft.core.run.withheld import REJECTED
from weft.core.values import encode_trusted as encode
from weft.core.values import is_ref
from weft.errors import BadValue, Failure, LimitExceeded, WeftError

HTTP = "weft.http"
"""The step that sends the HTTP request of a node."""

SCRIPT = "weft.script"
"""The step that runs the script of a node."""

PIPELINE = "weft.pipeline"
"""The step that performs the pipeline of a node."""

TYPE = "weft.type:"
"""The prefix of the names of steps that implement registered node types."""


def start_node(program: HostedGraph, view: View) -> Sequence[e.AnyEvent]:
    """Return the events that start the work of a node, or its failure. Raises MissingInputs."""
    node = program.graph.nodes[view.token.node]
    try:
        if node.fan_in is not None:
            _check_merged(node, view)
        if node.limits.hops:
            _check_visits(node, view)
        if node.requires_approval and not view.token.approved:
            return (_ask_for_approval(program, node, view),)
        if isinstance(node.work, StepWork):
            return (_start_step(program, node, node.work, view),)
        given = node_input(view, node.input, program.reader)
        match node.work:
            case PassWork():
                return _route_at_once(program, view, given)
            case HttpWork(request=request):
                filled = program.reader.template(request.source, view.bind(request))
                limit = {"timeout": node.timeout_ms / 1000} if node.timeout_ms else {}
                return (_schedule_task(program, node, view, HTTP, view.env.keep(encode({**filled, **limit}))),)
            case ScriptWork():
                return (_schedule_task(program, node, view, SCRIPT, _script_input(node, node.work, view, given)),)
            case PipelineWork(pipeline=pipeline):
                steps = program.reader.template(pipeline.source, view.bind(pipeline))
                return (_schedule_task(program, node, view, PIPELINE, _pipeline_input(node, steps, view, given)),)
            case TypeWork():
                return (
                    _schedule_task(
                        program, node, view, TYPE + node.work.type, _add_type_config(program, node.work, view)
                    ),
                )
            case ReceiveWork():
                return _await_message(node.work, view)
            case ReplyWork():
                return _start_reply(program, node.work, view, given)
            case WaitWork(ms=ms):
                return (e.TimerSet(node=view.token.node, token=view.token.id, due=view.env.now + ms),)
            case WorkflowWork():
                return (_start_workflow(program, view, given),)
            case AgentWork():
                return (_start_agent(program, node.work, view, given),)
            case GoalWork(goals=goals):
                return (_start_goal(program, view, goals, given),)
            case AskWork():
                return (_open_question(program, node, view, given),)
    except WeftError as error:
        return (
            e.NodeFailed(
                node=view.token.node, token=view.token.id, failure=_node_failure(node, error.code, error.message)
            ),
        )


def fixed_task(program: HostedGraph, node: Node, token: str) -> e.TaskScheduled | None:
    """Return the task that starts a node, if it is the same in every run and has been computed before."""
    known = program.task(node.id)
    if known.arguments is None or node.limits.hops or not isinstance(node.work, StepWork):
        return None
    return e.TaskScheduled(
        node=node.id, token=token, step=node.work.step, input=known.arguments, policy=known.policy, undo=known.undo
    )


def _start_step(program: HostedGraph, node: Node, work: StepWork, view: View) -> e.TaskScheduled:
    given = _step_arguments(program, node, work, view)
    if node.input is not None and not node.input.names and not work.config_ref and not is_ref(bytes(given)):
        program.task(node.id).arguments = given
    return _schedule_task(program, node, view, work.step, given)


def _check_merged(node: Node, view: View) -> None:
    """Before the work of a fan-in begins, check the state field that its merge wrote."""
    merge = node.fan_in.merge if node.fan_in is not None else None
    if merge is not None and not view.token.path and merge.into.path[0] in view.data:
        check_field(view, merge.into.path[:1], view.bind_state()[merge.into.path[0]])


def _check_visits(node: Node, view: View) -> None:
    most = node.limits.hops
    if most and view.state.executed.get(node.id, 0) >= most:
        raise LimitExceeded(f"{node.id} was executed {most} times, which is its limit.", code="limit")


def _schedule_task(program: HostedGraph, node: Node, view: View, step: str, given: Raw) -> e.TaskScheduled:
    known = program.task(node.id)
    return e.TaskScheduled(
        node=node.id, token=view.token.id, step=step, input=given, policy=known.policy, undo=known.undo
    )


def _step_arguments(program: HostedGraph, node: Node, work: StepWork, view: View) -> Raw:
    """Return the arguments of a step by name. A step whose only parameter is ``input`` gets the whole input.

    The input of an unknown step is passed on unchanged.
    """
    given = node_input(view, node.input, program.reader)
    if work.config_ref:
        given = _with_config(node, view, work.config_ref, given)
    takes = program.task(node.id).takes
    if takes is None:
        return given
    if takes == ["input"]:
        value: Any = open_raw(given, view.env.blob)
        if node.input is not None and isinstance(value, dict) and list(value) == ["input"]:
            return given
        return view.env.keep(encode({"input": value}))
    if node.input is not None and not work.config_ref:
        return given
    value = open_raw(given, view.env.blob)
    if not isinstance(value, dict) or value.keys() <= set(takes):
        return given if isinstance(value, dict) or takes else Raw(b"{}")
    return view.env.keep(encode({name: value[name] for name in takes if name in value}))


def _with_config(node: Node, view: View, reference: str, given: Raw) -> Raw:
    """Add the fields of a stored configuration, except ``action``. Fields in the input take precedence."""
    config = _load_json(reference, view)
    value = open_raw(given, view.env.blob)
    if config in ({}, None):
        return given
    if not isinstance(config, dict) or not isinstance(value, dict | None):
        raise BadValue(f"{reference} and the input of {node.id} must both be objects.", code="value.wrong_type")
    fields = {key: part for key, part in config.items() if key != "action"}
    return view.env.keep(encode(fields | (value or {})))


def _load_json(reference: str, view: View) -> Any:
    """Return the JSON in a blob. Raises MissingInputs, BadValue."""
    digest = reference.removeprefix("cas://").removeprefix("sha256:")
    content = view.env.blob(digest)
    if content is None:
        raise MissingInputs(blobs=[digest])
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise BadValue(f"{reference} is not JSON: {error}.", code="value.wrong_type") from None


def _add_type_config(program: HostedGraph, work: TypeWork, view: View) -> Raw:
    config = _load_json(work.config_ref, view) if work.config_ref else None
    if work.config is not None:
        config = program.reader.template(work.config.source, view.bind(work.config))
    given = open_raw(node_input(view, program.graph.nodes[view.token.node].input, program.reader), view.env.blob)
    return view.env.keep(encode({"config": config, "input": given}))


def _route_at_once(program: HostedGraph, view: View, given: Raw) -> Sequence[e.AnyEvent]:
    """Route the token at once, because no task has to end first."""
    view.output = given
    found = route(program.graph, view, program.reader)
    if found.failure is not None:
        failed = e.NodeFailed(
            node=view.token.node, token=view.token.id, failure=found.failure, writes=found.writes, output=given
        )
        return (failed,)
    event = e.NodeRouted(
        node=view.token.node,
        token=view.token.id,
        taken=found.taken,
        writes=found.writes,
        verdicts=found.verdicts,
        skips=found.skips,
        arrival=found.arrival,
        output=given,
    )
    return (event,)


def _script_input(node: Node, work: ScriptWork, view: View, given: Raw) -> Raw:
    """Return the input of the script step: the script and the values it uses."""
    value = open_raw(given, view.env.blob)
    named = node.input is not None and isinstance(value, dict)
    call = {"language": work.language, "source": work.source, "values": value if named else {"input": value}}
    return view.env.keep(encode(call))


def _pipeline_input(node: Node, steps: Any, view: View, given: Raw) -> Raw:
    """Return the input of the pipeline step: its steps and the data."""
    value = open_raw(given, view.env.blob)
    named = node.input is not None and isinstance(value, dict) and "data" in value
    return view.env.keep(encode({"pipeline": steps, "data": value["data"] if named else value}))


def _start_goal(program: HostedGraph, view: View, goals: Sequence[str], given: Raw) -> e.ChildStarted:
    facts = open_raw(given, view.env.blob)
    plan = program.plan(goals, list(facts) if isinstance(facts, dict) else [])
    work = WorkflowWork(GOAL, "1")
    return msgspec.structs.replace(_child_started(view, work, "1", "goal", given), plan=plan)


def _start_workflow(program: HostedGraph, view: View, given: Raw) -> e.ChildStarted:
    work = program.graph.nodes[view.token.node].work
    assert isinstance(work, WorkflowWork)
    version, style = program.version_of(work.workflow)
    return _child_started(view, work, work.version or version, style, given)


def _start_agent(program: HostedGraph, work: AgentWork, view: View, given: Raw) -> e.ChildStarted:
    """Start the child run of an agent. Without a prompt, it is asked what arrived."""
    config = _load_json(work.config_ref, view) if work.config_ref else None
    if work.prompt is not None:
        prompt = program.reader.template(work.prompt.source, view.bind(work.prompt))
    else:
        prompt = open_raw(given, view.env.blob)
    rules = view.state.rules
    allowed = rules.transitions.get(view.token.node) if rules is not None else None
    call = program.agent_call(
        AgentOrder(view.state.run_id, view.token.node, prompt, config, allowed, view.state.attributes)
    )
    child = WorkflowWork(call.workflow, call.version)
    started = _child_started(view, child, call.version, "code", view.env.keep(call.input))
    return started if call.budget is None else msgspec.structs.replace(started, budget=call.budget)


def _child_started(view: View, work: WorkflowWork, version: str, style: e.Style, given: Raw) -> e.ChildStarted:
    state, token, now = view.state, view.token, view.env.now
    node = view.graph.nodes[token.node]
    view.env.check_child(state, work.workflow, given)
    return e.ChildStarted(
        node=node.id,
        token=token.id,
        workflow=work.workflow,
        version=version,
        style=style,
        run_id=f"{state.run_id}.{node.id}.{token.id[:8]}{f'.{state.retries}' if state.retries else ''}",
        uid=child_uid(state.uid, state.seq + 1),
        input=given,
        due=now + node.timeout_ms if node.timeout_ms else 0,
    )


def _open_question(program: HostedGraph, node: Node, view: View, given: Raw) -> e.AskOpened:
    work = node.work
    assert isinstance(work, AskWork)
    about = e.NULL
    if work.about is not None:
        about = view.env.keep(encode(program.reader.template(work.about.source, view.bind(work.about))))
    return e.AskOpened(
        node=node.id,
        token=view.token.id,
        title=str(program.reader.template(work.title.source, view.bind(work.title))),
        about=about,
        form=work.form,
        of=work.of,
        quorum=work.quorum,
        due=view.env.now + work.timeout_ms if work.timeout_ms else 0,
        on_timeout=work.on_timeout,
        escalate=work.escalate,
        four_eyes=work.four_eyes,
        remind_ms=work.remind_ms,
        input=given if work.enriches else e.NULL,
    )


def _ask_for_approval(program: HostedGraph, node: Node, view: View) -> e.AskOpened:
    """Ask people whether a node may begin to work."""
    given = open_raw(node_input(view, node.input, program.reader), view.env.blob)
    approvers = (node.work.parts or {}).get("approvers", []) if isinstance(node.work, AgentWork) else []
    return e.AskOpened(
        node=node.id,
        token=view.token.id,
        title=f"{view.graph.name} wants to run {node.id}",
        about=view.env.keep(encode({"node": node.id, "input": given})),
        of=list(approvers),
    )


def is_unapproved(node: Node, token: Token) -> bool:
    """Return whether what people said to a token is whether its node may begin to work."""
    return node.requires_approval and not token.approved


def approve(token: Token, decision: Raw) -> Failure | None:
    """Let a token work if people agreed; else return the failure of its node."""
    said = msgspec.json.decode(decision)
    if said["approved"]:
        token.approved = True
        return None
    who = f" by {', '.join(said['by'])}" if said["by"] else ""
    reason = f": {said['reason']}" if said["reason"] else ""
    message = f"running {token.node} was rejected{who}{reason}"
    return Failure(type="Rejected", message=message, code=REJECTED, step=token.node)


def _await_message(work: ReceiveWork, view: View) -> Sequence[e.AnyEvent]:
    """Wait for a message, or take the oldest one that is already there."""
    token = view.token
    due = token.due or (view.env.now + work.timeout_ms if work.timeout_ms else 0)
    awaited = e.MessageAwaited(names=[work.name], node=token.node, token=token.id, due=due, answer=work.answered)
    found = messages.waiting_messages(view.state, [work.name], 1)
    if not found:
        return (awaited,)
    return (awaited, *messages.take_buffered(EntryId(view.state.seq + 1), found, answer=work.answered))


def message_error(work: ReceiveWork, token: Token, env: Env) -> str | None:
    """Return why the message that a token received is not valid under the schema, or None. Raises MissingInputs."""
    return None if work.schema is None else env.check(work.schema, encode(open_raw(token.output, env.blob)))


def _start_reply(program: HostedGraph, work: ReplyWork, view: View, given: Raw) -> Sequence[e.AnyEvent]:
    seen = view.token.seen.get(work.to)
    if seen is None or not seen.message:
        raise BadValue(f"{work.to} has received no message on this path.", code="no_message")
    value = view.env.keep(encode(program.reader.template(work.value.source, view.bind(work.value))))
    repeated = seen.message not in view.state.requests
    answered = e.MessageAnswered(message=seen.message, output=value, repeated=repeated)
    return (answered, *_route_at_once(program, view, given))


def changed_output(work: Work, token: Token, env: Env) -> Raw:
    """Return the output of a node if it is not simply what its work gave, else ``ABSENT``. Raises MissingInputs."""
    if isinstance(work, AskWork) and work.enriches:
        return merge_decision(token, env)
    if not isinstance(work, AgentWork):
        return e.ABSENT
    reply = open_raw(token.output, env.blob)
    found = reply.get("output") if isinstance(reply, dict) else reply
    return env.keep(encode({"text": found} if isinstance(found, str) else found))


def merge_decision(token: Token, env: Env) -> Raw:
    """Return the input of a node that asks people, merged with their decision. Raises MissingInputs."""
    given = open_raw(token.input, env.blob)
    decision = open_raw(token.output, env.blob)
    if not isinstance(given, dict):
        given = {} if given is None else {"input": given}
    fields = {
        "decision": "approve" if decision["approved"] else "reject",
        "comments": decision["reason"],
        "decided_by": decision["by"],
        "decided_at": decision["at"],
    }
    return env.keep(encode({**given, **decision, **fields}))


def undo_input(program: HostedGraph, view: View) -> Raw:
    """Return the input of the undo step of a node, as given in the document."""
    undo = program.graph.nodes[view.token.node].undo
    assert undo is not None
    assert undo.input is not None
    return view.env.keep(encode(program.reader.template(undo.input.source, view.bind(undo.input))))


def _node_failure(node: Node, code: str, message: str) -> Failure:
    return Failure(type=code, message=message, code=code, step=node.id)
