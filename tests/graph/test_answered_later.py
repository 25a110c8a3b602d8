"""Nodes whose far side answers later: accepted, they stay open until an answer or the end of their time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from tests.graph.table import Program, Table
from weft.core import commands as c
from weft.core import events as e
from weft.core.effects import ArmTimer, DisarmTimer, PerformTask
from weft.core.graph.hosted import NodeTask
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.graph.tokens import GraphState
from weft.core.ids import EntryId
from weft.errors import Failure
from weft.graphs.load import load_graph

CALL = {"http": {"url": "https://far.example/render", "answer": "later"}}
UNDO = e.UndoPlan(step="unrender", takes=["input", "result"])


def rendering(policy: e.Policy | None = None, *, undo: e.UndoPlan | None = None, **nodes: Any) -> Table:
    """A run whose node ``a`` was called and not accepted yet."""
    document = {"nodes": {"a": {**CALL, "save": {"state.x": "${output.link}"}}, **nodes}, "output": {"x": "${state.x}"}}
    table = object.__new__(Table)
    program = Program(load_graph(document).graph)
    once = policy or e.Policy(attempts_max=1)
    program.task = lambda node: NodeTask(once, undo if node == "a" else None)  # type: ignore[method-assign]
    table.machine = GraphMachine(program, GraphState(uid="0" * 32))
    table.log, table.open, table.now = [], {}, 1_000
    table.tell(c.StartRun(run_id="run", workflow="g", input=Raw(b"{}"), style="graph"))
    return table


def called(table: Table, node: str = "a") -> PerformTask:
    return next(effect for number, effect in table.open.items() if table.place(number)[0] == node)


def accept(table: Table) -> c.AnswerWork:
    """The far side takes the call; gives a good answer to it."""
    effect = called(table)
    table.tell(c.ReportWorkAccepted(effect.task, effect.attempt, effect.delivery))
    return c.AnswerWork(task=effect.task, output=Raw(b'{"link":"l"}'), attempt=effect.attempt)


def failing(answer: c.AnswerWork, attempt: int = 1) -> c.AnswerWork:
    boom = Failure(type="Boom", message="boom")
    return c.AnswerWork(task=answer.task, failure=boom, attempt=attempt)


def test_an_accepted_call_waits_in_nobodys_hands_and_its_answer_is_the_output() -> None:
    table = rendering()
    answer = accept(table)
    assert not table.state.tasks
    assert not [effect for effect in table.machine.outstanding() if isinstance(effect, PerformTask)]
    (timer,) = (effect for effect in table.machine.outstanding() if isinstance(effect, ArmTimer))
    assert timer.due == 1_000 + 24 * 3_600_000

    table.machine = GraphMachine(table.machine.style.program, restore_state(table.machine.snapshot()))
    table.tell(answer)

    assert table.state.status == "completed"
    assert bytes(table.state.output) == b'{"x":"l"}'
    succeeded = next(event for event in table.log if isinstance(event, e.TaskSucceeded))
    assert succeeded.output == Raw(b'{"link":"l"}')


def test_an_answer_may_come_before_the_call_was_accepted() -> None:
    table = rendering()
    effect = called(table)
    table.tell(c.AnswerWork(task=effect.task, output=Raw(b'{"link":"l"}')))
    assert table.state.status == "completed"
    assert not table.machine.decide(c.ReportWorkAccepted(effect.task, 1, 1), table.env())


def test_a_second_answer_and_one_for_an_unknown_task_decide_nothing() -> None:
    table = rendering(b={"wait": "1h"})
    answer = accept(table)
    unknown = c.AnswerWork(task=EntryId(999), output=Raw(b"1"))
    assert not table.machine.decide(unknown, table.env())

    table.tell(answer)

    assert not table.machine.decide(answer, table.env())
    assert not table.machine.decide(failing(answer), table.env())


def test_a_failure_from_outside_is_the_nodes_own() -> None:
    table = rendering(
        a={**CALL, "catch": [{"error": "Boom", "to": "mend"}]}, mend={"step": "s", "save": {"state.x": "${1}"}}
    )
    table.tell(failing(accept(table)))
    assert called(table, "mend")


def test_without_an_answer_in_its_time_it_is_tried_again_and_then_fails() -> None:
    table = rendering(e.Policy(attempts_max=2, delay_ms=10, timeout_ms=5_000))
    late = accept(table)
    number = EntryId(next(iter(table.state.parked)))
    assert not table.machine.decide(c.FireTimer(number), table.env())

    table.now = 6_000
    table.tell(c.FireTimer(number))
    again = called(table)
    assert (again.attempt, table.state.status) == (2, "running")
    assert table.machine.decide(failing(late), table.env()), "of the attempt that ended, final, before the next begins"
    table.now = again.due + 1
    assert not table.machine.decide(failing(late), table.env()), "of an attempt that is no longer the latest"

    accept(table)
    assert table.state.timers[number] == again.due + 5_000
    table.now = again.due + 5_000
    table.tell(c.FireTimer(number))
    assert table.state.failure is not None
    assert (table.state.status, table.state.failure.code) == ("failed", "timed_out")


def test_an_answer_that_comes_while_the_next_attempt_waits_counts() -> None:
    table = rendering(e.Policy(attempts_max=2, delay_ms=1_000, timeout_ms=5_000))
    late = accept(table)
    table.now = 6_000
    table.tell(c.FireTimer(EntryId(next(iter(table.state.parked)))))
    table.tell(late)
    assert table.state.status == "completed"


def test_the_nodes_deadline_ends_the_wait_for_good() -> None:
    table = rendering(e.Policy(attempts_max=9, deadline_ms=3_000))
    accept(table)
    number = EntryId(next(iter(table.state.parked)))
    table.now = 4_000
    table.tell(c.FireTimer(number))
    assert table.state.failure is not None
    assert (table.state.status, table.state.failure.code) == ("failed", "deadline")


def test_a_cancelled_run_waits_for_no_answer() -> None:
    table = rendering()
    answer = accept(table)
    effects = []
    for event in table.machine.decide(c.CancelRun(reason="enough"), table.env()):
        table.machine.evolve(event, at=table.now)
        effects += table.machine.effects(event)
    assert any(isinstance(effect, DisarmTimer) for effect in effects)
    assert not table.state.parked
    assert not table.state.timers
    table.take(table.machine.follow(table.env()))
    assert table.state.status == "cancelled"
    assert not table.machine.decide(answer, table.env())


@pytest.mark.parametrize("comes", [True, False], ids=["an answer", "no answer"])
def test_what_can_be_undone_is_waited_for_and_undone(comes: bool) -> None:
    table = rendering(undo=UNDO)
    answer = accept(table)
    table.tell(c.CancelRun(reason="enough"))
    assert table.state.status == "rolling_back"
    (number,) = table.state.parked

    if comes:
        table.tell(answer)
    else:
        table.now = table.state.timers[number]
        table.tell(c.FireTimer(EntryId(number)))

    (undo,) = table.open.values()
    assert undo.step == "unrender"
    table.open.clear()
    table.tell(c.ReportTaskSucceeded(undo.task, undo.attempt, undo.delivery, Raw(b"null")))
    assert table.state.status == "cancelled"


def test_a_branch_that_is_dropped_drops_its_wait() -> None:
    table = rendering(
        z={"pass": True, "next": [{"to": ["a", "b"]}]},
        a={**CALL, "next": "j"},
        b={"step": "s", "next": "j"},
        j={"join": "any", "pass": True, "save": {"state.x": "${1}"}},
    )
    answer = accept(table)
    other = called(table, "b")
    table.open.clear()
    table.tell(c.ReportTaskSucceeded(other.task, other.attempt, other.delivery, Raw(b"1")))
    assert table.state.status == "completed"
    assert not table.machine.decide(answer, table.env())
