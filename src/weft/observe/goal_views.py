"""The views of goal runs: the plan, the state of its steps, and the known facts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import msgspec

from weft.core.durations import time_of
from weft.core.goal.machine import GoalMachine
from weft.observe.diagnosis import Diagnosis, PendingWait, Progress
from weft.observe.explanation import ExplainedLine, StyleSentences
from weft.observe.goal_check import check_goal
from weft.observe.goal_operations import GoalOperations
from weft.observe.goal_sentences import excluded_sentence, step_sentences
from weft.observe.goal_steps import excluded_steps, step_standings
from weft.observe.live_finding import LiveFinding, LiveRun
from weft.observe.operations import Keep, NoteChange, Operation, StyleOperations
from weft.observe.pictures import Picture, picture_of_plan
from weft.observe.plan_tree import PlanTree, plan_tree
from weft.observe.run_moment import RunMoment
from weft.observe.runs import read_run
from weft.observe.style_views import Held, StyleViews
from weft.observe.task_wait import task_wait
from weft.ports.store import RunRow
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.service import RunService

LINES_MAX = 100


class GoalViews(StyleViews[GoalMachine]):
    """The views of goal runs."""

    refers_to_results = True
    joins_heading = "needs"
    path_heading = "steps"

    def facts(self, machine: GoalMachine) -> Mapping[str, bytes]:
        """Return the first value of each fact."""
        return {name: bytes(found[0].value) for name, found in machine.state.facts.items() if found}

    def held(self, machine: GoalMachine) -> Held:
        """Return all values of the facts. Further values of a fact are numbered."""
        found: dict[str, bytes] = {}
        for name, known in machine.state.facts.items():
            for number, one in enumerate(known, 1):
                found[name if number == 1 else f"{name} ({number})"] = bytes(one.value)
        return {"facts": found}

    def waits(self, machine: GoalMachine, now: int) -> Iterator[PendingWait]:
        """Yield the waits for retries, for answers that come later, and for optional facts with a deadline."""
        state = machine.state
        for number, task in state.parked.items():
            if number not in state.accepted:
                yield task_wait(machine, "retry", number, task, state.timers.get(number, now))
        for number, due in state.accepted.items():
            yield task_wait(machine, "answer", number, state.parked[number], due)
        for number, window in state.deadlines.items():
            due = state.timers.get(number, state.at)
            yield PendingWait(
                kind="fact",
                place=window.step,
                number=number,
                since=time_of(state.at),
                due=time_of(due),
                step=window.step,
                fact=window.fact,
            )

    def progress(self, machine: GoalMachine) -> Iterator[Progress]:
        """Yield the progress of each step with work items."""
        for step, run in machine.state.steps.items():
            if run.status == "active" and run.fan_out:
                yield Progress(step, run.items - run.left, run.items)

    async def details(self, service: RunService, row: RunRow, machine: GoalMachine) -> dict[str, Any]:
        """Return the fields of the diagnosis about the steps and the excluded steps of the plan."""
        catalogue = await StoredCatalogue(service.store.definitions, service.clock).catalogue()
        return {"steps": step_standings(machine, catalogue.health), "excluded": excluded_steps(machine)}

    def sentences(self, diagnosis: Diagnosis) -> StyleSentences:
        """Describe which steps run or have ended, which were skipped, and what pending steps wait for."""
        lines: dict[str, list[ExplainedLine]] = {"path": [], "skipped": [], "pending": []}
        for step in diagnosis.steps:
            kind = step.status if step.status in lines else "path"
            lines[kind] += [ExplainedLine(text=text, boxes=[step.step]) for text in step_sentences(step)]
        lines["skipped"] += [ExplainedLine(text=excluded_sentence(one)) for one in diagnosis.excluded]
        return StyleSentences(
            path=lines["path"][-LINES_MAX:], skipped=lines["skipped"][:LINES_MAX], joins=lines["pending"][:LINES_MAX]
        )

    def operations(self, operations: dict[int, Operation], keep: Keep, note_change: NoteChange) -> StyleOperations:
        """Return the operations of planned steps and their work items."""
        return GoalOperations(operations, keep, note_change)

    async def picture(self, service: RunService, row: RunRow) -> Picture | None:
        """Return the plan with the state of its steps; None before the run is planned."""
        machine: Any = await read_run(service, row) if row.seq else None
        if machine is None or machine.plan is None:
            return None
        return picture_of_plan(machine.plan, machine.state, title=row.workflow)

    def draw(self, machine: GoalMachine, moment: RunMoment) -> Picture | None:
        """Return the plan that the run follows, with the state of its steps; None before the run is planned."""
        if machine.plan is None:
            return None
        return picture_of_plan(machine.plan, machine.state, title=machine.state.workflow)

    async def overview(self, service: RunService, row: RunRow) -> PlanTree | None:
        """Return the plan as a tree, with the known facts; None before the run has begun."""
        machine: Any = await read_run(service, row) if row.seq else None
        return plan_tree(machine) if machine is not None else None

    async def result(self, service: RunService, row: RunRow, raw: bytes) -> bytes:
        """Return the outputs of the goals of a run, without intermediate facts."""
        machine: Any = await read_run(service, row)
        body = msgspec.json.decode(raw)
        if machine.plan is None or not {"result", "of"} <= set(body):
            return raw
        gives = {goal for goal, step in machine.plan.steps.items() if step.gives}
        return msgspec.json.encode(shown_goal_outputs(body["result"], body["of"], gives))

    async def is_stored(self, service: RunService, row: RunRow) -> bool:
        """Return True, because a goal run contains its plan."""
        return True

    async def check_live(self, run: LiveRun, machine: GoalMachine) -> LiveFinding:
        return await check_goal(run, machine)


def shown_goal_outputs(result: Mapping[str, Any], returned: Mapping[str, Any], gives: Container[str]) -> dict[str, Any]:
    """Return the outputs of goals. The output of a goal without ``gives`` is its result."""
    return {**{goal: value for goal, value in returned.items() if goal not in gives}, **result}
