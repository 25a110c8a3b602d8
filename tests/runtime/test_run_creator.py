"""Starts that nobody here begins yet share transactions, and each hears of its own end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from weft.core.ids import Millis, RunId, RunUid
from weft.errors import Unavailable
from weft.ports.new_run import NewRun
from weft.ports.store import Outcome
from weft.runtime.commit import RunCreator


class Slow:
    """A log whose transactions take a turn of the loop. ``bad`` cannot be written; ``down``: nothing can."""

    def __init__(self, *, bad: str = "", down: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.made: set[str] = set()
        self._bad = bad
        self._down = down

    async def create(self, runs: Sequence[NewRun]) -> Sequence[Outcome]:
        self.batches.append([new.id for new in runs])
        await asyncio.sleep(0)
        if self._down and len(self.batches) > 1:
            raise Unavailable("down")
        if any(new.id == self._bad for new in runs):
            raise ValueError("bad")
        outcomes = []
        for new in runs:
            outcomes.append(Outcome.ID_TAKEN if new.id in self.made else Outcome.ACCEPTED)
            self.made.add(new.id)
        return outcomes


def create_all(log: Slow, ids: Sequence[str]) -> list[Any]:
    async def main() -> list[Any]:
        creator = RunCreator(log)  # type: ignore[arg-type]
        creating = [creator.create(new(name, n)) for n, name in enumerate(ids)]
        return await asyncio.gather(*creating, return_exceptions=True)

    return asyncio.run(main())


def new(id: str, n: int) -> NewRun:
    return NewRun(
        uid=RunUid(f"u{n}"), id=RunId(id), workflow="w", version="1", style="code", created_at=Millis(1), start=b"{}"
    )


def test_one_alone_is_made_at_once_and_those_who_come_meanwhile_share_the_next() -> None:
    log = Slow()

    assert create_all(log, ["a", "b", "c", "d"]) == [Outcome.ACCEPTED] * 4
    assert log.batches == [["a"], ["b", "c", "d"]]


def test_each_hears_whether_its_own_id_was_taken() -> None:
    assert create_all(Slow(), ["a", "b", "a", "c", "b"]) == [
        Outcome.ACCEPTED,
        Outcome.ACCEPTED,
        Outcome.ID_TAKEN,
        Outcome.ACCEPTED,
        Outcome.ID_TAKEN,
    ]


def test_one_that_cannot_be_written_fails_alone() -> None:
    log = Slow(bad="c")

    found = create_all(log, ["a", "b", "c", "d"])

    assert [type(one) for one in found] == [Outcome, Outcome, ValueError, Outcome]
    assert log.made == {"a", "b", "d"}


def test_a_store_that_does_not_answer_leaves_all_of_a_batch_unknown() -> None:
    found = create_all(Slow(down=True), ["a", "b", "c"])

    assert [type(one) for one in found] == [Outcome, Unavailable, Unavailable]


def test_after_a_failure_the_next_is_made() -> None:
    async def main() -> None:
        log = Slow(bad="a")
        creator = RunCreator(log)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="bad"):
            await creator.create(new("a", 1))
        assert await creator.create(new("b", 2)) is Outcome.ACCEPTED

    asyncio.run(main())
