"""While an engine is hosted, collections are rarer than Python's default, and none stops the loop for long."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from weft.runtime.gc_thresholds import raise_gc_thresholds

WITH_GENERATIONS = (700, 10, 10)
INCREMENTAL = (2000, 10, 0)
VISITED_MAX = 20_000
"""A collection of so many objects takes a few milliseconds."""


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.skipif(gc.get_threshold()[2] == 0, reason="this collector has no middle generation")
def test_no_collection_of_new_objects_visits_many_of_them() -> None:
    visited: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 1:
            visited.append(len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))

    gc.set_threshold(*WITH_GENERATIONS)
    raise_gc_thresholds()
    gc.callbacks.append(note)
    try:
        kept: list[Any] = [[number] for number in range(200_000)]
    finally:
        gc.callbacks.remove(note)

    assert len(kept) == 200_000
    assert visited
    assert max(visited) <= VISITED_MAX


@pytest.mark.parametrize("defaults", [WITH_GENERATIONS, INCREMENTAL])
def test_thresholds_are_raised_until_the_engine_is_gone(defaults: tuple[int, int, int]) -> None:
    gc.set_threshold(*defaults)

    restore = raise_gc_thresholds()
    raised = gc.get_threshold()
    restore()

    assert raised[0] > defaults[0]
    assert gc.get_threshold() == defaults


def test_a_process_keeps_thresholds_of_its_own() -> None:
    gc.set_threshold(123, 4, 5)

    raise_gc_thresholds()()

    assert gc.get_threshold() == (123, 4, 5)
