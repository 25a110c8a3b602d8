"""Every pattern that is more natural in code: its program runs, and does what the pattern asks for."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.patterns.kit import Gauge, elapsed
from tests.patterns.programs import p15_multiple_instances_without_a_priori_run_time_knowledge as p15
from tests.patterns.programs import p17_interleaved_parallel_routing as p17
from tests.patterns.programs import p24_persistent_trigger as p24
from tests.patterns.programs import p27_complete_multiple_instance_activity as p27
from tests.patterns.programs import p36_dynamic_partial_join_for_multiple_instances as p36
from tests.patterns.programs import p39_critical_section as p39
from weft.testing import World

HOUR = 3600


def test_15_instances_are_added_while_others_are_at_work() -> None:
    world = World(p15.app)
    gauge = Gauge()
    world.fake(p15.read, gauge.taking(HOUR))
    run = world.start(p15.reading())
    for page in ("a", "b", "c"):
        run.send("page", page)
        world.advance("20m")

    assert run.result() == ["a", "b", "c"]
    assert gauge.most == 3


def test_17_lines_are_mixed_and_only_one_task_runs_at_a_time() -> None:
    world = World(p17.app)
    gauge = Gauge()
    world.fake(p17.examine, gauge.taking(HOUR))

    seen = world.run(p17.health_check())

    assert gauge.most == 1
    assert sorted(seen) == ["blood", "blood again", "eyes", "glasses"]
    assert seen.index("blood") < seen.index("blood again")
    assert seen.index("eyes") < seen.index("glasses")
    assert seen[:2] == ["blood", "eyes"], "the lines take turns"


def test_24_a_message_waits_for_the_run() -> None:
    world = World(p24.app)
    run = world.start(p24.delivery())
    run.send("neighbour", "Ada")
    world.advance("1h")
    assert run.status == "running"

    assert run.result() == "left with Ada"


def test_27_what_was_found_counts_when_the_rest_is_stopped() -> None:
    world = World(p27.app)
    hours = {"yard": 0, "attic": 2, "cellar": 50}
    world.fake(p27.look, lambda place: _later(hours[place] * HOUR, place))
    run = world.start(p27.search(list(hours)))
    world.advance("3h")
    run.send("enough", "yes")
    world.advance("30s")
    world.restart()

    assert run.result() == ["yard", "attic"], "replay finds the same results"
    assert elapsed(run) == 3 * HOUR + 60


def test_27_it_ends_by_itself_when_all_are_done() -> None:
    assert sorted(World(p27.app).run(p27.search(["yard", "attic"]))) == ["nothing in attic", "nothing in yard"]


def test_36_it_is_judged_after_each_arrival_whether_that_is_enough() -> None:
    world = World(p36.app)
    friends = {"a": ["c", "d"]}
    world.fake(p36.bid, lambda bidder: _later(HOUR * (50 if bidder == "x" else 1), (10, friends.get(bidder, []))))

    assert world.run(p36.raise_money(["a", "b", "x"], 30)) in {30, 40}
    assert {call.args["bidder"] for call in world.calls(p36.bid)} == {"a", "b", "c", "d", "x"}
    assert world.run(p36.raise_money(["a", "b", "x"], 1_000)) == 50


def test_39_the_sections_exclude_each_other_and_the_rest_does_not() -> None:
    world = World(p39.app)
    printing, writing = Gauge(), Gauge()
    world.fake(p39.write, writing.taking(HOUR))
    world.fake(p39.load_paper, printing.taking(HOUR))
    world.fake(p39.print_out, printing.taking(HOUR))

    world.run(p39.office(["a", "b", "c"]))

    assert (writing.most, printing.most) == (3, 1)
    assert printing.order[0::2] == printing.order[1::2], "nobody prints on paper of somebody else"


async def _later(seconds: float, answer: Any) -> Any:
    await asyncio.sleep(seconds)
    return answer
