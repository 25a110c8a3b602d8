"""What becomes of nominal times: fired, queued, missed or found, each exactly once."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from tests.schedule.desk import HOUR, MINUTE, UID, Desk, hourly, ms
from weft.core import commands as c
from weft.core import events as e
from weft.core.schedule.calendar import start_at
from weft.core.schedule.firing import BURST_MAX, QUEUED_MAX
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState
from weft.core.schedule.style import CARRY_EVERY
from weft.errors import Refused, RunFinished
from weft.runtime.cron_calendar import CALENDAR


def test_each_nominal_time_starts_a_run_named_after_it() -> None:
    desk = Desk(hourly())
    desk.until("09:00")
    desk.end("job/20260601T090000Z")
    desk.until("10:30")

    assert desk.runs == ["0900", "1000"]
    assert desk.state.next == ms("11:00") == desk.timer


def test_a_run_is_a_root_that_knows_its_schedule() -> None:
    desk = Desk(hourly(input=Raw(b'{"n":1}')))
    desk.now = ms("09:00")
    (_, fired) = desk.tell(c.FireTimer(entry=1))  # type: ignore[arg-type]
    (letter,) = desk.machine.mail(fired)

    start = letter.command
    assert isinstance(start, c.StartRun)
    assert (start.parent, start.root, start.trace) == (None, "", "")
    assert (start.workflow, start.version, start.style, bytes(start.input)) == ("job", "", "", b'{"n":1}')
    assert start.scheduled_at == ms("09:00")
    assert start.schedule == UID
    assert start.attributes == {"weft.schedule": "job"}


def test_a_time_that_is_too_late_is_missed_and_one_that_is_not_is_fired() -> None:
    desk = Desk(hourly(catch_up_ms=30 * MINUTE))
    desk.outage("12:20")

    assert desk.missed == [(3, "late")]
    assert desk.runs == ["1200"]


def test_catch_up_without_a_limit_fires_everything_oldest_first() -> None:
    desk = Desk(hourly(catch_up_ms=-1, overlap="allow"))
    desk.outage("12:20")

    assert desk.runs == ["0900", "1000", "1100", "1200"]
    assert desk.missed == []


def test_at_most_a_hundred_runs_are_started_at_once() -> None:
    desk = Desk(hourly(cron="", every_ms=MINUTE, catch_up_ms=-1, overlap="allow"))
    desk.now = ms("12:20")
    desk.tell(c.FireTimer(entry=1))  # type: ignore[arg-type]

    assert len(desk.started) == BURST_MAX
    assert desk.timer == desk.now
    desk.to(desk.now)
    assert len(desk.started) == 230


def test_skip_misses_times_while_a_run_is_open() -> None:
    desk = Desk(hourly())
    desk.until("11:10")

    assert desk.runs == ["0900"]
    assert desk.missed == [(1, "overlap"), (1, "overlap")]
    desk.end("job/20260601T090000Z")
    desk.until("12:00")
    assert desk.runs == ["0900", "1200"]


def test_queue_starts_runs_in_order_as_others_end() -> None:
    desk = Desk(hourly(overlap="queue"))
    desk.until("11:10")

    assert desk.runs == ["0900"]
    desk.end("job/20260601T090000Z")
    assert desk.runs == ["0900", "1000"]
    desk.end("job/20260601T100000Z", "failed")
    assert desk.runs == ["0900", "1000", "1100"]
    assert desk.missed == []


def test_a_full_queue_misses_what_comes_next() -> None:
    desk = Desk(hourly(cron="", every_ms=MINUTE, overlap="queue", catch_up_ms=-1))
    desk.to(desk.now + (QUEUED_MAX + 3) * MINUTE)

    assert len(desk.state.queued) == QUEUED_MAX
    assert desk.missed == [(1, "queue_full"), (1, "queue_full")]


def test_cancel_old_stops_the_open_run_and_starts_only_the_newest() -> None:
    desk = Desk(hourly(overlap="cancel_old"))
    desk.until("11:10")

    assert desk.cancelled == ["job/20260601T090000Z"]
    assert desk.missed == [(1, "overlap")]
    desk.end("job/20260601T090000Z", "cancelled")
    assert desk.runs == ["0900", "1100"]


def test_cancel_old_starts_only_the_newest_of_several_that_are_due() -> None:
    desk = Desk(hourly(overlap="cancel_old", catch_up_ms=-1))
    desk.outage("12:20")

    assert desk.missed == [(3, "overlap")]
    assert desk.runs == ["1200"]


def test_allow_starts_runs_beside_each_other() -> None:
    desk = Desk(hourly(overlap="allow"))
    desk.until("11:10")

    assert desk.runs == ["0900", "1000", "1100"]


def test_a_run_that_exists_is_left_alone() -> None:
    desk = Desk(hourly(), exists=["job/20260601T090000Z"])
    desk.until("10:10")

    assert desk.runs == ["1000"]
    assert [event.run_id for event in desk.of(e.ScheduledRunFound)] == ["job/20260601T090000Z"]
    assert (desk.state.fired, desk.state.found) == (1, 1)


def test_jitter_delays_a_run_by_less_than_its_length_and_always_alike() -> None:
    spec = hourly(jitter_ms=10 * MINUTE)
    delays = [start_at("job", spec, ms("09:00") + n * HOUR) - ms("09:00") - n * HOUR for n in range(100)]

    assert all(0 <= delay < 10 * MINUTE for delay in delays)
    assert len(set(delays)) > 90
    assert start_at("job", spec, ms("09:00")) == start_at("job", spec, ms("09:00"))
    assert start_at("other", spec, ms("09:00")) != start_at("job", spec, ms("09:00"))


def test_jitter_is_not_lateness() -> None:
    desk = Desk(hourly(jitter_ms=20 * MINUTE, catch_up_ms=1_000))
    desk.until("09:30")

    assert desk.runs == ["0900"]
    assert desk.log[-1][1] == start_at("job", desk.state.spec, ms("09:00"))


def test_there_are_no_times_after_until() -> None:
    desk = Desk(hourly(until=ms("10:30"), overlap="allow"))
    desk.until("15:00")

    assert desk.runs == ["0900", "1000"]
    assert (desk.state.next, desk.timer) == (0, None)


def test_what_falls_into_a_pause_is_missed() -> None:
    desk = Desk(hourly(catch_up_ms=-1))
    desk.tell(c.PauseRun("holiday"))
    assert desk.timer is None
    desk.until("11:10")
    desk.tell(c.ResumeRun())

    assert desk.missed == [(3, "paused")]
    desk.until("12:00")
    assert desk.runs == ["1200"]


def test_failures_in_a_row_pause_it_with_the_reason() -> None:
    desk = Desk(hourly(pause_after=2))
    for label, status in (("0900", "failed"), ("1000", "completed"), ("1100", "failed"), ("1200", "failed")):
        desk.until(f"{label[:2]}:00")
        desk.end(f"job/20260601T{label}00Z", status)

    assert desk.state.status == "paused"
    assert desk.state.pause_reason == "2 runs in a row failed, the last one job/20260601T120000Z"
    desk.tell(c.ResumeRun())
    assert (desk.state.status, desk.state.failures) == ("running", 0)


def test_a_trigger_starts_a_run_now_unless_another_is_open() -> None:
    desk = Desk(hourly())
    desk.tell(c.TriggerSchedule(label="now-1", by="ann"))

    assert list(desk.started) == ["job/now-1"]
    assert desk.of(e.ScheduleFired)[0].nominal == ms("08:30")
    with pytest.raises(Refused, match="starts no run while job/now-1 is open") as caught:
        desk.tell(c.TriggerSchedule(label="now-2"))
    assert caught.value.code == "schedule.overlap"


def test_a_trigger_is_queued_if_the_overlap_says_so() -> None:
    desk = Desk(hourly(overlap="queue"))
    desk.tell(c.TriggerSchedule(label="now-1"))
    desk.tell(c.TriggerSchedule(label="now-2"))
    assert list(desk.started) == ["job/now-1"]
    desk.end("job/now-1")

    assert list(desk.started) == ["job/now-1", "job/now-2"]


def test_a_backfill_starts_what_is_lacking_one_after_the_other() -> None:
    desk = Desk(hourly(), at="12:30", exists=["job/20260601T100000Z"])
    desk.tell(c.BackfillSchedule(first=ms("09:00"), last=ms("11:30")))

    assert desk.runs == ["0900"]
    desk.end("job/20260601T090000Z")
    assert desk.runs == ["0900", "1100"]
    assert desk.state.backfills == []
    assert desk.state.next == ms("13:00")


def test_a_backfill_may_start_all_at_once() -> None:
    desk = Desk(hourly(), at="12:30")
    desk.tell(c.BackfillSchedule(first=ms("09:00"), last=ms("11:00"), overlap="allow"))

    assert desk.runs == ["0900", "1000", "1100"]


def test_two_backfills_of_one_period_start_each_run_once() -> None:
    desk = Desk(hourly(), at="12:30")
    for _ in range(2):
        desk.tell(c.BackfillSchedule(first=ms("09:00"), last=ms("11:00"), overlap="allow"))

    assert desk.runs == ["0900", "1000", "1100"]
    assert len(desk.of(e.ScheduledRunFound)) == 3


def test_a_backfill_of_a_period_without_times_changes_nothing() -> None:
    desk = Desk(hourly(), at="12:30")

    assert desk.tell(c.BackfillSchedule(first=ms("09:10"), last=ms("09:50"))) == []


def test_a_changed_declaration_is_one_event_and_counts_from_then_on() -> None:
    desk = Desk(hourly())
    changed = hourly(cron="30 * * * *")

    assert desk.tell(c.DeclareSchedule(spec=hourly())) == []
    (declared,) = desk.tell(c.DeclareSchedule(spec=changed))
    assert isinstance(declared, e.ScheduleDeclared)
    desk.until("10:00")
    assert desk.runs == ["0930"]


def test_a_declaration_that_comes_late_does_not_lose_a_time() -> None:
    desk = Desk(hourly(catch_up_ms=HOUR))
    desk.timer = None
    desk.now = ms("09:10")
    desk.tell(c.DeclareSchedule(spec=hourly(catch_up_ms=HOUR, input=Raw(b'{"n":2}'))))

    assert desk.runs == ["0900"]


def test_a_removed_schedule_starts_nothing_and_leaves_its_runs_alone() -> None:
    desk = Desk(hourly())
    desk.until("09:00")
    desk.tell(c.CancelRun("not needed"))

    assert desk.state.status == "cancelled"
    assert (desk.cancelled, desk.timer) == ([], None)
    with pytest.raises(RunFinished):
        desk.tell(c.PauseRun())
    with pytest.raises(Refused, match="was removed"):
        desk.tell(c.TriggerSchedule(label="now-1"))


def test_a_removed_schedule_can_be_declared_again() -> None:
    desk = Desk(hourly())
    desk.until("09:00")
    desk.tell(c.CancelRun())
    desk.now = ms("11:30")
    desk.tell(c.DeclareSchedule(spec=hourly()))
    desk.until("12:00")

    assert desk.runs == ["0900", "1200"]
    assert desk.state.status == "running"


def test_the_end_of_an_unknown_run_changes_nothing() -> None:
    desk = Desk(hourly())

    assert desk.tell(c.ReportRunEnded(uid="f" * 32, status="completed")) == []


@pytest.mark.parametrize("command", [c.DeliverMessage("m", "hello"), c.ReportTaskLost(1, 1, 1)])  # type: ignore[arg-type]
def test_commands_that_a_schedule_does_not_have_are_refused(command: c.Mailed) -> None:
    with pytest.raises(Refused, match="does not support"):
        Desk(hourly()).tell(command)


def test_a_schedule_is_not_retried() -> None:
    with pytest.raises(Refused):
        Desk(hourly()).tell(c.RetryRun())


def test_the_state_is_carried_forward_and_the_log_before_it_is_not_needed() -> None:
    desk = Desk(hourly(cron="", every_ms=MINUTE, overlap="allow"))
    for _ in range(CARRY_EVERY + 5):
        desk.to(desk.now + MINUTE)
        for run_id in list(desk.open.values()):
            desk.end(run_id)

    places = [n for n, (event, _) in enumerate(desk.log) if isinstance(event, e.ScheduleCarried)]
    assert len(places) == 1
    later = ScheduleMachine(CALENDAR, ScheduleState(uid=UID, seq=places[0]))
    for event, at in desk.log[places[0] :]:
        later.evolve(event, at=at)
    assert later.snapshot() == desk.machine.snapshot()


def test_a_log_folds_as_it_was_decided_also_after_json() -> None:
    desk = Desk(hourly(overlap="cancel_old", jitter_ms=MINUTE))
    desk.until("12:10")
    desk.tell(c.PauseRun())
    desk.tell(c.ResumeRun())
    machine = ScheduleMachine(CALENDAR, ScheduleState(uid=UID))
    for event, at in desk.log:
        machine.evolve(e.decode(e.encode(event)), at=at)

    assert msgspec.json.decode(machine.snapshot()) == msgspec.json.decode(desk.machine.snapshot())
