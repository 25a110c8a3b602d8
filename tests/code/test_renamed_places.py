"""Irreversible work that a retry goes back behind, while the code no longer has it at the same place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk


class Till:
    """An app with a workflow whose middle is one of several forms, as if it were deployed anew."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.done: list[tuple[str, int]] = []
        self.broken = {"mail"}
        self.form = "charge"
        self.price = self.app.step(name="price")(self._price)
        self.charge = self.app.step(name="charge", effect="irreversible")(self._charge)
        self.wire = self.app.step(name="wire", effect="irreversible")(self._wire)
        self.mail = self.app.step(name="mail", retries=0)(self._mail)
        self.flow = self.app.workflow(name="flow")(self._flow)

    async def _price(self) -> int:
        return 1

    async def _charge(self, cents: int) -> str:
        return self._perform("charge", cents)

    async def _wire(self, cents: int) -> str:
        return self._perform("wire", cents)

    async def _mail(self) -> str:
        return self._perform("mail", 0)

    def _perform(self, step: str, cents: int) -> str:
        self.done.append((step, cents))
        if step in self.broken:
            raise weft.Critical(step)
        return f"{step} {cents}"

    async def _flow(self, ctx: weft.Context) -> Any:
        cents = await self.price()
        found: Any = None
        match self.form:
            case "charge":
                found = await self.charge(cents)
            case "renamed":
                found = await self.charge.options(name="pay")(cents)
            case "joined":
                (found,) = await ctx.join("both", self.charge(cents))
            case "other step":
                found = await self.wire(cents)
            case "other input":
                found = await self.charge.options(name="pay")(cents + 1)
            case "one more":
                found = [await self.charge(cents), await self.wire(cents)]
        await self.mail()
        return found


def gone_back(form: str, *broken: str) -> tuple[Till, Desk]:
    """A run that has charged and failed, and is hosted in another form now."""
    till = Till()
    till.broken |= set(broken)
    desk = Desk(till.app)
    desk.fail(till.flow())
    till.form = form
    till.broken, till.done = set(), []
    return till, desk


def finish(till: Till, desk: Desk, *, asked: str = "") -> Any:
    async def scene() -> Any:
        run = till.app.get("run")
        await run.retry(start="price")
        if asked:
            await asyncio.sleep(60)
            assert till.done == []
            await run.decide(asked, approved=True)
        return await run.result()

    return desk.play(scene)


@pytest.mark.parametrize("form", ["charge", "renamed", "joined"])
def test_equal_work_at_another_place_keeps_its_result(form: str) -> None:
    till, desk = gone_back(form)
    assert finish(till, desk) == "charge 1"
    assert till.done == [("mail", 0)]


@pytest.mark.parametrize(
    ("form", "place", "done"), [("other step", "wire", ("wire", 1)), ("other input", "pay", ("charge", 2))]
)
def test_other_work_at_another_place_waits_for_a_person(form: str, place: str, done: tuple[str, int]) -> None:
    till, desk = gone_back(form)
    finish(till, desk, asked=place)
    assert till.done == [done, ("mail", 0)]


def test_work_without_a_result_waits_for_a_person_at_another_place_too() -> None:
    till, desk = gone_back("renamed", "charge")
    finish(till, desk, asked="pay")
    assert till.done == [("charge", 1), ("mail", 0)]


def test_new_work_behind_a_result_that_was_kept_needs_nobody() -> None:
    till, desk = gone_back("one more")
    assert finish(till, desk) == ["charge 1", "wire 1"]
    assert till.done == [("wire", 1), ("mail", 0)]
