"""A run writes the same log, byte for byte, whether its plain steps take the short path or the tables decide them."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

import weft
from tests.code.corpus import CORPUS, Shop, build
from tests.code.desk import CALM, Desk
from weft.core import events as e

HELPED = ("receiving", "answering", "refusing", "asking", "escalating", "joining", "gathering", "cleaning")
"""They wait for somebody outside."""
ALONE = sorted(set(CORPUS) - set(HELPED))
SLOW = msgspec.structs.replace(CALM, lease_seconds=3600.0, scan_seconds=600.0, poll_seconds=600.0)
"""A host that looks around rarely: one of them sleeps for a day."""
RUNS = 12


def logs(body: str, *, short_path: bool, runs: int = 1) -> dict[str, list[tuple[int, int, bytes]]]:
    """Play a workflow of the corpus to its end; what the store has then of every run."""
    app = build(CORPUS[body])
    desk = Desk(app, settings=msgspec.structs.replace(SLOW, short_path=short_path))

    async def scene() -> None:
        handles = [await app.start("flow", id=f"run-{n}") for n in range(runs)]
        for handle in handles:
            with contextlib.suppress(weft.RunFailed):
                await handle.result()

    desk.play(scene)
    return {run.id: [(one.seq, one.at, one.body) for one in run.events] for run in desk.store.content.runs.values()}


@pytest.mark.parametrize("body", ALONE)
def test_both_paths_write_the_same_log(body: str) -> None:
    assert logs(body, short_path=True) == logs(body, short_path=False)


@pytest.mark.parametrize("body", ["sequence", "trying", "mapping", "looping", "children"])
def test_both_paths_write_the_same_logs_when_runs_share_a_host(body: str) -> None:
    short, long = (logs(body, short_path=path, runs=RUNS) for path in (True, False))
    assert {run: [body for *_, body in events] for run, events in short.items()} == {
        run: [body for *_, body in events] for run, events in long.items()
    }


def test_a_step_that_waits_takes_the_same_path_to_the_same_log() -> None:
    async def slowly(ctx: weft.Context, shop: Shop) -> int:
        async def later(n: int) -> int:
            await asyncio.sleep(n)
            return n

        return await ctx.step("wait", lambda: later(3)) + await shop.work(1)

    CORPUS["slowly"] = slowly
    try:
        short, long = (logs("slowly", short_path=path) for path in (True, False))
    finally:
        del CORPUS["slowly"]
    assert short == long
    kinds = [type(e.decode(body)) for _, _, body in short["run-0"]]
    assert kinds.count(e.TaskSucceeded) == 2
