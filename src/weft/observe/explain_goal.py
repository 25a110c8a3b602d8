"""Why a goal run is where it is: which steps run or wait, what every pending need waits for, what was left out and why.

Read from the run's state alone; the health of steps is told where somebody knows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.core.durations import format_ms
from weft.core.goal.catalogue import Checkup
from weft.core.goal.machine import GoalMachine
from weft.core.goal.nodes import NeedNode, StepNode
from weft.core.goal.state import OVER_STEP, GoalState
from weft.observe.explain_graph import Told
from weft.observe.waiting import Waiting, time_of

TOLD_MAX = 100


def tell_goal(machine: GoalMachine, health: Mapping[str, Checkup]) -> Told:
    """What is to be said of the plan: what ended, what did not run, what pending steps lack."""
    flow = machine.fold.flow
    if flow is None:
        return Told()
    told = Told()
    for step in flow.by_index[:]:
        run = step.run
        match run.status:
            case "completed":
                told.path.append(f"{step.id} completed{_gave(step)}")
            case "active":
                told.path.append(f"{step.id} runs{_items(step)}{_ill(step, health)}")
            case "failed":
                why = run.failure.message if run.failure is not None else run.why
                told.path.append(f"{step.id} failed: {run.why or why}")
            case "skipped":
                told.skipped.append(f"{step.id} was skipped: {run.why}")
            case "pending":
                told.joins += _pending(step)
    for step_id, left_out in flow.plan.excluded.items():
        by = ", ".join(left_out.by)
        reason = {"satisfied": f"{by} is given", "blocked": f"{by} is given", "missing": f"nobody gives {by}"}[
            left_out.why
        ]
        told.skipped.append(f"{step_id} is not in the plan: {reason}")
    told.path, told.skipped, told.joins = told.path[-TOLD_MAX:], told.skipped[:TOLD_MAX], told.joins[:TOLD_MAX]
    return told


def _gave(step: StepNode) -> str:
    lacks = [fact.name for fact in step.gives if fact.name not in step.run.gave]
    gave = f": gave {', '.join(sorted(step.run.gave))}" if step.run.gave else ""
    return f"{gave}{f', not {chr(44).join(lacks)}' if lacks else ''}"


def _items(step: StepNode) -> str:
    run = step.run
    if not run.fan_out:
        return ""
    return f": {run.items - run.left:,} of {run.items:,} items are over, {run.active:,} under way"


def _ill(step: StepNode, health: Mapping[str, Checkup]) -> str:
    known = health.get(step.id)
    return f" (unhealthy: {known.error})" if known is not None and known.status == "unhealthy" else ""


def _pending(step: StepNode) -> Iterator[str]:
    """One sentence per need that keeps a step from starting."""
    waits = [need for need in step.needs if need.undecided and not (need.need.role == "optional" and step.unmet)]
    if not waits:
        yield f"{step.id} waits for nothing and is about to start" if step.needed_now else f"{step.id} is put off"
    for need in waits:
        kind = "" if need.need.role == "required" else "the optional "
        if need.gate and need.need.match is not None:
            kind = f"a value that matches {need.need.match.source} of "
        yield f"{step.id} waits for {kind}{need.fact.name}{_from(need)}"


def _from(need: NeedNode) -> str:
    open_ones = [step for step in need.fact.providers if step.run.status not in OVER_STEP]
    if not open_ones:
        return ""
    words = {"active": "runs", "pending": "has not started"}
    return f" from {', '.join(f'{step.id} ({words[step.run.status]})' for step in open_ones)}"


# --- what it waits for -------------------------------------------------------------------------------------------


def waiting_for(machine: GoalMachine, now: int) -> list[Waiting]:
    """Retries, answers from outside and optional facts: what only goal runs wait for."""
    return [*_retries(machine, now), *_answers(machine, now), *_windows(machine.state)]


def _retries(machine: GoalMachine, now: int) -> Iterator[Waiting]:
    state = machine.state
    for number, task in state.parked.items():
        if number in state.accepted:
            continue
        what = f"attempt {task.attempt} of {task.policy.attempts_max} of {task.step}"
        why = f"attempt {task.attempt - 1} failed: {task.last.type}: {task.last.message}" if task.last else ""
        due = state.timers.get(number, now)
        yield Waiting("retry", machine.location(number), what, time_of(task.since), time_of(due), why)


def _answers(machine: GoalMachine, now: int) -> Iterator[Waiting]:
    state = machine.state
    for number, due in state.accepted.items():
        task = state.parked[number]
        unblock = f"attempt {task.attempt}, accepted; out for {format_ms(max(0, now - task.since))}"
        what = f"the answer of {task.step}"
        yield Waiting("answer", machine.location(number), what, time_of(task.since), time_of(due), unblock)


def _windows(state: GoalState) -> Iterator[Waiting]:
    for number, window in state.deadlines.items():
        what = f"the optional {window.fact}"
        due = time_of(state.timers.get(number, state.at))
        yield Waiting("fact", window.step, what, time_of(state.at), due, "then it goes on without")
