"""Start a step of a simple plan. Its event is the same in every run, if its inputs can stay in the log. Pure."""

from __future__ import annotations

from weft.core import events as e
from weft.core.goal.inputs import BadInput, read_value
from weft.core.goal.scripts import HostedGoals
from weft.core.goal.shape import SimpleStep
from weft.core.goal.state import GoalState
from weft.core.run.env import Env
from weft.core.values import INLINE_BYTES_MAX, MARKED

STARTS_MAX = 64
"""If more steps can start at once, other runs take turns in between."""


def start_simple(step: SimpleStep, state: GoalState, program: HostedGoals, env: Env) -> e.StepStarted | None:
    """Return the event that starts a step with its facts. None if a value is marked, too large or of the wrong type."""
    shape, size = step.shape, len(step.inputs)
    for need in shape.needs:
        value = state.facts[need.fact][0]
        raw = bytes(value.value)
        size += len(raw)
        if raw.startswith(MARKED):
            return None
        if need.type is not None and value.provider not in need.trusted:
            try:
                read_value(shape, need, value, raw, env)
            except BadInput:
                return None
    if size >= INLINE_BYTES_MAX // 2:
        return None
    task = step.task
    if task is None:
        definition = shape.definition
        task = step.task = e.TaskScheduled(
            node=shape.id, step=program.body(definition), policy=definition.policy, undo=definition.undo
        )
    return e.StepStarted(step=shape.id, inputs=step.inputs, facts=step.facts, task=task)
