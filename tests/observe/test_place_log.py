"""The log of places looks only at the places that an event changes, however many there are."""

from __future__ import annotations

from weft.core import events as e
from weft.core.ids import Millis, Seq
from weft.errors import Failure
from weft.observe.operations import Operation
from weft.observe.place_log import PlaceLog
from weft.observe.places import RunPlace
from weft.ports.store import StoredEvent

STEPS = 300


class CountingLog(PlaceLog):
    """A log that counts how often it looks at an operation."""

    looks = 0

    def _record_standing(self, operation: Operation, seq: int, at: int) -> RunPlace:
        self.looks += 1
        return super()._record_standing(operation, seq, at)


def add_all(log: PlaceLog, events: list[e.AnyEvent]) -> None:
    for seq, event in enumerate(events, log.seq + 1):
        log.add(StoredEvent(Seq(seq), Millis(seq), e.encode(event)))


def started(style: str) -> e.AnyEvent:
    return e.decode(e.encode({"kind": "run_started", "run_id": "run", "workflow": "work", "style": style, "input": {}}))


def test_each_skipped_or_failed_step_of_a_large_goal_costs_one_look() -> None:
    log = CountingLog()
    failure = Failure("Bad", "no")
    steps: list[e.AnyEvent] = [e.StepSkipped(step=f"skipped{n}", reason="not needed") for n in range(STEPS)]
    steps += [e.StepFailedEvent(step=f"failed{n}", failure=failure) for n in range(STEPS)]
    add_all(log, [started("goal"), *steps])
    assert len(log.places) == 2 * STEPS
    assert log.looks == 2 * STEPS


def test_a_failed_step_ends_its_open_items_and_looks_at_no_others() -> None:
    log = CountingLog()
    add_all(log, [started("goal"), *(e.StepSkipped(step=f"skipped{n}", reason="no") for n in range(STEPS))])
    add_all(log, [e.StepStarted(step="each", fan_out=True, work_items=2)])
    items = [e.TaskScheduled(step="each", node="each", item=index, input=e.NULL) for index in (0, 1)]
    add_all(log, [*items])
    before = log.looks
    add_all(log, [e.StepFailedEvent(step="each", failure=Failure("Bad", "no"))])
    assert log.looks - before == 3
    assert {place.operation.location: place.changes[-1].status for place in log.places[-3:]} == {
        "each": "failed",
        "each/0": "cancelled",
        "each/1": "cancelled",
    }


def test_a_retry_looks_only_at_the_steps_that_it_reopens_and_drops_those_that_never_started() -> None:
    log = CountingLog()
    failure = Failure("Bad", "no")
    add_all(log, [started("goal"), e.StepStarted(step="begun"), e.StepFailedEvent(step="begun", failure=failure)])
    add_all(log, [*(e.StepSkipped(step=f"skipped{n}", reason="no") for n in range(STEPS))])
    add_all(log, [e.RunFailedEvent(failure=failure)])
    before = log.looks
    add_all(log, [e.RunRetried(steps=["begun", "skipped1"])])
    assert log.looks - before == 2
    assert log.places[0].changes[-1].status == "open"
    assert log.places[2].standing(log.seq) is None
    assert log.drops == [log.seq]
