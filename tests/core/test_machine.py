"""The decider of code runs, rule by rule: what counts, what is late, what is refused, and in which order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from msgspec import Raw

from tests.core.histories import BEGIN, FAILURE, UNDO, History, Tape, check, play
from weft.core import commands as c
from weft.core import events as e
from weft.core.code import asks
from weft.core.code.machine import CodeMachine
from weft.core.code.style import CodeStyle
from weft.core.effects import PerformTask, StopTask
from weft.core.goal.style import GoalStyle
from weft.core.graph.style import GraphStyle
from weft.core.ids import EntryId, child_uid
from weft.core.run.decide import DECIDE
from weft.core.run.effects import EFFECTS
from weft.core.run.env import Env
from weft.core.run.evolve import EVOLVE
from weft.core.run.mail import MAIL
from weft.core.run.retry import LOST_MAX, backoff_ms, loss_ms
from weft.core.schedule.style import LEFT_OUT, ScheduleStyle
from weft.errors import AlreadyDecided, BadValue, NotFound, Refused, RunFinished, WeftError

START = c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}"))


def begun(*more: c.AnyCommand, start: c.StartRun = START) -> History:
    history = History()
    for command in (start, *more):
        outcome = history.give(command)
        assert not isinstance(outcome, WeftError), outcome
    return history


def step(name: str = "s", n: int = 1, **options: Any) -> c.ScheduleTask:
    return c.ScheduleTask("", name, n, "work", Raw(b'{"n":1}'), "d", **options)


def only(events: Any) -> Any:
    (event,) = events
    return event


def kinds(events: Any) -> list[str]:
    assert not isinstance(events, WeftError), events
    return [type(event).__struct_config__.tag for event in events]


# --- the tables --------------------------------------------------------------------------------------------------


STYLES: tuple[Any, ...] = (CodeStyle, GraphStyle, GoalStyle, ScheduleStyle)


def test_every_event_can_be_taken_in_by_a_style() -> None:
    assert set[type]().union(*(style.evolve for style in STYLES)) == set(get_args(e.AnyEvent))


def test_every_command_can_be_decided() -> None:
    known = {command for command in get_args(c.Asked) if issubclass(command, c.Ask)}
    assert set(asks.ASKS) == known
    assert set[type]().union(*(style.decide for style in STYLES)) == set(get_args(c.AnyCommand))


def test_no_style_decides_what_the_kernel_decides() -> None:
    for style in STYLES:
        left_out = LEFT_OUT if style is ScheduleStyle else ()
        assert all(style.decide[command] is row for command, row in DECIDE.items() if command not in left_out)
        assert not style.decide.keys() & set(left_out)
        assert all(style.effects[event] is row for event, row in EFFECTS.items())
        assert all(style.evolve[event][0] is row for event, row in EVOLVE.items())


def test_effects_and_mail_belong_to_events_that_exist() -> None:
    for style in STYLES:
        assert set(style.effects) | set(MAIL) <= set(style.evolve)


def test_every_event_comes_back_from_its_json_as_it_was() -> None:
    seen: dict[type, int] = {}
    for seed in range(60):
        for event, _ in play(History(), Tape([(seed * 7919 + n * 104_729) % 65_521 for n in range(400)])).log:
            raw = e.encode(event)
            assert e.encode(e.decode(raw)) == raw
            assert type(e.decode(raw)) is type(event)
            seen[type(event)] = seen.get(type(event), 0) + 1
    assert len(seen) >= 25


@pytest.mark.parametrize(
    "command",
    [
        START,
        c.ReportTaskSucceeded(EntryId(2), 1, 1, Raw(b"3")),
        c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE, retryable=False),
        c.ReportTaskLost(EntryId(2), 1, 1),
        c.FireTimer(EntryId(0)),
        c.DeliverMessage("id", "name", Raw(b'{"a":[1]}'), "sender"),
        c.DecideAsk("q", True, "ann", "why", Raw(b"{}")),
        c.DecideAsk(7, False),
        c.ReportChildEnded(EntryId(3), "failed", failure=FAILURE),
        c.CancelRun("why"),
        c.PauseRun(),
        c.ResumeRun(),
        c.RetryRun("here"),
    ],
)
def test_every_command_that_travels_comes_back_from_its_json(command: c.Mailed) -> None:
    raw = c.encode(command)
    assert c.encode(c.decode(raw)) == raw
    assert type(c.decode(raw)) is type(command)


def test_an_event_of_a_newer_writer_with_a_field_more_can_be_read() -> None:
    assert e.decode(b'{"kind":"timer_fired","timer":3,"colour":"red"}') == e.TimerFired(timer=EntryId(3))


# --- tasks -------------------------------------------------------------------------------------------------------


def test_only_the_live_attempt_and_delivery_count() -> None:
    history = begun(step(policy=e.Policy(attempts_max=3)))
    for attempt, delivery in ((0, 1), (2, 1), (1, 0), (1, 2)):  # not begun, to come, never handed out
        assert history.give(c.ReportTaskSucceeded(EntryId(2), attempt, delivery)) == ()
    assert kinds(history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE))) == ["task_failed"]
    assert history.give(c.ReportTaskSucceeded(EntryId(2), 1, 1)) == ()
    assert kinds(history.give(c.ReportTaskSucceeded(EntryId(2), 2, 1))) == ["task_succeeded"]
    assert history.give(c.ReportTaskSucceeded(EntryId(2), 2, 1)) == ()


def test_the_first_success_of_the_live_attempt_counts_whichever_hand_out_it_comes_from() -> None:
    history = begun(step(policy=e.Policy(attempts_max=3)))
    history.give(c.ReportTaskLost(EntryId(2), 1, 1))
    assert history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE)) == (), "a failure of it is late"
    (succeeded,) = history.give(c.ReportTaskSucceeded(EntryId(2), 1, 1))
    assert (succeeded.attempt, succeeded.earlier) == (1, 1)
    assert history.machine.effects(succeeded) == (StopTask(EntryId(2)),), "the later hand-out is told to stop"
    assert history.give(c.ReportTaskSucceeded(EntryId(2), 1, 2)) == (), "there is a result"


def test_a_loss_counts_hand_outs_and_a_failure_counts_attempts() -> None:
    history = begun(step())
    history.give(c.ReportTaskLost(EntryId(2), 1, 1))
    task = history.state.tasks[2]
    assert (task.attempt, task.delivery, task.lost) == (1, 2, 1)
    history.give(c.ReportTaskFailed(EntryId(2), 1, 2, FAILURE))
    assert (task.attempt, task.delivery) == (2, 2)


def test_the_first_loss_is_handed_out_at_once_and_later_ones_wait_longer() -> None:
    assert [loss_ms(lost) for lost in range(1, 6)] == [0, 1000, 2000, 4000, 8000]
    assert loss_ms(50) == 60_000


def test_a_task_that_is_lost_too_often_has_failed() -> None:
    history = begun(step())
    for delivery in range(1, LOST_MAX + 1):
        assert kinds(history.give(c.ReportTaskLost(EntryId(2), 1, delivery))) == ["task_lost"]
    event = only(history.give(c.ReportTaskLost(EntryId(2), 1, LOST_MAX + 1)))
    assert event.failure.code == "step.worker_lost"


def test_what_may_run_once_is_never_handed_out_twice() -> None:
    once = e.Policy(attempts_max=5, effect="irreversible")
    history = begun(step(policy=once))
    event = only(history.give(c.ReportTaskLost(EntryId(2), 1, 1)))
    assert event.failure.code == "step.outcome_unknown"
    history = begun(step(policy=once))
    event = only(history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE)))
    assert event.retry_at == 0


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [("fixed", [100] * 4), ("linear", [100, 200, 300, 400]), ("exponential", [100, 200, 400, 500])],
)
def test_backoff_follows_its_kind_up_to_the_cap_less_at_most_a_tenth(backoff: Any, expected: list[int]) -> None:
    policy = e.Policy(delay_ms=100, delay_ms_max=500, backoff=backoff)
    for attempt, full in enumerate(expected, 1):
        waits = {backoff_ms(policy, attempt=attempt, seed=f"run/{n}") for n in range(200)}
        assert all(full * 0.9 <= wait <= full for wait in waits)
        assert len(waits) > 3
    assert backoff_ms(policy, attempt=2, seed="x") == backoff_ms(policy, attempt=2, seed="x")


def test_a_huge_attempt_number_does_not_overflow() -> None:
    policy = e.Policy(delay_ms=1, delay_ms_max=1000)
    assert backoff_ms(policy, attempt=10_000, seed="x") <= 1000


def test_the_key_of_a_task_names_the_incarnation_and_the_place_and_nothing_else() -> None:
    history = begun(step(policy=e.Policy(attempts_max=3)))
    before = history.machine.perform(2)
    history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE))
    history.give(c.ReportTaskLost(EntryId(2), 2, 1))
    after = history.machine.perform(2)
    assert before.key == after.key == f"{history.state.uid}/s"
    assert (after.attempt, after.delivery) == (2, 2)


# --- messages and people -----------------------------------------------------------------------------------------


def test_a_message_is_taken_at_once_by_the_oldest_wait_that_wants_it() -> None:
    history = begun(
        c.AwaitMessages("", "w", 1, ["k"]), c.AwaitMessages("", "w", 2, ["m"]), c.AwaitMessages("", "w", 3, [])
    )
    assert kinds(history.give(c.DeliverMessage("1", "m"))) == ["message_received", "messages_taken"]
    assert list(history.state.waits) == [2, 4]
    history.give(c.DeliverMessage("2", "other"))
    assert list(history.state.waits) == [2]
    assert kinds(history.give(c.DeliverMessage("3", "other"))) == ["message_received"]


def test_waiting_messages_are_taken_in_order_of_arrival_over_all_names() -> None:
    history = begun(*(c.DeliverMessage(str(n), name) for n, name in enumerate("mkmk")))
    taken: Any = history.give(c.AwaitMessages("", "w", 1, ["k", "m"], most=3))
    assert kinds(taken) == ["message_awaited", "messages_taken"]
    assert taken[1].ids == ["0", "1", "2"]


def test_a_timer_that_fires_early_decides_nothing() -> None:
    history = begun(c.SetTimer("", "t", 1, BEGIN + 100))
    assert history.give(c.FireTimer(EntryId(2))) == ()
    history.now += 100
    assert kinds(history.give(c.FireTimer(EntryId(2)))) == ["timer_fired"]


def test_a_wrong_form_is_refused_and_the_question_stays_open() -> None:
    history = begun(c.OpenAsk("", "q", 1, "?", form={"type": "object"}))
    assert isinstance(history.give(c.DecideAsk("q", True, form=Raw(b"1"))), BadValue)
    assert 2 in history.state.asks
    assert kinds(history.give(c.DecideAsk("q", True, form=Raw(b"{}")))) == ["ask_answered"]
    assert isinstance(history.give(c.DecideAsk("q", True, form=Raw(b"{}"))), AlreadyDecided)
    assert isinstance(history.give(c.DecideAsk("p", True)), NotFound)


# --- the life of a run -------------------------------------------------------------------------------------------


def test_undo_is_newest_first_and_one_at_a_time() -> None:
    history = begun(*(step(n=n, undo=UNDO) for n in (1, 2, 3)))
    for number in (3, 2, 4):
        history.give(c.ReportTaskSucceeded(EntryId(number), 1, 1, Raw(b"%d" % number)))
    history.give(c.FailRun(FAILURE))
    order = []
    while not history.state.over:
        (number,) = history.state.tasks
        order.append(history.state.tasks[number].undo_of)
        history.give(c.ReportTaskSucceeded(EntryId(number), 1, 1))
    assert order == [4, 2, 3]
    assert history.state.status == "failed"


def test_a_failure_waits_for_running_tasks_that_can_be_undone_and_for_children_that_were_told_to_stop() -> None:
    child = c.StartChild("", "c", 1, "child", "1", "code", Raw(b"{}"), "d")
    history = begun(step(undo=UNDO), step(n=2), child)
    assert kinds(history.give(c.FailRun(FAILURE))) == ["entry_cancelled"] * 3 + ["run_ending"]
    assert list(history.state.tasks) == [2]
    history.give(c.ReportTaskSucceeded(EntryId(2), 1, 1))
    assert not history.state.over
    assert not history.state.tasks
    history.give(c.ReportChildEnded(EntryId(4), "cancelled"))
    assert [task.undo_of for task in history.state.tasks.values()] == [2]


def test_a_held_run_that_is_cancelled_has_no_code_to_tell() -> None:
    history = begun(step(), c.HoldRun("code.diverged", "why"))
    assert kinds(history.give(c.CancelRun("x"))) == ["cancel_requested", "entry_cancelled", "run_ending"]
    assert history.state.status == "cancelled"


@pytest.mark.parametrize("ending", [c.CompleteRun(), c.FailRun(FAILURE)])
def test_a_run_that_is_over_refuses_what_comes_from_outside(ending: Any) -> None:
    history = begun(ending)
    for command in (c.DeliverMessage("1", "m"), c.CancelRun(), c.PauseRun(), c.ResumeRun()):
        assert isinstance(history.give(command), RunFinished)
    assert history.machine.outstanding() == ()


def test_a_start_that_is_refused_makes_a_run_that_failed_and_says_so_to_its_parent() -> None:
    parent = e.Parent(uid="p", entry=4, run_id="boss")
    refused = c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}"), parent=parent, refused="run exists already")
    history = History()
    events = history.give(refused)
    assert kinds(events) == ["run_started", "run_failed"]
    (letter,) = history.machine.mail(history.log[-1][0])
    assert letter.to == "p"
    assert isinstance(letter.command, c.ReportChildEnded)
    assert letter.command.child == 4


def test_the_uid_of_a_child_derives_from_its_parent_and_its_place_in_the_log() -> None:
    child = c.StartChild("", "c", 1, "child", "1", "code", Raw(b"{}"), "d")
    one, two = begun(child), begun(child)
    uids = [getattr(history.log[-1][0], "uid", "") for history in (one, two)]
    assert uids == [child_uid(one.state.uid, 2)] * 2


def test_pausing_stops_hand_outs_and_resuming_hands_out_what_is_open() -> None:
    history = begun(step(policy=e.Policy(attempts_max=3)), c.PauseRun())
    events = history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE))
    assert kinds(events) == ["task_failed"]
    assert history.machine.effects(history.log[-1][0]) == ()
    assert history.machine.outstanding() == []
    history.give(c.ResumeRun())
    (effect,) = history.machine.effects(history.log[-1][0])
    assert isinstance(effect, PerformTask)
    assert effect.attempt == 2


def test_cancelling_a_paused_run_hands_out_what_is_open() -> None:
    """A pause may end by a cancel; what the code still waits for must not be forgotten."""
    history = begun(step(policy=e.Policy(attempts_max=3)), c.PauseRun())
    history.give(c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE))
    history.give(c.CancelRun())
    effects = history.machine.effects(history.log[-1][0])
    assert [effect.task for effect in effects if isinstance(effect, PerformTask)] == [2]


def test_a_held_run_that_was_being_cancelled_goes_on_being_cancelled() -> None:
    history = begun(c.CancelRun("x"), c.HoldRun("code.diverged", "why"), c.ResumeRun())
    assert history.state.status == "cancelling"


def test_a_held_run_that_was_being_cancelled_can_be_ended_by_asking_again() -> None:
    history = begun(step(), c.CancelRun("x"), c.HoldRun("code.diverged", "why"))
    assert kinds(history.give(c.CancelRun("again"))) == ["entry_cancelled", "run_ending"]
    assert history.state.status == "cancelled"
    assert history.state.cancelled == "x"


def test_only_a_failed_or_held_run_can_be_tried_again() -> None:
    assert isinstance(begun().give(c.RetryRun()), Refused)
    assert isinstance(begun(c.CompleteRun()).give(c.RetryRun()), Refused)
    failed = begun(step(), c.ReportTaskSucceeded(EntryId(2), 1, 1), c.FailRun(FAILURE))
    assert isinstance(failed.give(c.RetryRun("nowhere")), NotFound)
    assert kinds(failed.give(c.RetryRun())) == ["run_retried"]
    assert failed.state.entries[2].status == "done"


def test_a_round_that_leaves_the_state_takes_its_open_work_along() -> None:
    turn = c.TurnLoop("", "l", 1, 1, Raw(b"1"), 0)
    inside = c.ScheduleTask("l/~0/", "s", 1, "work", Raw(b"{}"), "d")
    history = begun(inside)
    assert kinds(history.give(turn)) == ["entry_cancelled", "loop_turned"]
    assert not history.state.tasks
    assert list(history.state.entries) == [4]


# --- twice, late, out of order -----------------------------------------------------------------------------------


SMALL_WORLD: list[c.AnyCommand] = [
    c.ReportTaskSucceeded(EntryId(2), 1, 1, Raw(b"1")),
    c.ReportTaskFailed(EntryId(2), 1, 1, FAILURE),
    c.ReportTaskSucceeded(EntryId(2), 2, 1, Raw(b"2")),
    c.FireTimer(EntryId(3)),
    c.DeliverMessage("m1", "m"),
    c.CancelRun("x"),
]


def small_world() -> History:
    return begun(
        step(policy=e.Policy(attempts_max=2, delay_ms=1), undo=UNDO),
        c.SetTimer("", "t", 1, BEGIN),
        c.AwaitMessages("", "w", 1, ["m"], 1, BEGIN),
    )


def test_every_order_of_a_small_world_records_each_thing_once() -> None:
    """All interleavings with repetition, to depth five: task, timer and wait end once, whatever comes when."""
    base = small_world().machine.snapshot()
    ends = (e.TaskSucceeded, e.TimerFired, e.MessagesTaken, e.CancelRequested)
    for order in itertools.product(SMALL_WORLD, repeat=5):
        world = CodeMachine.restore(base)
        seen = _deliver(world, order)
        for kind in ends:
            assert len([event for event in seen if isinstance(event, kind)]) <= 1, order
        assert len([event for event in seen if isinstance(event, e.TaskFailed)]) <= 1


def _deliver(world: CodeMachine, order: Sequence[c.AnyCommand]) -> list[e.AnyEvent]:
    env = Env(now=BEGIN + 10, check=check)
    seen: list[e.AnyEvent] = []
    for command in order:
        try:
            events = world.decide(command, env)
        except WeftError:
            continue
        for event in events:
            world.evolve(event, at=env.now)
        seen.extend(events)
    return seen


def test_what_the_state_of_a_run_forbids_is_no_question_of_rights() -> None:
    refused = begun(c.CompleteRun()).give(c.RetryRun())

    assert isinstance(refused, Refused)
    assert refused.code == "run.refused"
