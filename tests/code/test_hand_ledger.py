"""Nothing irreversible is performed twice, whatever people and crashes do to a run, unless a person approves.

A ledger beside the engine notes every time a step is performed. Random people retry, retry from a place, set results
and answer questions, and the process crashes in between.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

import weft
from tests import scale
from tests.code.desk import Desk
from weft.core import events as e
from weft.errors import WeftError

pytestmark = scale.MARKS

CHARGES = ("charge", "charge#2")
PLACES = ("price", "charge", "ship", "charge#2", "mail")


class Till:
    """A workflow with two irreversible steps, whose inputs change and whose steps fail by chance."""

    def __init__(self, draw: random.Random) -> None:
        self.app = weft.App("memory://")
        self.draw = draw
        self.ledger: Counter[tuple[str, int]] = Counter()
        self.keys: dict[str, tuple[str, int]] = {}
        self.approved = 0
        app = self.app

        @app.step(retries=0)
        async def price() -> int:
            return self.perform("price", 0, self.draw.randrange(2))

        @app.step(effect="irreversible")
        async def charge(amount: int) -> int:
            await asyncio.sleep(0.01)
            return self.perform("charge", amount, amount)

        @app.step(retries=0)
        async def ship(amount: int) -> int:
            return self.perform("ship", amount, self.draw.randrange(2))

        @app.step(retries=0)
        async def mail(amount: int) -> int:
            return self.perform("mail", amount, amount)

        @app.workflow
        async def flow() -> int:
            paid = await charge(await price())
            return await mail(await charge(2 + await ship(paid)))

        self.flow = flow

    def perform(self, step: str, given: int, result: int) -> int:
        self.ledger[step, given] += 1
        key = weft.task().key
        assert self.keys.setdefault(key, (step, given)) == (step, given), "a key names two requests"
        if self.draw.random() < 0.3:
            raise OSError(step)
        return result

    async def act(self) -> None:
        """Do something that a person could do now."""
        run, draw = self.app.get("run"), self.draw
        place = draw.choice(PLACES)
        try:
            match draw.randrange(8):
                case 0 | 1:
                    await run.retry()
                case 2:
                    await run.retry(start=place, force=draw.random() < 0.5)
                case 3:
                    await run.set(place, draw.randrange(2), force=draw.random() < 0.3, by="ann")
                case 4:
                    await run.decide(draw.choice(CHARGES), approved=False, by="ann")
                case _:
                    await run.decide(draw.choice(CHARGES), approved=True, by="ann")
                    self.approved += 1
        except WeftError:
            pass  # refused: nothing was changed
        await asyncio.sleep(draw.choice([0, 0.005, 1]))


def play(seed: int) -> Till:
    till = Till(random.Random(seed))
    desk = Desk(till.app)

    async def begin() -> None:
        await till.app.start(till.flow(), id="run")
        await asyncio.sleep(till.draw.choice([0, 0.005, 1]))

    async def people() -> None:
        await asyncio.sleep(0.001)
        for _ in range(till.draw.randrange(1, 6)):
            await till.act()

    desk.play(begin, crash=True)
    for _ in range(4):
        desk.play(people, crash=till.draw.random() < 0.5)
    asks = _approvals(desk.log())
    performed = sum(count for (step, _), count in till.ledger.items() if step == "charge")
    places = len({event.at[-1] if event.at[-1] < 0 else 1 for event in desk.log() if _is_charge(event)})  # type: ignore[operator]
    assert performed <= places + asks, f"seed {seed}: performed {performed} times at {places} places, {asks} approvals"
    return till


def _is_charge(event: Any) -> bool:
    return isinstance(event, e.TaskScheduled) and event.step == "charge"


def _approvals(log: list[e.AnyEvent]) -> int:
    """The questions about irreversible steps that somebody approved."""
    asked = {number for number, event in enumerate(log, 1) if _is_charge(event) and event.again}  # type: ignore[union-attr]
    return sum(isinstance(event, e.AskAnswered) and event.approved and event.ask in asked for event in log)


def test_nothing_irreversible_is_performed_twice_unless_somebody_approves() -> None:
    played = [play(seed) for seed in range(scale.scaled(25, 600))]
    assert sum(till.approved for till in played) > 5
    assert sum(till.ledger["charge", 0] + till.ledger["charge", 1] for till in played) > 20


@pytest.mark.parametrize("seed", [1, 2])
def test_a_play_can_be_repeated(seed: int) -> None:
    assert play(seed).ledger == play(seed).ledger
