"""Standings come from counts and checkpoints, and are the same as those of a walk over all places."""

from __future__ import annotations

import pytest

from tests.observe.test_viewed_run import play
from weft.core import events as e
from weft.core.ids import Millis, RunId, Seq
from weft.errors import Failure
from weft.observe.box_standing import FIRST, BoxStanding
from weft.observe.past_machines import PastMachines
from weft.observe.place_log import PlaceLog
from weft.observe.places import HIDDEN
from weft.ports.store import StoredEvent
from weft.testing import World


def walked(log: PlaceLog, seq: int, *, shown: bool) -> dict[str, BoxStanding]:
    """Return how each box stood after an event, from all of its places."""
    found: dict[str, BoxStanding] = {}
    for place in log.places:
        standing = place.standing(seq)
        if standing is None or (shown and place.operation.kind in HIDDEN):
            continue
        box = found.setdefault(place.box, BoxStanding(standing.mark))
        box.mark = min(box.mark, standing.mark, key=FIRST.index)
        if standing.status == "open":
            box.open += 1
            if standing.attempts > 1 and not box.badges:
                box.badges = [f"attempt {standing.attempts} of {place.operation.attempts_max}"]
        elif standing.mark == "done":
            box.done += 1
        elif standing.mark == "failed":
            box.failed += 1
        else:
            box.skipped += 1
    return found


async def read_log(world: World, between: int, batch: int) -> PlaceLog:
    """Read the log of the played run, and count after each batch of events."""
    service = world.app.get("run")._service
    log = PlaceLog(between)
    async for stored in service.reader.events(await service.row(RunId("run"))):
        log.add(stored)
        if not stored.seq % batch:
            log.counts.advance(stored.seq)
    log.counts.advance(log.seq)
    return log


@pytest.mark.parametrize("style", ["code", "graph", "goal"])
@pytest.mark.parametrize(("between", "batch"), [(1, 1), (4, 3), (512, 7)])
def test_counted_standings_are_those_of_a_walk_over_all_places(style: str, between: int, batch: int) -> None:
    world, _ = play(style)
    log = world.perform(lambda: read_log(world, between, batch))
    for seq in range(1, log.seq + 1):
        for shown in (False, True):
            counted = log.counts.standings(seq, log.places, shown=shown)
            assert counted == walked(log, seq, shown=shown), f"event {seq}"
    world.close()


def test_the_log_of_places_knows_the_status_of_a_code_run_after_each_event() -> None:
    world, app = play("code")

    async def statuses() -> list[str]:
        service = app.get("run")._service
        row = await service.row(RunId("run"))
        machines = PastMachines()
        return [await machines.read(service, row, seq, lambda one: one.state.status) for seq in range(1, row.seq + 1)]

    log = world.perform(lambda: read_log(world, 1, 1))
    assert [log.status_of(seq) for seq in range(1, log.seq + 1)] == world.perform(statuses)
    world.close()


@pytest.mark.parametrize(
    ("event", "status"),
    [(e.CancelRequested(reason="late"), "cancelling"), (e.RunEnding(failure=Failure("Bad", "no")), "rolling_back")],
)
def test_a_run_that_is_resumed_goes_on_with_what_it_did_before_the_pause(event: e.AnyEvent, status: str) -> None:
    log = PlaceLog()
    for seq, one in enumerate([event, e.RunPaused(), e.RunResumed()], 1):
        log.add(StoredEvent(Seq(seq), Millis(seq), e.encode(one)))
    assert [log.status_of(seq) for seq in (1, 2, 3)] == [status, "paused", status]


def test_a_look_back_compares_only_the_places_that_changed_since_a_checkpoint() -> None:
    world, _ = play("code")
    log = world.perform(lambda: read_log(world, 4, 1))
    before = log.counts.compared
    for seq in range(1, log.seq + 1):
        log.counts.standings(seq, log.places)
    assert log.counts.compared - before <= 2 * 4 * log.seq
    world.close()
