"""Every pattern that Weft does as a graph: its document runs, and does what the pattern asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from tests.patterns.kit import DOCUMENTS, Gauge, after, elapsed, pattern, same, went

HOUR = 3600
DAY = 24 * HOUR


@pytest.mark.parametrize("path", sorted(DOCUMENTS.iterdir()), ids=lambda path: path.stem[:2])
def test_every_document_is_sound_as_far_as_can_be_foreseen(path: Path) -> None:
    """A join that counts on two tokens of one edge is the one thing here that depends on chance."""
    wrong = {found.path for found in weft.Graph.of(path).check() if found.severity == "error"}

    assert wrong == ({"nodes.frame", "nodes.wheels"} if path.stem.startswith("33") else set())


def test_01_tasks_follow_each_other() -> None:
    run = pattern(1).start()

    run.result()
    assert went(run) == ["pick", "pack", "ship"]


def test_02_both_ways_go_on_by_themselves() -> None:
    bench = pattern(2, {"bill": after(HOUR, "bill")})
    run = bench.start()
    bench.world.advance("1m")
    assert went(run) == ["order", "pack", "ship"]

    run.result()
    assert went(run) == ["order", "pack", "ship", "bill"]


@pytest.mark.parametrize("slow", ["bill", "pack"])
def test_03_the_meeting_waits_for_the_slower_way(slow: str) -> None:
    bench = pattern(3, {slow: after(HOUR, slow)})
    run = bench.start()
    bench.world.advance("30m")
    assert bench.times("ship") == 0

    run.result()
    assert went(run)[2:] == [slow, "ship"]
    assert bench.times("ship") == 1


@pytest.mark.parametrize(("total", "way"), [(1001, "approve"), (1000, "book"), (0, "refuse")])
def test_04_exactly_one_way_is_taken(total: int, way: str) -> None:
    run = pattern(4).start(total=total)

    run.result()
    assert went(run) == ["check", way]


@pytest.mark.parametrize(("total", "way"), [(1001, "approve"), (1000, "book")])
def test_05_either_way_leads_to_the_same_task_once(total: int, way: str) -> None:
    run = pattern(5).start(total=total)

    run.result()
    assert went(run) == ["check", way, "archive"]


CALLS = [
    (False, False, ["police"]),
    (True, False, ["police", "brigade"]),
    (False, True, ["police", "ambulance"]),
    (True, True, ["police", "brigade", "ambulance"]),
]


@pytest.mark.parametrize(("fire", "injured", "called"), CALLS)
def test_06_each_way_is_chosen_for_itself(fire: bool, injured: bool, called: list[str]) -> None:
    run = pattern(6).start(fire=fire, injured=injured)

    run.result()
    assert sorted(went(run)) == sorted(["emergency", *called])


@pytest.mark.parametrize(("fire", "injured", "called"), CALLS)
def test_07_the_merge_waits_for_those_that_were_chosen(fire: bool, injured: bool, called: list[str]) -> None:
    bench = pattern(7, {called[-1]: after(HOUR, called[-1])})
    run = bench.start(fire=fire, injured=injured)
    bench.world.advance("30m")
    assert bench.times("report") == 0

    run.result()
    assert bench.given("report") == [{name: name for name in called}]


def test_08_the_task_behind_the_merge_runs_once_per_arrival() -> None:
    bench = pattern(8)
    run = bench.start()
    bench.world.advance("30m")
    assert (bench.times("note"), bench.times("file")) == (1, 1)

    run.result()
    assert (bench.times("note"), bench.times("file")) == (2, 2)


def test_09_the_first_goes_on_and_the_others_finish_for_nobody() -> None:
    bench = pattern(9)
    run = bench.start()
    bench.world.advance("1m")
    assert went(run) == ["triage", "breathing", "treat"]
    assert run.status == "running"

    run.result()
    assert (bench.times("read_pulse"), bench.times("treat")) == (1, 1)


def test_11_a_run_ends_when_nothing_is_left_to_do() -> None:
    bench = pattern(11)
    run = bench.start()
    bench.world.advance("1d")
    assert run.status == "running"

    run.result()
    assert elapsed(run) == 2 * DAY


def test_12_nobody_waits_for_the_instances() -> None:
    bench = pattern(12)
    run = bench.start(readers=["Ada", "Bob", "Cleo"])
    bench.world.advance("1m")
    assert (bench.times("publish"), bench.times("post")) == (1, 0)

    run.result()
    assert sorted(bench.given("post")) == ["Ada", "Bob", "Cleo"]


def test_13_as_many_instances_as_the_document_says() -> None:
    bench = pattern(13, {"review": lambda index: f"review {index}"})

    assert bench.run() == {"reviews": ["review 0", "review 1", "review 2"]}
    assert bench.times("verdict") == 1


@pytest.mark.parametrize("lines", [[], [7], [3, 1, 2]])
def test_14_as_many_instances_as_there_is_data(lines: list[int]) -> None:
    bench = pattern(14, {"check": after(same, lambda line: line * 10)})

    assert bench.run(lines=lines) == {"checked": [line * 10 for line in lines]}
    assert bench.times("close") == 1


def test_16_the_world_chooses_and_the_other_possibility_is_withdrawn() -> None:
    bench = pattern(16)
    run = bench.start()
    run.answer("customer", approved=True, by="c-1")
    run.result()
    assert went(run)[-1] == "deliver"
    assert run.waiting_for() == []

    bench = pattern(16)
    run = bench.start()
    bench.world.advance("8d")
    assert run.status == "completed"
    assert went(run)[-1] == "remind"
    with pytest.raises(weft.Refused):
        run.answer("customer", approved=True, by="c-1")


def test_18_a_task_is_possible_between_two_moments_only() -> None:
    bench = pattern(18)
    run = bench.start()
    with pytest.raises(weft.Refused):
        run.answer("change", form={"note": "too early"}, by="c-1")
    bench.world.advance("2h")
    for note in ("in red", "in blue"):
        run.answer("change", form={"note": note}, by="c-1")
    assert bench.times("ship") == 0

    run.result()
    assert went(run).count("change") == 2
    assert bench.times("ship") == 1
    with pytest.raises(weft.Refused):
        run.answer("change", form={"note": "too late"}, by="c-1")


def test_18_a_final_no_ends_the_phase_at_once() -> None:
    bench = pattern(18)
    run = bench.start()
    bench.world.advance("2h")
    run.answer("change", approved=False, by="c-1")

    run.result()
    assert went(run) == ["accept", "change", "packed", "ship"]
    assert elapsed(run) == 2 * HOUR


def test_19_one_task_is_withdrawn_and_the_run_goes_on() -> None:
    bench = pattern(19, {"translate": after(DAY, "translated")})
    run = bench.start()
    bench.world.advance("1h")
    run.answer("stop", approved=True, by="editor")

    run.result()
    assert went(run) == ["request", "stop", "known", "publish"]
    assert elapsed(run) == HOUR


def test_20_the_whole_run_is_withdrawn() -> None:
    bench = pattern(20, {"print": after(DAY, "printed")})
    run = bench.start()
    bench.world.advance("1h")
    run.cancel("no longer wanted")

    with pytest.raises(weft.RunCancelled):
        run.result()
    assert (bench.times("send"), bench.times("release")) == (0, 1)


@pytest.mark.parametrize("rounds", [1, 3, 4])
def test_21_it_goes_round_until_it_is_good(rounds: int) -> None:
    run = pattern(21, {"taste": [{"good": False}] * (rounds - 1) + [{"good": True}]}).start()

    run.result()
    assert went(run) == [*["mix", "taste"] * rounds, "serve"]


def test_21_it_goes_round_no_more_often_than_it_may() -> None:
    run = pattern(21, {"taste": {"good": False}}).start()

    run.result()
    assert went(run) == [*["mix", "taste"] * 4, "throw_away"]


@pytest.mark.parametrize(("n", "product"), [(1, 1), (2, 2), (5, 120)])
def test_22_a_graph_calls_itself(n: int, product: int) -> None:
    assert pattern(22).run(n=n) == {"product": product}


def test_23_a_trigger_that_comes_too_early_is_lost() -> None:
    bench = pattern(23)
    run = bench.start()
    with pytest.raises(weft.Refused):
        run.answer("valve", approved=True, by="anna")
    bench.world.advance("2h")
    assert bench.times("flow") == 0
    run.answer("valve", approved=True, by="anna")

    run.result()
    assert bench.times("flow") == 1


def test_25_everything_in_the_region_stops() -> None:
    bench = pattern(25, {"expert": after(5 * DAY, "an opinion")})
    run = bench.start()
    bench.world.advance("1d")
    assert went(run) == ["file", "examine"]
    run.answer("withdraw", approved=True, by="c-1")

    run.result()
    assert went(run) == ["file", "examine", "withdraw", "settled", "close"]
    assert bench.times("estimate") == 0
    assert elapsed(run) == DAY


def test_25_a_region_that_is_left_alone_comes_to_its_own_end() -> None:
    bench = pattern(25)
    run = bench.start()

    run.result()
    assert went(run)[-4:] == ["estimate", "opinions", "settled", "close"]


def test_26_all_instances_are_withdrawn_together() -> None:
    bench = pattern(26, {"walk": after(lambda hours: hours * HOUR, same)})
    run = bench.start(places=[1, 2, 50])
    bench.world.advance("3h")
    run.answer("stop", approved=True, by="anna")

    assert run.result() == {"found": [None]}
    assert went(run).count("walk") == 2
    assert bench.times("report") == 1


def test_26_instances_that_are_left_alone_are_all_counted() -> None:
    bench = pattern(26, {"walk": after(lambda hours: hours * HOUR, same)})

    assert bench.run(places=[5, 1]) == {"found": [[5, 1]]}


def test_29_the_first_goes_on_and_the_others_are_stopped() -> None:
    bench = pattern(29, {"near": after(HOUR, 20), "far": after(DAY, 10)})
    run = bench.start()

    assert run.result() == {"price": 20}
    assert went(run) == ["ask_all", "near", "buy"]
    assert elapsed(run) == HOUR


SIGNERS = {"anna": after(3 * HOUR, "anna"), "ben": after(HOUR, "ben"), "carla": after(2 * HOUR, "carla")}


def test_30_enough_go_on_and_the_rest_finishes_for_nobody() -> None:
    bench = pattern(30, SIGNERS)
    run = bench.start()

    assert run.result() == {"by": ["ben", "carla"]}
    assert went(run) == ["draft", "ben", "carla", "signed", "publish", "anna"]


def test_32_enough_go_on_and_the_rest_is_stopped() -> None:
    bench = pattern(32, SIGNERS)
    run = bench.start()

    assert run.result() == {"by": ["ben", "carla"]}
    assert went(run) == ["draft", "ben", "carla", "signed", "publish"]


def test_33_each_way_may_deliver_several_times_and_each_round_takes_one_of_each() -> None:
    wheels = iter(["first wheels", "second wheels"])
    bench = pattern(33, {"frame": lambda given: f"frame of {given}", "wheels": lambda _: next(wheels)})
    run = bench.start()
    bench.world.advance("90m")
    assert (bench.times("frame"), bench.times("assemble")) == (2, 1)

    run.result()
    made = bench.given("assemble")
    assert sorted(part["frame"] for part in made) == ["frame of alloy", "frame of steel"]
    assert [part["wheels"] for part in made] == ["first wheels", "second wheels"]


OFFERS = {"offer": after(lambda hours: hours * HOUR, same)}


def test_34_enough_instances_go_on_and_the_rest_finishes_for_nobody() -> None:
    bench = pattern(34, OFFERS)
    run = bench.start(suppliers=[9, 2, 5, 1])
    bench.world.advance("3h")
    assert bench.times("buy") == 1

    assert run.result() == {"offers": [2, 1]}
    assert went(run).count("offer") == 4


def test_34_too_few_instances_fail_by_name() -> None:
    with pytest.raises(weft.RunFailed, match="enough needs 2 of 1"):
        pattern(34, OFFERS).run(suppliers=[1])


def test_35_enough_instances_go_on_and_the_rest_is_stopped() -> None:
    bench = pattern(35, OFFERS)
    run = bench.start(suppliers=[9, 2, 5, 1])

    assert run.result() == {"offers": [2, 1]}
    assert went(run).count("offer") == 2


@pytest.mark.parametrize(
    ("damage", "injured", "expensive", "paid"),
    [
        (True, False, False, ["garage"]),
        (True, False, True, ["expert"]),
        (False, True, False, ["doctor"]),
        (True, True, False, ["garage", "doctor"]),
        (True, True, True, ["doctor", "expert"]),
        (False, False, False, []),
    ],
)
def test_37_the_merge_knows_what_can_still_come(damage: Any, injured: Any, expensive: Any, paid: list[str]) -> None:
    bench = pattern(37, {"doctor": after(2 * HOUR, "doctor"), "expert": after(HOUR, "expert")})

    bench.run(damage=damage, injured=injured, expensive=expensive)
    assert bench.given("pay") == ([{name: name for name in paid}] if paid else [])


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_38_the_merge_waits_for_a_loop_only_if_it_was_entered(rounds: int) -> None:
    looks = [{"clean": False}] * (rounds - 1) + [{"clean": True}]
    bench = pattern(38, {"inspect": looks, "wash": after(HOUR, "washed")})
    run = bench.start(dirty=rounds > 0)

    run.result()
    assert went(run).count("wash") == rounds
    assert bench.given("store") == [{"weigh": "weigh", **({"inspect": {"clean": True}} if rounds else {})}]


def test_38_a_loop_that_ends_nowhere_is_not_waited_for() -> None:
    bench = pattern(38, {"inspect": {"clean": False}})

    bench.run(dirty=True)
    assert bench.given("store") == [{"weigh": "weigh"}]


@pytest.mark.parametrize("order", [["scan", "weigh", "label"], ["label", "scan", "weigh"]])
def test_40_each_once_and_never_two_at_the_same_time(order: list[str]) -> None:
    gauge = Gauge()
    bench = pattern(40, dict.fromkeys(order, gauge.taking(HOUR)))
    run = bench.start(order=order)

    run.result()
    assert gauge.most == 1
    assert [node for node in went(run) if node in order] == order
    assert bench.times("done") == 1


def test_41_the_threads_become_one() -> None:
    counts = iter([3, 4, 3])
    bench = pattern(41, {"count": lambda _: next(counts)})

    assert sorted(bench.run()["counts"]) == [3, 3, 4]
    assert (bench.times("count"), bench.times("compare")) == (3, 1)


def test_42_one_thread_becomes_many() -> None:
    bench = pattern(42)

    bench.run()
    assert (bench.times("begin"), bench.times("count"), bench.times("note")) == (1, 3, 3)


def test_43_the_end_ends_everything() -> None:
    bench = pattern(43, {"offer": after(HOUR, "sold")})
    run = bench.start()

    run.result()
    assert went(run) == ["offer", "end"]
    assert bench.times("advertise_more") == 0
    assert elapsed(run) == HOUR
