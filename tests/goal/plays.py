"""Small goal runs, set up in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.goal.documents import catalogue_of, steps_of
from tests.goal.table import Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import PerformTask
from weft.core.goal.definitions import StepDef
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import make_plan
from weft.core.goal.state import GoalState
from weft.core.ids import EntryId
from weft.core.unfold import unfold


def plan_of(document: Mapping[str, Any], goals: list[str], given: Mapping[str, Any], *more: StepDef) -> GoalPlan:
    return make_plan(catalogue_of([*steps_of(document), *more]), goals, given)


def start(
    document: Mapping[str, Any], goals: list[str], given: Mapping[str, Any] | None = None, *more: StepDef
) -> Table:
    return Table(plan_of(document, goals, given or {}, *more), given or {})


def answer(table: Table, step: str, index: int = 0, **kwargs: Any) -> Table:
    handed_out = [
        number
        for number, record in enumerate(table.events, 1)
        for event in unfold(record)
        if isinstance(event, e.TaskScheduled) and (event.node, event.item) == (step, index)
    ]
    table.tell(c.AnswerWork(task=EntryId(handed_out[-1]), **kwargs))
    return table


def fresh(table: Table, uid: str = "u") -> Table:
    """The table with a run that has not begun."""
    table.machine = GoalMachine(table.program, GoalState(uid=uid))
    table.log, table.tasks, table.letters, table.ended = [], {}, [], False
    return table


def envelope(table: Table) -> Any:
    return msgspec.json.decode(table.state.output)


def kinds(table: Table) -> list[type]:
    return [type(event) for event in table.events]


def only(table: Table) -> PerformTask:
    """The one task that is open."""
    (effect,) = table.tasks.values()
    return effect
