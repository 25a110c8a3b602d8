"""Why a run is where it is: what it waits for, since when, and what would unblock it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from weft.core.counting import counted
from weft.core.decider import Machine
from weft.core.durations import format_ms
from weft.core.goal.machine import GoalMachine
from weft.core.graph.machine import GraphMachine
from weft.core.graph.tokens import GraphState
from weft.core.run.questions import asked
from weft.core.run.state import State
from weft.observe.explain_goal import tell_goal, waiting_for
from weft.observe.explain_graph import Told, tell
from weft.observe.hosting import Hosting, host_advice, hosting_of
from weft.observe.progress import Progress, progress_of
from weft.observe.runs import examine
from weft.observe.waiting import Waiting, time_of
from weft.ports.store import RunRow
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.unreadable import NOT_UNDONE

if TYPE_CHECKING:
    from weft.runtime.door import Door

__all__ = ["Explanation", "Waiting", "explain"]

CANCELLING_MS_MAX = 10_000
"""A run that is cancelling for longer probably has code that does not end."""


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run is not done yet."""

    run: str
    workflow: str
    status: str
    summary: str
    waiting: list[Waiting]
    steps_done: int
    hint: str = ""
    path: list[str] = []
    """The way a graph run took, and why, in sentences; of a goal run, the steps that run or have ended."""
    skipped: list[str] = []
    """The nodes or steps that did not run, and why not."""
    joins: list[str] = []
    """What the joins of a graph, or the pending steps of a goal run, still wait for."""
    style: str = "code"
    progress: list[Progress] = []
    """How far it is with maps, fan-outs and work items."""
    code: str = ""
    """Of the error that keeps it from being read, if that is so: ``weft help CODE``."""

    def __str__(self) -> str:
        lines = [f"{self.run} ({self.workflow}) is {self.status}: {self.summary}"]
        lines += [f"  {part}" for part in self.progress]
        for item in self.waiting:
            until = f", until {item.until:%Y-%m-%d %H:%M:%S}" if item.until is not None else ""
            lines.append(f"  {item.location}: {item.what} since {item.since:%Y-%m-%d %H:%M:%S}{until}")
            if item.unblock:
                lines.append(f"      {item.unblock}")
        lines += [f"  {sentence}" for sentence in (*self.joins, *self.path, *self.skipped)]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


async def explain(door: Door, row: RunRow) -> Explanation:
    """Explain a run by its committed log."""
    machine, problem = await examine(door, row)
    if problem is not None:
        summary = f"it was cancelled. {NOT_UNDONE} {row.fault}" if row.status == "cancelled" else problem.message
        hint = problem.hint
        return Explanation(row.id, row.workflow, row.status, summary, [], 0, hint, style=row.style, code=problem.code)
    if machine is None or not row.seq:
        why = _not_begun(row, await hosting_of(door, row, None), door.clock.now_ms())
        return Explanation(row.id, row.workflow, row.status, *why)
    state = machine.state
    hosting = await hosting_of(door, row, machine)
    waiting = waiting_of(machine, door.clock.now_ms(), hosting)
    hints = [force_hint(state, door.clock.now_ms()), _host_hint(row, hosting)]
    if state.held is not None:
        hints = [state.held.message, await held_hint(door, row, state.held.message)]
    hint = "\n  ".join(filter(None, hints))
    told = Told()
    if isinstance(machine, GraphMachine) and isinstance(state, GraphState):
        told = await tell(machine.graph, state, door.events(row))
    elif isinstance(machine, GoalMachine):
        known = await StoredCatalogue(door.store.definitions, door.clock).catalogue()
        told = tell_goal(machine, known.health)
    return Explanation(
        run=row.id,
        workflow=row.workflow,
        status=row.status,
        summary=_summary(state, waiting, hosting),
        waiting=waiting,
        steps_done=state.steps_done,
        hint=hint,
        progress=progress_of(machine),
        path=told.path,
        skipped=told.skipped,
        joins=told.joins,
        style=row.style,
    )


async def held_hint(door: Door, row: RunRow, message: str) -> str:
    """How a run that stopped for a person goes on; empty if the message of the hold says it."""
    if await door.store.log.inbox(row.uid):
        return "Something came for it meanwhile, such as a resume: it is seen when a process hosts the run."
    return resume_hint(row.id, message)


def resume_hint(run_id: str, message: str) -> str:
    """As ``held_hint``, of a run for which nothing has come."""
    command = f"weft resume {run_id}"
    return "" if command in message else f"When the code is corrected: {command}"


def _summary(state: State, waiting: list[Waiting], hosting: Hosting) -> str:
    done = f"{counted(state.steps_done, 'step')} recorded"
    match state.status:
        case "completed":
            return f"{done}, nothing is left to do"
        case "failed":
            return f"{state.failure.type}: {state.failure.message}" if state.failure is not None else "it failed"
        case "cancelled":
            return f"it was cancelled{f' ({state.cancelled})' if state.cancelled else ''}"
        case "held" if state.held is not None:
            return f"it stopped for you at {state.held.location or 'its code'} ({state.held.code})"
        case "paused":
            return f"{done}; it waits until somebody resumes it (weft resume {state.run_id})"
    if hosting.missing:
        return f"{done}; {hosting.why_not}"
    if not waiting:
        return f"{done}; it has something to do and is about to do it"
    return f"{done}; it waits for {', '.join(item.what for item in waiting[:3])}{' …' if len(waiting) > 3 else ''}"


