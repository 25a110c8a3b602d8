"""The machine of goal runs."""

from __future__ import annotations

from typing import Self

from weft.core.commands import ReportTaskSucceeded
from weft.core.goal import plain
from weft.core.goal.definitions import StepDef
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.plan import GoalPlan
from weft.core.goal.scripts import HostedGoals
from weft.core.goal.state import GoalState, encode_state, restore_state
from weft.core.goal.style import GoalStyle
from weft.core.run.env import Env
from weft.core.run.kernel import Kernel
from weft.core.run.plain import Continuation


class GoalMachine(Kernel):
    """The machine of one goal run."""

    __slots__ = ()

    state: GoalState
    style: GoalStyle

    def __init__(self, program: HostedGoals, state: GoalState) -> None:
        super().__init__(state, GoalStyle(program, state))

    @classmethod
    def restore(cls, program: HostedGoals, snapshot: bytes) -> Self:
        """Restore a run from a snapshot with the same ``FOLD`` version."""
        return cls(program, restore_state(snapshot))

    def take_success(self, report: ReportTaskSucceeded, env: Env) -> Continuation | None:
        return plain.take_success(self.style, report, env)

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        return encode_state(self.state)

    @property
    def flow(self) -> NeedCounts | None:
        """The counts of the run. None until there is a plan."""
        return self.style.flow

    @property
    def plan(self) -> GoalPlan | None:
        """The plan that the run follows. None until it is known."""
        return self.style.items.plan

    def definition(self, number: int) -> StepDef | None:
        """Return the step that an open task belongs to, or None for an undo."""
        place = self.state.places.get(number)
        shape = self.style.items.shape
        return shape.plan.steps[place.step] if place is not None and shape is not None else None

    def undone(self, number: int) -> StepDef | None:
        """Return the step that an open undo task undoes."""
        task = self.state.tasks.get(number)
        if task is None or not task.undo_of or (plan := self.plan) is None:
            return None
        return plan.steps.get(task.undoes.partition("[")[0])
