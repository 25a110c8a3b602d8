"""Start a step, begin its work items, and complete it. Pure.

Rules: docs/internals/goal.md#4-settle.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from weft.core import events as e
from weft.core.goal.definitions import AskWay, GoalWay, HttpWay, PipelineWay, ScriptWay, StepWay, WorkflowWay
from weft.core.goal.inputs import ITEMS_MAX, BadInput, BoundInputs, bind, metadata, predicate_bindings, reference_inputs
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.nodes import StepNode
from weft.core.goal.outputs import BadOutput, aggregate_outputs, read_outputs
from weft.core.goal.scripts import HostedGoals, decode_json, decode_value, encode_json, load_content
from weft.core.goal.state import GoalState
from weft.core.ids import GOAL, EntryId, child_uid
from weft.core.run.env import Env
from weft.core.run.repeats import repeat_task
from weft.core.values import is_ref
from weft.errors import Failure, WeftError

PREDICATE_FALSE = "predicate returned false"


class Turn:
    """The program, counts, state and environment that one decision uses."""

    __slots__ = ("bound", "env", "flow", "program", "state")

    def __init__(self, program: HostedGoals, flow: NeedCounts, env: Env, bound: dict[str, BoundInputs]) -> None:
        self.program = program
        self.flow = flow
        self.state: GoalState = flow.state
        self.env = env
        self.bound = bound
        """A cache of the decoded inputs of active steps."""

    def inputs(self, step: StepNode) -> BoundInputs:
        """Return the inputs of an active step."""
        bound = self.bound.get(step.id)
        if bound is None:
            bound = self.bound[step.id] = BoundInputs(step.shape, decode_value(step.run.inputs, self.env))
        return bound


def start_step(turn: Turn, step: StepNode) -> Sequence[e.AnyEvent]:
    """Start a step, or skip or fail it if its inputs or predicate require that."""
    try:
        known = reference_inputs(step, turn.state, turn.env)
        if known is not None:
            task = _schedule_task(turn, step, 0, e.ABSENT) if _is_task(step) else None
            return (e.StepStarted(step=step.id, inputs=known[0], facts=known[1], task=task),)
        return _start_bound(turn, step, bind(step, turn.state, turn.program.reader, turn.env))
    except BadInput as bad:
        return (e.StepFailedEvent(step=step.id, failure=bad.failure(step.id), unsatisfied=[bad.fact]),)


def _start_bound(turn: Turn, step: StepNode, bound: BoundInputs) -> Sequence[e.AnyEvent]:
    """Start a step whose inputs have to be read."""
    definition = step.definition
    if bound.count > ITEMS_MAX:
        why = f"the step would have {bound.count:,} work items; the limit is {ITEMS_MAX:,}"
        return (_step_failure(step.id, "too_many_items", "too_many_items", why),)
    per_item = definition.when is not None and not bound.item_names.isdisjoint(
        turn.program.reader.names(definition.when)
    )
    if definition.when is not None and not per_item:
        refused = _predicate_outcome(turn, step, bound.inputs)
        if refused is not None:
            return (refused,)
    if bound.arrays:
        turn.bound[step.id] = bound
    meta = {} if bound.arrays else metadata(step, turn.state, 0)
    inputs = turn.env.keep(encode_json({**bound.inputs, **meta} if meta else bound.inputs))
    if bound.arrays:
        return (e.StepStarted(step=step.id, inputs=inputs, work_items=bound.count, fan_out=True),)
    task = _schedule_task(turn, step, 0, e.ABSENT) if _is_task(step) else None  # as ``pump`` would do next
    return (e.StepStarted(step=step.id, inputs=inputs, task=task),)


def _is_task(step: StepNode) -> bool:
    return isinstance(step.definition.way, StepWay | HttpWay | ScriptWay | PipelineWay)


def _predicate_outcome(
    turn: Turn, step: StepNode, inputs: dict[str, object]
) -> e.StepFailedEvent | e.StepSkipped | None:
    """Return the event with which the predicate ends a step, or None if the step may continue."""
    assert step.definition.when is not None
    try:
        if turn.program.reader.holds(step.definition.when, predicate_bindings(step.definition, inputs)):
            return None
    except WeftError as error:
        return _step_failure(step.id, "predicate", f"predicate could not be evaluated: {error.message}", error.code)
    return e.StepSkipped(step=step.id, reason=PREDICATE_FALSE)


def _step_failure(step: str, kind: str, message: str, why: str) -> e.StepFailedEvent:
    failure = Failure(type=kind, message=message, code=kind, step=step, attributes={"why": why})
    return e.StepFailedEvent(step=step, failure=failure)


def pump(turn: Turn, step: StepNode) -> Sequence[e.AnyEvent]:
    """Begin the next item of a step that has a free slot: one whose retry is due, or a new one."""
    run = step.run
    if run.due:
        return (e.WorkResumed(task=EntryId(run.open[run.due[0]])),)
    index = step.index_next
    given = run.inputs
    if not run.fan_out and step.shape.meta:  # a repeated call has a new key
        given = turn.env.keep(encode_json({**decode_value(given, turn.env), **metadata(step, turn.state, index)}))
    if run.fan_out:
        inputs = turn.inputs(step).item(index)
        if step.definition.when is not None and not run.again:
            refused = _predicate_outcome(turn, step, inputs)
            if isinstance(refused, e.StepFailedEvent):
                return (refused,)
            if refused is not None:
                return (e.WorkSkipped(step=step.id, item=index),)
        given = turn.env.keep(encode_json({**inputs, **metadata(step, turn.state, index)}))
    try:
        return (_begin_item(turn, step, index, given),)
    except WeftError as error:
        return (_step_failure(step.id, error.code, error.message, error.hint),)


def _begin_item(turn: Turn, step: StepNode, index: int, given: Raw) -> e.AnyEvent:
    definition = step.definition
    match definition.way:
        case GoalWay() | WorkflowWay():
            return _start_child(turn, step, index, given)
        case AskWay() as ask:
            inputs = decode_json(load_content(given, turn.env))
            timeout = definition.policy.timeout_ms
            return e.AskOpened(
                node=step.id,
                item=index,
                title=turn.program.reader.text(ask.title, inputs),
                about=given,
                form=ask.form,
                of=ask.of,
                quorum=ask.quorum,
                due=turn.env.now + timeout if timeout else 0,
                on_timeout=ask.on_timeout,
                escalate=ask.escalate,
                four_eyes=ask.four_eyes,
                remind_ms=ask.remind_ms,
            )
    return _schedule_task(turn, step, index, given)


def _schedule_task(turn: Turn, step: StepNode, index: int, given: Raw) -> e.TaskScheduled:
    definition, state = step.definition, turn.state
    event = e.TaskScheduled(
        node=step.id,
        item=index,
        step=turn.program.body(definition),
        input=given,
        policy=definition.policy,
        undo=definition.undo,
    )
    if not state.earlier:
        return event
    place = f"{step.id}[{index}]" if step.run.fan_out else step.id
    earlier = state.earlier.get(place)
    return event if earlier is None else repeat_task(state, earlier, place, event)


def _start_child(turn: Turn, step: StepNode, index: int, given: Raw) -> e.ChildStarted:
    state = turn.state
    way = step.definition.way
    turn.env.check_child(state, way.workflow if isinstance(way, WorkflowWay) else "", given)
    timeout = step.definition.policy.timeout_ms
    workflow, version, style = "", "1", "goal"
    if isinstance(way, WorkflowWay):
        version, style = turn.program.version_of(way.workflow)
        workflow, version = way.workflow, way.version or version
    elif isinstance(way, GoalWay):
        workflow = GOAL
    return e.ChildStarted(
        node=step.id,
        item=index,
        workflow=workflow,
        version=version,
        style=style,  # type: ignore[arg-type]  # always one of the styles
        run_id=_child_id(state, step, index),
        uid=child_uid(state.uid, state.seq + 1),
        input=given,
        due=turn.env.now + timeout if timeout else 0,
    )


def _child_id(state: GoalState, step: StepNode, index: int) -> str:
    item = f".{index}" if step.run.fan_out else ""
    return f"{state.run_id}.{step.id}{item}" + (f"~{state.retries}" if state.retries else "")


def complete_step(turn: Turn, step: StepNode) -> Sequence[e.AnyEvent]:
    """Complete a step whose items are all over, and set its facts."""
    run, reader = step.run, turn.program.reader
    try:
        if run.fan_out:
            bound = turn.inputs(step)
            entries = [bound.each(index) for index in range(run.items)]
            found = aggregate_outputs(step.shape, run.results, entries, reader, turn.env)
        else:
            known = turn.flow.checked.get(step.id)
            found = known if known is not None else read_outputs(step.shape, run.results[0], reader, turn.env)
    except BadOutput as bad:
        return (e.StepFailedEvent(step=step.id, failure=bad.failure(step.id)),)
    matched: dict[str, list[str]] = {}
    broken: dict[str, dict[str, str]] = {}
    unread: list[str] = []
    for fact, raw in found.items():
        node = turn.flow.facts[fact]
        if node.keeps:
            passes, breaks = evaluate_matches(turn, fact, raw)
            if passes:
                matched[fact] = passes
            if breaks:
                broken[fact] = breaks
        elif node.values:
            unread.append(fact)
    takes, outputs = _recorded_outputs(turn, step, found)
    of = run.answered if takes else 0
    done = e.StepCompleted(
        step=step.id, of=of, takes=takes, outputs=outputs, unread=unread, matched=matched, broken=broken
    )
    return (done,)


def _recorded_outputs(turn: Turn, step: StepNode, found: dict[str, bytes]) -> tuple[dict[str, str], dict[str, Raw]]:
    """Return the outputs of a step as the log stores them: keys into its recorded result, or else values."""
    shape, run = step.shape, step.run
    if shape.takes is None or run.fan_out or (not shape.whole and is_ref(bytes(run.results[0]))):
        return {}, {fact: turn.env.keep(raw) for fact, raw in found.items()}
    takes = shape.takes
    return takes if len(found) == len(takes) else {fact: takes[fact] for fact in found}, {}


def evaluate_matches(turn: Turn, fact: str, raw: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the steps whose ``match`` accepts a value, and the errors of those whose ``match`` cannot be evaluated.

    Steps that have started no longer read values, so their matches are not evaluated.
    """
    matched: list[str] = []
    broken: dict[str, str] = {}
    node = turn.flow.facts.get(fact)
    if node is None or not node.keeps:  # no reader has a match
        return matched, broken
    for need in [need for need in node.readers if need.need.match is not None]:
        assert need.need.match is not None
        if need.step.run.status in ("active", "completed"):  # a failed or skipped step may be reopened
            continue
        try:
            if turn.program.reader.holds(need.need.match, {"value": decode_json(raw)}):
                matched.append(need.step.id)
        except WeftError as error:
            broken[need.step.id] = error.message
    return matched, broken
