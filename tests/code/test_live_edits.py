"""Recorded runs against edited code: no edit that stops a run in reality is called ``fits`` by ``check --live``.

200 runs, each killed at a moment of its own, are checked against 30 edits of their code. Then a host with the edited
code loads each of them, which is the truth.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
import textwrap
from collections import Counter
from typing import Any, NamedTuple

import pytest

import weft
from tests import scale
from tests.code.desk import Desk
from tests.code.test_replay import replayed
from tests.code.timeless import calm

pytestmark = scale.MARKS

STEPS = ("look", "charge", "check", "ship", "fresh")
HARMLESS = {"fits"}
LINES = [
    "first = await look(1)",
    "paid = await charge(2)",
    'both = await ctx.join("both", {"x": check(3), "y": ship(4)})',
    'pages = await ctx.map("pages", charge, [5, 6, 7])',
    'said = await ctx.receive("go", timeout="1h", default=None)',
    "again = await look(8)",
    'await ctx.sleep("1h", name="rest")',
    'fast = await ctx.race("fast", {"p": look(9), "q": check(10)})',
    "when = await ctx.now()",
    "last = await ship(11)",
    'end = await ctx.receive("end")',
]
SOURCE = "async def flow(ctx):\n{body}\n    return 0\n"


class Edit(NamedTuple):
    """A change of the code: a name for people, and the lines that it leaves."""

    name: str
    lines: list[str]


def edits() -> list[Edit]:
    """Return 30 edits: each line removed, a step inserted before each, and what each line asks for changed."""
    found = [Edit(f"remove {n}", LINES[:n] + LINES[n + 1 :]) for n in range(len(LINES))]
    found += [Edit(f"insert before {n}", [*LINES[:n], "await fresh(0)", *LINES[n:]]) for n in range(0, len(LINES), 2)]
    for old, new in (
        ("look(1)", "look(21)"),
        ("charge(2)", "check(2)"),
        ('"both", {"x"', '"pair", {"x"'),
        ('{"x": check(3), ', '{"z": check(3), '),
        ("[5, 6, 7]", "[5, 6]"),
        ("[5, 6, 7]", "[5, 6, 7, 12]"),
        ("[5, 6, 7]", "[7, 6, 5]"),
        ('receive("go", timeout="1h"', 'receive("start", timeout="1h"'),
        ("await look(8)", "await asyncio.gather(look(8), check(8))"),
        ('sleep("1h", name="rest")', 'receive("rest", timeout="1h", default=None)'),
        ('race("fast"', 'race("quick"'),
        ("await ship(11)", "1 // 0"),
    ):
        changed = [line.replace(old, new) for line in LINES]
        assert changed != LINES
        found.append(Edit(f"{old} becomes {new}", changed))
    swapped = [LINES[1], LINES[0], *LINES[2:]]
    return [*found, Edit("swap two steps", swapped)]


EDITS = edits()


def build(lines: list[str]) -> Any:
    def program(app: weft.App, acts: list[str]) -> None:
        names: dict[str, Any] = {"weft": weft, "asyncio": asyncio}
        for number, name in enumerate(STEPS):
            names[name] = app.step(name=name)(slow_step(number))
        body = textwrap.indent("\n".join(lines), "    ")
        exec(SOURCE.format(body=body).replace("flow(ctx)", "flow(ctx: weft.Context)"), names)
        app.workflow(names["flow"])

    return program


def slow_step(number: int) -> Any:
    async def act(n: int = 0) -> int:
        await asyncio.sleep(60 * (number + 1) + n)
        return n

    return act


def recorded(seed: int) -> Desk:
    """Return the store of a run that was killed at a moment, with or without the message it waits for."""
    draw = random.Random(seed)
    app = weft.App("memory://")
    build(LINES)(app, [])
    desk = Desk(app)

    async def begin() -> None:
        run = await app.start("flow", {}, id="run")
        await asyncio.sleep(draw.uniform(0, 1500))
        if draw.random() < 0.6:
            await run.send("go")
        await asyncio.sleep(draw.choice((0, draw.uniform(0, 9000))))

    desk.play(begin, crash=True)
    return desk


def in_reality(desk: Desk, lines: list[str]) -> str:
    """Return the status of the run after a host with this code has loaded it."""
    app = weft.App("memory://")
    build(lines)(app, [])

    async def go_on() -> str:
        with contextlib.suppress(weft.RunFinished):  # the edited code may end at once
            await app.get("run").send("unexpected")  # a run at rest is loaded only when there is a reason
        await calm()
        return await app.get("run").status()

    content = desk.store.content
    desk.store.content = copy.deepcopy(content)
    try:
        return desk.play(go_on, app=app)
    finally:
        desk.store.content = content


def test_there_are_as_many_edits_as_promised() -> None:
    assert len(EDITS) == 30
    assert len({tuple(edit.lines) for edit in EDITS}) == 30


@pytest.mark.parametrize("seed", scale.first(6, range(200)))
def test_no_edit_that_stops_a_run_is_called_fitting(seed: int) -> None:
    desk = recorded(seed)
    assert replayed(desk, build(LINES)).verdict == "fits"
    seen: Counter[str] = Counter()
    for edit in EDITS if scale.IS_PROOF else EDITS[seed % 5 :: 5]:
        found = replayed(desk, build(edit.lines))
        status = in_reality(desk, edit.lines)
        stops = status in ("held", "failed")
        assert not (stops and found.verdict in HARMLESS), (edit.name, status, found)
        assert stops or found.verdict in HARMLESS, (edit.name, status, found)
        seen[found.verdict] += 1
    assert sum(seen.values()) >= 6
