"""Run one scenario repeatedly, with a crash at a different write each time."""

from __future__ import annotations

import logging
from collections.abc import Callable

from weft.authoring.app import App
from weft.testing.crashes import When
from weft.testing.world import World

Scenario = Callable[[World], None]


def crash_everywhere(app: App, scenario: Scenario, *, seeds: int = 1) -> int:
    """Run ``scenario`` without a crash, and then with a crash before and after each write.

    Returns the number of crashes. If the scenario fails, the seed and the write are printed, and its error is raised.
    """
    total = 0
    for seed in range(seeds):
        writes = _play(app, scenario, seed, None)
        for index, write in enumerate(writes):
            for when in ("before", "after"):
                try:
                    _play(app, scenario, seed, (index, when))
                except BaseException:
                    print(f"seed {seed}: fails with a crash {when} write {index + 1} of {len(writes)} ({write})")  # noqa: T201
                    raise
                total += 1
    return total


def _play(app: App, scenario: Scenario, seed: int, crash: tuple[int, When] | None) -> list[str]:
    """Run the scenario once. Returns the writes to the store."""
    world = World(app, seed)
    world.crash_at_write(crash)
    level = logging.getLogger("weft").level
    logging.getLogger("weft").setLevel(logging.CRITICAL)  # crashes are expected here
    try:
        scenario(world)
        return world.writes
    finally:
        logging.getLogger("weft").setLevel(level)
        world.close()
