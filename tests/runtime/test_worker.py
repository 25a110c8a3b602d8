"""The worker: bounded slots, one performance per hand-out, and a table that outlives what happens to the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.code.timeless import InPlace, LoopClock, calm, play
from weft.core import commands as c
from weft.core.effects import PerformTask
from weft.core.events import Policy
from weft.core.ids import EntryId, Epoch, RunUid
from weft.ports.tasks import TaskOffer
from weft.runtime.run.scopes import CURRENT
from weft.runtime.worker.flight import Flight
from weft.runtime.worker.step_worker import StepWorker

UID = RunUid("u" * 32)


class Body:
    """A step body that waits until it is told, and says what it saw."""

    name = "work"

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.begun = self.stopped = self.now = self.most = 0
        self.seen: list[Any] = []

    async def perform(self, given: bytes, executor: Any) -> bytes:
        self.begun += 1
        self.now += 1
        self.most = max(self.most, self.now)
        self.seen.append((weft.task().key, weft.task().attempt, CURRENT.get(None)))
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.now -= 1
        return given

    def is_final(self, error: BaseException) -> bool:
        return isinstance(error, weft.Critical)


class Bench:
    """A worker, and the reports it made."""

    def __init__(self, slots: int = 10) -> None:
        self.reports: list[tuple[Flight, Any]] = []
        catalogue: Any = None
        self.worker = StepWorker(
            catalogue, InPlace(), LoopClock(), slots=slots, report=self._report, load=_same, keep=_same
        )

    def _report(self, flight: Flight, report: Any) -> None:
        self.reports.append((flight, report))

    def hand_out(self, body: Any, task: int = 1, *, attempt: int = 1, delivery: int = 1, timeout_ms: int = 0) -> Flight:
        policy = Policy(timeout_ms=timeout_ms)
        effect = PerformTask(
            EntryId(task), attempt, delivery, "work", Raw(b"{}"), f"key/{task}", f"place/{task}", policy
        )
        flight = Flight(UID, "run", effect, body)
        self.worker.perform(flight)
        return flight


async def _same(raw: bytes) -> bytes:
    return raw


def test_no_more_bodies_run_at_once_than_there_are_slots() -> None:
    async def scene() -> None:
        bench, body = Bench(slots=3), Body()
        for task in range(10):
            bench.hand_out(body, task)
        await asyncio.sleep(60)
        assert body.begun == 10
        assert body.most == 3
        assert len(bench.reports) == 10

    play(scene())


def test_the_same_hand_out_twice_is_performed_once_also_after_it_has_ended() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        for _ in range(3):
            bench.hand_out(body)
        await asyncio.sleep(5)
        bench.hand_out(body)
        await asyncio.sleep(5)
        assert body.begun == 1
        assert len(bench.reports) == 1

    play(scene())


def test_a_result_stays_in_the_table_until_it_was_taken() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        bench.hand_out(body)
        await asyncio.sleep(5)
        ((flight, report),) = bench.reports
        assert isinstance(report, c.ReportTaskSucceeded)
        assert bench.worker.has(UID, EntryId(1), 1, 1)
        assert bench.worker.is_busy(UID)
        bench.worker.answered(flight)
        assert not bench.worker.is_busy(UID)
        bench.hand_out(body)
        await asyncio.sleep(5)
        assert body.begun == 2

    play(scene())


def test_another_delivery_stops_the_one_before_and_only_the_new_one_answers() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        bench.hand_out(body)
        await calm()
        bench.hand_out(body, delivery=2)
        await asyncio.sleep(5)
        assert (body.begun, body.stopped) == (2, 1)
        assert [report.delivery for _, report in bench.reports] == [2]

    play(scene())


def test_a_hand_out_from_before_does_not_stop_the_one_that_followed_it() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        bench.hand_out(body, delivery=2)
        await calm()
        bench.hand_out(body, delivery=1)
        bench.hand_out(body, 2, attempt=2)
        bench.hand_out(body, 2, attempt=1, delivery=3)
        await asyncio.sleep(5)
        assert (body.begun, body.stopped) == (2, 0)
        assert [(report.task, report.attempt, report.delivery) for _, report in bench.reports] == [(1, 1, 2), (2, 2, 1)]

    play(scene())


def test_what_nobody_waits_for_is_stopped_and_frees_its_slot() -> None:
    async def scene() -> None:
        bench, body = Bench(slots=1), Body(60)
        bench.hand_out(body, 1)
        bench.hand_out(body, 2)
        bench.hand_out(body, 3)
        await calm()
        bench.worker.stop(UID, EntryId(1))
        bench.worker.stop(UID, EntryId(2))
        await asyncio.sleep(100)
        assert [report.task for _, report in bench.reports] == [3]
        assert bench.worker.free_slots() == 1

    play(scene())


def test_a_task_stopped_before_its_first_step_frees_its_slot() -> None:
    async def scene() -> None:
        bench, body = Bench(slots=2), Body()
        bench.hand_out(Body(60), 1)  # the first task of a run may begin at once
        bench.hand_out(body, 2)
        bench.worker.stop(UID, EntryId(2))
        await calm()
        assert body.begun == 0
        assert bench.worker.free_slots() == 1

    play(scene())


def test_everything_of_a_run_can_be_stopped_at_once() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        for task in range(4):
            bench.hand_out(body, task)
        await calm()
        bench.worker.stop_all(UID)
        await asyncio.sleep(5)
        assert body.stopped == 4
        assert bench.reports == []

    play(scene())


def test_a_body_that_takes_too_long_is_ended_with_a_report() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body(60)
        bench.hand_out(body, timeout_ms=1_000)
        await asyncio.sleep(5)
        ((_, report),) = bench.reports
        assert isinstance(report, c.ReportTaskFailed)
        assert report.failure.type == "TimedOut"
        assert report.retryable
        assert body.stopped == 1

    play(scene())


def test_a_body_has_its_own_task_and_sees_no_workflow() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        token = CURRENT.set(object())  # type: ignore[arg-type]
        bench.hand_out(body, 1, attempt=2)
        CURRENT.reset(token)
        bench.hand_out(body, 2)
        await asyncio.sleep(5)
        assert body.seen == [("key/1", 2, None), ("key/2", 1, None)]

    play(scene())


def test_draining_waits_for_what_runs_and_begins_nothing_more() -> None:
    async def scene() -> None:
        bench, quick, slow = Bench(slots=2), Body(1), Body(600)
        bench.hand_out(quick, 1)
        bench.hand_out(slow, 2)
        bench.hand_out(quick, 3)
        await calm()
        assert await bench.worker.drain(5) == 1
        assert quick.begun == 1
        bench.worker.abandon()
        await calm()
        assert slow.stopped == 1
        assert bench.worker.flights == {}

    play(scene())


def test_a_closed_worker_takes_nothing() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        bench.worker.closed = True
        bench.hand_out(body)
        await asyncio.sleep(5)
        assert body.begun == 0

    play(scene())


def test_a_body_that_waits_for_a_run_holds_no_slot_meanwhile() -> None:
    from weft.steps.task import release_slot

    class Waiting(Body):
        async def perform(self, given: bytes, executor: Any) -> bytes:
            with release_slot():
                return await super().perform(given, executor)

    async def scene() -> None:
        bench, waiting, body = Bench(slots=1), Waiting(60), Body(1)
        bench.hand_out(waiting, 1)
        bench.hand_out(body, 2)
        bench.hand_out(body, 3)
        await asyncio.sleep(10)
        assert [report.task for _, report in bench.reports] == [2, 3]
        assert body.most == 1
        await asyncio.sleep(100)
        assert bench.worker.free_slots() == 1

    play(scene())


def test_what_was_taken_from_others_goes_on_when_this_host_throws_away_what_it_knew_of_the_run() -> None:
    async def scene() -> None:
        bench, body = Bench(), Body()
        own = bench.hand_out(body, 20)
        taken = bench.hand_out(body, 30)
        taken.offer = TaskOffer(
            uid=UID, task=30, attempt=1, delivery=1, step="work", queue="default", body=b"", epoch=Epoch(2)
        )
        bench.worker.stop_after(UID, 3)
        await asyncio.sleep(5)
        assert own.stopped
        assert [flight for flight, _ in bench.reports] == [taken]

    play(scene())


class Stubborn(Body):
    """A body that does not let itself be cancelled, and returns much later."""

    async def perform(self, given: bytes, executor: Any) -> bytes:
        self.begun += 1
        end = asyncio.get_running_loop().time() + self.seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                self.stopped += 1
        return given


def test_a_body_that_swallows_its_timeout_is_failed_abandoned_and_not_heard_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        bench, body = Bench(slots=1), Stubborn(seconds=3600)
        bench.hand_out(body, 1, timeout_ms=5_000)
        bench.hand_out(Body(), 2)
        await asyncio.sleep(60)
        (flight, failed), (_, second) = bench.reports
        assert isinstance(failed, c.ReportTaskFailed)
        assert (failed.failure.code, failed.retryable) == ("step.timed_out", True)
        assert isinstance(second, c.ReportTaskSucceeded), "its slot is free again"
        assert body.stopped == 1
        bench.worker.answered(flight)
        assert await bench.worker.drain(3600) == 0
        assert asyncio.get_running_loop().time() < 100, "nobody waits for it"
        await asyncio.sleep(7200)
        assert len(bench.reports) == 2

    play(scene())
    (said,) = [record.getMessage() for record in caplog.records]
    assert "place/1 of run " in said


def test_a_body_that_swallows_a_cancel_gives_its_slot_back() -> None:
    async def scene() -> None:
        bench, body = Bench(slots=1), Stubborn(seconds=3600)
        bench.hand_out(body, 1)
        await asyncio.sleep(1)
        bench.worker.stop(UID, EntryId(1))
        bench.hand_out(Body(), 2)
        await asyncio.sleep(60)
        ((_, report),) = bench.reports
        assert report.task == 2
        assert bench.worker.free_slots() == 1

    play(scene())


def test_a_body_that_cleans_up_in_time_after_its_timeout_is_not_abandoned(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        bench = Bench(slots=1)
        bench.hand_out(Body(seconds=60), 1, timeout_ms=5_000)
        await asyncio.sleep(30)
        ((_, report),) = bench.reports
        assert report.failure.code == "step.timed_out"
        assert "await asyncio.sleep(self.seconds)" in report.failure.traceback
        assert bench.worker.free_slots() == 1

    play(scene())
    assert not caplog.records
