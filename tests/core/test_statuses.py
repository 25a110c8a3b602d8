"""The table of statuses and commands is what `decide` does, in every style."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec import Raw

from tests.goal.documents import Program as GoalProgram
from tests.graph.random_plays import Program as GraphProgram
from tests.graph.test_random_graphs import drawn
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.goal.machine import GoalMachine
from weft.core.goal.state import GoalState
from weft.core.graph.machine import GraphMachine
from weft.core.graph.tokens import GraphState
from weft.core.run.env import Env, MissingInputs
from weft.core.run.state import OVER, Departure, Status
from weft.core.run.statuses import ALLOWED, LIVE, TRANSITIONS
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState
from weft.errors import Failure, NotFound, Refused, RunFinished
from weft.runtime.cron_calendar import CALENDAR

ENV = Env(now=1_000, check=lambda *_: None)
UID = "0" * 32
COMMANDS: dict[type, Any] = {
    c.DeliverMessage: c.DeliverMessage("m-1", "paid"),
    c.PauseRun: c.PauseRun(),
    c.ResumeRun: c.ResumeRun(),
    c.CancelRun: c.CancelRun("why"),
    c.HoldRun: c.HoldRun("code.diverged", "why"),
    c.RetryRun: c.RetryRun(),
    c.PatchRun: c.PatchRun(patch=Raw(b"{}")),
    c.SetResult: c.SetResult(place="nowhere", output=Raw(b"1")),
    c.RaiseBudget: c.RaiseBudget(added={"tokens": 5}),
    c.MoveRun: c.MoveRun(digest="d-1", to="there"),
    c.AdoptRun: c.AdoptRun(digest="d-1"),
}


def machine_of(style: str) -> Any:
    if style == "code":
        return CodeMachine.fresh(UID)
    if style == "graph":
        return GraphMachine(GraphProgram(drawn(1)), GraphState(uid=UID))
    if style == "schedule":
        return ScheduleMachine(CALENDAR, ScheduleState(uid=UID))
    return GoalMachine(GoalProgram(), GoalState(uid=UID))


def in_status(style: str, status: str) -> Any:
    machine = machine_of(style)
    machine.evolve(e.RunStarted(run_id="run", workflow="flow", input=Raw(b"{}")), at=1)
    if style == "goal":
        machine.evolve(e.GoalPlanned(plan=Raw(b'{"goals":[],"steps":{},"facts":{}}')), at=1)
    machine.evolve(e.BudgetSet(limits={"tokens": 100}), at=1)
    machine.state.status = status
    machine.state.ended = status in OVER or status == "rolling_back"
    if status == "moved":
        machine.state.moved = Departure(digest="d-1", status="running")
    if status == "failed":
        machine.state.failure = Failure(type="boom", message="boom")
    return machine


def test_every_status_and_every_rule_is_in_the_tables() -> None:
    assert LIVE | OVER | {"pending"} == set(get_args(Status))
    assert set(COMMANDS) == set(ALLOWED)
    for before, after in TRANSITIONS:
        assert {before, after} <= LIVE | OVER | {"new"}


@pytest.mark.parametrize("style", ["code", "graph", "goal", "schedule"])
@pytest.mark.parametrize("kind", ALLOWED)
def test_a_command_acts_is_ignored_or_refused_as_the_table_says(style: str, kind: type) -> None:
    for status in sorted(LIVE | OVER):
        check_command(style, kind, status)


def check_command(style: str, kind: type, status: Status) -> None:
    rule = ALLOWED[kind]
    machine = in_status(style, status)
    patched = kind is c.PatchRun and status in rule.acts  # which changes are possible is not a question of the status
    if kind is c.SetResult and status in rule.acts:
        with pytest.raises(NotFound if style != "schedule" else (NotFound, Refused)):  # nothing is open there
            machine.decide(COMMANDS[kind], ENV)
    elif patched or (style == "schedule" and kind in (c.DeliverMessage, c.RetryRun, c.MoveRun, c.AdoptRun)):
        with pytest.raises((Refused, MissingInputs)):  # whatever its status
            machine.decide(COMMANDS[kind], ENV)
    elif status in rule.acts:
        assert machine.decide(COMMANDS[kind], ENV)
    elif status in rule.ignored:
        assert machine.decide(COMMANDS[kind], ENV) == ()
    else:
        with pytest.raises(RunFinished if rule.over and status in OVER else Refused):
            machine.decide(COMMANDS[kind], ENV)