def _not_begun(row: RunRow, hosting: Hosting, now: int) -> tuple[str, list[Waiting], int, str]:
    """Why a run has no events yet."""
    if hosting.is_owned:
        return "a host has just taken it up", [], 0, ""
    if row.wake_at is not None and row.wake_at > now:
        return f"it starts at {time_of(row.wake_at):%Y-%m-%d %H:%M:%S}", [], 0, ""
    version = f" in version {row.version}" if row.version else ""
    if hosting.is_offered:
        return "no host has taken it up yet", [], 0, f"A host that has {row.workflow}{version} takes it up."
    if hosting.missing:
        return hosting.why_not, [], 0, f"{host_advice(row, hosting)} To stop waiting: weft cancel {row.id}"
    hint = f"Run its program, or: weft serve app.py. To stop waiting: weft cancel {row.id}"
    return f'no host has taken it up: none that is running offers "{row.workflow}"{version}', [], 0, hint


def _host_hint(row: RunRow, hosting: Hosting) -> str:
    if row.ended_at is not None or hosting.is_owned or row.status in ("paused", "held"):
        return ""
    if not hosting.is_offered:
        return host_advice(row, hosting)
    return "" if row.seq else "A host that has the workflow takes it up."


def force_hint(state: State, now: int) -> str:
    """What helps a run whose code has not ended for long after it was cancelled."""
    waited_ms = now - state.cancelled_at
    if state.status != "cancelling" or waited_ms < CANCELLING_MS_MAX:
        return ""
    shown = format_ms(waited_ms // 1000 * 1000)
    return f"Its code has not ended for {shown}. End it without asking: weft cancel {state.run_id} --force"


def waiting_of(machine: Machine, now: int, hosting: Hosting) -> list[Waiting]:
    """What the run waits for, and what would help."""
    by_itself = "it goes on by itself" if hosting.is_hosted else "it goes on when it is hosted"
    return [
        *_tasks(machine, now, hosting.idle),
        *(waiting_for(machine, now) if isinstance(machine, GoalMachine) else _timers(machine, by_itself)),
        *_messages(machine),
        *_questions(machine),
        *_children(machine),
    ]


def _tasks(machine: Machine, now: int, idle: Mapping[int, str]) -> list[Waiting]:
    found = []
    for number, task in machine.state.tasks.items():
        where = machine.location(number)
        if task.due > now and task.last is not None:
            what = f"attempt {task.attempt} of {task.policy.attempts_max} of {task.step}"
            why = f"attempt {task.attempt - 1} failed: {task.last.type}: {task.last.message}"
            found.append(Waiting("retry", where, what, time_of(task.since), time_of(task.due), why))
        else:
            age = format_ms(max(0, now - task.since))
            what = f"step {task.step}"
            unblock = f"attempt {task.attempt}, out for {age}" + (
                "" if task.policy.timeout_ms else "; it has no timeout"
            )
            if number in idle:
                unblock = f"attempt {task.attempt}, {idle[number]}"
            found.append(Waiting("step", where, what, time_of(task.since), None, unblock))
    return found


def _timers(machine: Machine, by_itself: str) -> list[Waiting]:
    state = machine.state
    parked = state.parked if isinstance(state, GraphState) else {}
    joins = state.deadlines if isinstance(state, GraphState) else {}
    found = []
    for number, due in state.timers.items():
        task = parked.get(number)
        what, why = "time to pass", by_itself
        if task is not None:
            what, why = f"the answer of {task.step}", f"attempt {task.attempt}, accepted: the far side answers later"
        if number in joins:
            what, why = "the rest of what it joins", f"{by_itself}, at the latest when its time runs out"
        kind = "join" if number in joins else "sleep" if task is None else "answer"
        since = state.at if task is None else task.since
        found.append(Waiting(kind, machine.location(number), what, time_of(since), time_of(due), why))
    return found


def _messages(machine: Machine) -> list[Waiting]:
    state = machine.state
    found = []
    for number, wait in state.waits.items():
        names = " or ".join(f'"{name}"' for name in wait.names) or "any name"
        name = wait.names[0] if wait.names else "NAME"
        until = time_of(wait.due) if wait.due else None
        unblock = f"weft send {state.run_id} {name} BODY"
        found.append(
            Waiting("message", machine.location(number), f"a message {names}", time_of(wait.since), until, unblock)
        )
    return found


def _questions(machine: Machine) -> list[Waiting]:
    state = machine.state
    found = []
    for number, ask in state.asks.items():
        key = machine.location(number)
        who = f" of {', '.join(asked(ask))}" if asked(ask) else ""
        until = time_of(ask.due) if ask.due else None
        unblock = f"weft decide {state.run_id}:{key} approve|reject"
        found.append(Waiting("ask", key, f'an answer{who} to "{ask.title}"', time_of(ask.since), until, unblock))
    return found


def _children(machine: Machine) -> list[Waiting]:
    state = machine.state
    return [
        Waiting(
            "child",
            machine.location(number),
            f"the run {child.run_id} of {child.workflow}",
            time_of(child.since),
            time_of(child.due) if child.due else None,
            f"weft explain {child.run_id}",
        )
        for number, child in state.children.items()
    ]
