"""``retry --from`` a loop, or a place inside one, repeats the loop from its first round."""

from typing import Any

import pytest

import weft
from tests.code.desk import Desk


def build(fail_in: int, keep: int) -> tuple[weft.App, list[str], list[bool]]:
    app = weft.App("memory://")
    acts: list[str] = []
    broken = [True]

    @app.step(retries=0)
    async def work(n: int) -> None:
        if broken[0] and n == fail_in:
            raise ValueError("broken")
        acts.append(f"work{n}")

    @app.step(retries=0)
    async def last() -> None:
        if broken[0]:
            raise ValueError("broken")
        acts.append("last")

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        async def turn(n: int) -> weft.Turn[int, None]:
            await work(n)
            return weft.done(None) if n == 2 else weft.again(n + 1)

        await ctx.loop("rounds", turn, state=0, keep=keep)
        await last()

    return app, acts, broken


@pytest.mark.parametrize("keep", [0, 5])
@pytest.mark.parametrize("fail_in", [0, 1, 9])
@pytest.mark.parametrize("place", ["rounds", "rounds/~0/work"])
def test_a_loop_is_repeated_from_its_first_round(place: str, fail_in: int, keep: int) -> None:
    app, acts, broken = build(fail_in, keep)
    desk = Desk(app)
    desk.fail(app.registered.workflow_named("flow")())
    broken[0] = False
    acts.clear()

    async def again() -> Any:
        await app.get("run").retry(start=place)
        await app.get("run").result()

    desk.play(again)
    assert acts == ["work0", "work1", "work2", "last"]


@pytest.mark.parametrize("place", ["nothing", "rounds/~7/work", "rounds/~x/work", "last/~0/work"])
def test_a_place_that_was_never_there_is_refused(place: str) -> None:
    app, _, _ = build(1, 0)
    desk = Desk(app)
    desk.fail(app.registered.workflow_named("flow")())

    async def again() -> None:
        with pytest.raises(weft.NotFound):
            await app.get("run").retry(start=place)

    desk.play(again)
