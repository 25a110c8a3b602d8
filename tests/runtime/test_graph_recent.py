"""Large inputs are opened once, however many tokens look into them, and not kept for ever."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

import weft
from tests.code.desk import Desk
from weft.core.run.composites import open_raw
from weft.runtime.values import OPENED_BYTES_MIN, OpenedValues


class Reading:
    """Opens values and counts how often."""

    def __init__(self, bytes_max: int) -> None:
        self.recent = OpenedValues(bytes_max)
        self.times = 0

    def __call__(self, raw: Raw) -> Any:
        def read() -> Any:
            self.times += 1
            return open_raw(raw, lambda _: None)

        return self.recent.recall(raw, read)


def text(letter: str, size: int = 2 * OPENED_BYTES_MIN) -> Raw:
    return Raw(f'"{letter * (size - 2)}"'.encode())


def test_a_large_value_is_read_once() -> None:
    reading, large = Reading(10 * OPENED_BYTES_MIN), text("a")

    assert [reading(large)[0] for _ in range(5)] == ["a"] * 5
    assert reading.times == 1


def test_a_small_value_is_read_each_time() -> None:
    reading, small = Reading(10 * OPENED_BYTES_MIN), text("a", OPENED_BYTES_MIN - 1)

    assert [reading(small)[0] for _ in range(5)] == ["a"] * 5
    assert reading.times == 5


def test_what_was_not_asked_for_longest_goes_first() -> None:
    reading = Reading(4 * OPENED_BYTES_MIN)
    first, second, third = text("a"), text("b"), text("c")
    for value in (first, second, first, third):
        reading(value)
    assert reading.times == 3

    assert [reading(first)[0], reading(third)[0]] == ["a", "c"]
    assert reading.times == 3
    assert reading(second)[0] == "b"
    assert reading.times == 4


def test_values_at_one_address_after_another_are_never_taken_for_each_other() -> None:
    reading = Reading(4 * OPENED_BYTES_MIN)

    assert [reading(text(chr(97 + number % 26)))[0] for number in range(200)] == [
        chr(97 + number % 26) for number in range(200)
    ]


def test_every_branch_sees_the_input_of_its_run() -> None:
    app = weft.App("memory://")

    @app.step
    async def add(n: int, more: int) -> int:
        return n + more

    nodes = {
        "list": {"pass": True, "next": [{"to": "one", "for_each": "${input.items}", "as": "it"}]},
        "one": {"step": "add", "with": {"n": "${it}", "more": "${input.more}"}, "next": "all"},
        "all": {"join": "all", "pass": True, "merge": {"how": "append", "into": "state.all"}},
    }
    graph = app.graph({"weft": "graph/1", "name": "spread", "nodes": nodes, "output": {"all": "${state.all}"}})
    desk = Desk(app)

    async def scene() -> list[dict[str, Any]]:
        items = list(range(700))
        runs = [await app.start(graph, {"items": items, "more": more}) for more in range(3)]
        return [await run.result() for run in runs]

    assert desk.play(scene) == [{"all": [n + more for n in range(700)]} for more in range(3)]
