"""What a dropped branch has done is undone when it is dropped, newest first, before the run can complete."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from weft.testing import World

Nodes = dict[str, Any]


class Shop:
    """Books things and takes them back, and keeps a ledger of it."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.ledger: list[str] = []
        self.broken = False
        ledger = self.ledger

        @self.app.step(retries=0)
        async def book(item: str) -> str:
            ledger.append(f"+{item}")
            return item

        @self.app.step(retries=0)
        async def book_slowly(item: str) -> str:
            await asyncio.sleep(600)
            ledger.append(f"+{item}")
            return item

        @self.app.step(retries=0, effect="irreversible")
        async def wire(item: str) -> str:
            await asyncio.sleep(600)
            ledger.append(f"+{item}")
            return item

        @book.undo
        async def unbook(item: str) -> None:
            ledger.append(f"-{item}")

        @book_slowly.undo
        async def unbook_slowly(item: str) -> None:
            ledger.append(f"-{item}")

        @self.app.step(retries=0)
        async def fail() -> None:
            if self.broken:
                raise OSError("no")

    def start(self, nodes: Nodes) -> tuple[World, Any]:
        graph = self.app.graph({"weft": "graph/1", "name": "trip", "nodes": nodes})
        world = World(self.app)
        return world, world.start(graph, {}, id="t-1")

    @property
    def back(self) -> list[str]:
        return [line for line in self.ledger if line[0] == "-"]


def booking(item: str, to: str | None = None, step: str = "book", **more: Any) -> Nodes:
    node: Nodes = {"step": step, "with": {"item": item}, **more}
    return node if to is None else {**node, "next": to}


RACE: Nodes = {
    "begin": {"pass": True, "next": [{"to": ["hotel", "flight"]}]},
    "hotel": booking("hotel", "train"),
    "train": booking("train", "later"),
    "later": {"wait": "1h", "next": "meet"},
    "flight": booking("flight", "soon"),
    "soon": {"wait": "1m", "next": "meet"},
    "meet": {"join": "any", "merge": {"into": "state.got", "how": "append"}},
}


def test_the_losers_of_an_early_join_are_undone_newest_first_and_the_winner_stays() -> None:
    shop = Shop()
    _, run = shop.start(RACE)

    assert run.result() == {"got": ["flight"]}

    assert shop.back == ["-train", "-hotel"]


@pytest.mark.parametrize("late", ["abandon", "merge"])
def test_branches_that_are_left_to_run_are_not_undone(late: str) -> None:
    shop = Shop()
    _, run = shop.start({**RACE, "meet": {**RACE["meet"], "late": late}})

    run.result()

    assert shop.back == []


@pytest.mark.parametrize(("step", "back"), [("book_slowly", ["-bus", "-hotel"]), ("wire", ["-hotel"])])
def test_the_run_waits_for_a_loser_that_cannot_be_interrupted(step: str, back: list[str]) -> None:
    shop = Shop()
    nodes = {**RACE, "hotel": booking("hotel", "bus"), "bus": booking("bus", "later", step)}
    del nodes["train"]
    world, run = shop.start(nodes)
    world.advance("5m")
    assert run.status == "running"
    assert shop.back == []

    assert run.result() == {"got": ["flight"]}

    assert "+bus" in shop.ledger
    assert shop.back == back


def test_a_branch_that_an_early_join_can_do_without_is_undone_when_it_fails() -> None:
    shop = Shop()
    shop.broken = True
    nodes = {**RACE, "train": booking("train", "break"), "break": {"step": "fail", "with": {}, "next": "meet"}}
    del nodes["later"]
    world, run = shop.start(nodes)
    world.advance("10s")
    assert shop.back == ["-train", "-hotel"]

    assert run.result() == {"got": ["flight"]}


CAUGHT: Nodes = {
    "begin": {"pass": True, "next": [{"to": ["hotel", "flight"]}]},
    "hotel": booking("hotel", "meet"),
    "flight": booking("flight", "later"),
    "later": {"wait": "1m", "next": "break"},
    "break": {"step": "fail", "with": {}, "next": "meet"},
    "meet": {"join": "all", "catch": [{"to": "car"}]},
    "car": booking("car"),
}


def test_a_frame_whose_failure_is_taken_is_undone_with_its_arrived_branches() -> None:
    shop = Shop()
    shop.broken = True
    _, run = shop.start({"first": booking("insurance", "begin"), **CAUGHT})

    run.result()

    assert sorted(shop.back) == ["-flight", "-hotel"]
    assert "+car" in shop.ledger


def test_a_branch_takes_what_its_inner_fan_outs_did_with_it() -> None:
    shop = Shop()
    nodes = {
        **RACE,
        "hotel": booking("hotel", "fork"),
        "fork": {"pass": True, "next": [{"to": ["train", "bus"]}]},
        "train": booking("train", "inner"),
        "bus": booking("bus", "inner"),
        "inner": {"join": "all", "next": "later"},
    }
    _, run = shop.start(nodes)

    assert run.result() == {"got": ["flight"]}

    assert sorted(shop.back[:2]) == ["-bus", "-train"]
    assert shop.back[2:] == ["-hotel"]


def test_losers_that_were_undone_do_not_stand_in_the_way_of_a_retry() -> None:
    shop = Shop()
    shop.broken = True
    nodes = {**RACE, "meet": {**RACE["meet"], "next": "break"}, "break": {"step": "fail", "with": {}}}
    nodes["flight"] = {"wait": "1s", "next": "soon"}
    world, run = shop.start(nodes)
    world.advance("2h")
    assert run.status == "failed"
    assert shop.back == ["-train", "-hotel"]
    shop.broken = False

    world.perform(lambda: shop.app.get("t-1").retry())
    world.settle()

    assert run.status == "completed"
    assert shop.back == ["-train", "-hotel"]


def test_the_undo_of_losers_goes_on_after_a_crash() -> None:
    for when in ("before", "after"):
        shop = Shop()
        graph = shop.app.graph({"weft": "graph/1", "name": "trip", "nodes": RACE})
        world = World(shop.app)
        world.crash(at="unbook", when=when)
        run = world.start(graph, {}, id="t-1")

        assert run.result() == {"got": ["flight"]}

        assert list(dict.fromkeys(shop.back)) == ["-train", "-hotel"]


def test_a_branch_that_was_left_to_run_outlives_the_branch_around_it() -> None:
    """``bus`` was abandoned by its own join, so it is not undone with the branch that it began in."""
    shop = Shop()
    nodes = {
        **RACE,
        "hotel": booking("hotel", "fork"),
        "fork": {"pass": True, "next": [{"to": ["train", "bus"]}]},
        "train": booking("train", "moment"),
        "moment": {"wait": "10s", "next": "inner"},
        "bus": booking("bus", "while"),
        "while": {"wait": "2h", "next": "tram"},
        "tram": booking("tram", "inner"),
        "inner": {"join": "any", "late": "abandon", "next": "later"},
    }
    _, run = shop.start(nodes)

    assert run.result() == {"got": ["flight"]}

    assert "+tram" in shop.ledger
    assert shop.back == ["-train", "-hotel"]
