"""One world per seed: every program, forked at every event in three ways, and what must hold of each fork."""

from __future__ import annotations

from typing import Any

import weft
from tests.forks.programs import STARTS, build, play, start
from weft.testing import World

EDITS: dict[str, Any] = {"delivery": {"given": {"order": 4}}}
INPUT: dict[str, Any] = {"input": {"n": 2}}
REFUSED = ("fork.bad_edit", "fork.undone", "patch.fact_known", "run.finished")
"""Facts that were read never change, what was undone is not shared, and a run whose end is decided is over."""


def forks_of(seed: int, stride: int = 1) -> tuple[int, list[str]]:
    """Return how many forks were made, and what was wrong with them."""
    count, wrong = 0, []
    for name in STARTS:
        app, ledger = build()
        world = World(app, seed)
        run = start(app, world, name, "original")
        end = play(run)
        paid = dict(ledger.paid)
        for point in range(1 + seed % stride, max(event.seq for event in run.events) + 1, stride):
            ways: list[dict[str, Any]] = [{}, {"effects": "reuse"}, {"effects": "perform", **EDITS.get(name, INPUT)}]
            for way in ways:
                try:
                    ended = play(run.fork(at=point, **way))
                except weft.Refused as refused:
                    if refused.code not in REFUSED:
                        wrong.append(f"seed {seed}, {name} at {point} with {way}: {refused.code}")
                    continue
                count += 1
                is_edited = len(way) > 1
                if ended != end and not is_edited:
                    wrong.append(f"seed {seed}, {name} at {point} with {way}: {ended}, not {end}")
                if ended[0] not in ("completed", "failed"):
                    wrong.append(f"seed {seed}, {name} at {point} with {way}: {ended}")
            if any(ledger.paid[amount] != times for amount, times in paid.items()):
                wrong.append(f"seed {seed}, {name} at {point}: paid twice")
        world.close()
    return count, wrong
