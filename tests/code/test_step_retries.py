"""When a step that failed is tried again: how often, how long after, and never before its time."""

import asyncio
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm
from weft.core import events as e


def delays(desk: Desk) -> list[int]:
    """How long after each failure the next attempt was due."""
    return [
        event.retry_at - stored.at
        for event, stored in zip(desk.log(), desk.stored(), strict=True)
        if isinstance(event, e.TaskFailed) and event.retry_at
    ]


def failing(retries: int | weft.Retry) -> tuple[Desk, list[int]]:
    """A desk after a run of one step that always fails, and the attempts it saw."""
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(retries=retries)
    async def broken() -> None:
        attempts.append(weft.task().attempt)
        raise OSError("down")

    @app.workflow
    async def flow() -> None:
        await broken()

    desk = Desk(app)
    desk.fail(flow())
    return desk, attempts


def test_three_retries_are_four_attempts() -> None:
    _, attempts = failing(3)
    assert attempts == [1, 2, 3, 4]


def test_no_retries_are_one_attempt() -> None:
    desk, attempts = failing(0)
    assert attempts == [1]
    assert delays(desk) == []


@pytest.mark.parametrize(
    ("backoff", "full"),
    [("fixed", [1000, 1000, 1000]), ("linear", [1000, 2000, 3000]), ("exponential", [1000, 2000, 4000])],
)
def test_the_wait_between_attempts_follows_the_backoff_less_at_most_a_tenth(backoff: Any, full: list[int]) -> None:
    desk, _ = failing(weft.Retry(4, backoff, "1s", "1m"))

    waited = delays(desk)
    assert all(most * 0.9 <= got <= most for got, most in zip(waited, full, strict=True)), waited


def test_the_wait_is_capped() -> None:
    desk, _ = failing(weft.Retry(6, "exponential", "1s", "3s"))
    assert max(delays(desk)) <= 3000
    assert all(wait > 2700 for wait in delays(desk)[2:])


def test_the_default_backoff_doubles_from_200_ms() -> None:
    desk, _ = failing(3)
    assert all(most * 0.9 <= got <= most for got, most in zip(delays(desk), [200, 400, 800], strict=True))


def test_the_same_history_gives_the_same_waits() -> None:
    assert delays(failing(5)[0]) == delays(failing(5)[0])


def test_an_attempt_is_not_made_before_its_time() -> None:
    app = weft.App("memory://")
    times: list[float] = []

    @app.step(retries=weft.Retry(2, "fixed", "10s"))
    async def slow_to_heal() -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            raise OSError

    @app.workflow
    async def flow() -> None:
        await slow_to_heal()

    Desk(app).run(flow())
    assert 9 <= times[1] - times[0] <= 10.1


def test_the_wait_for_the_next_attempt_survives_a_crash_without_costing_one() -> None:
    app = weft.App("memory://")
    attempts: list[int] = []

    @app.step(retries=weft.Retry(2, "fixed", "1h", "1h"))
    async def flaky() -> str:
        attempts.append(weft.task().attempt)
        if len(attempts) == 1:
            raise OSError
        return "ok"

    @app.workflow
    async def flow() -> str:
        return await flaky()

    async def begin() -> None:
        await app.start(flow(), id="run")
        await calm()

    async def end() -> str:
        return str(await app.get("run").result())

    desk = Desk(app)
    desk.play(begin, crash=True)
    begun = desk.now_ms
    assert desk.play(end) == "ok"
    assert attempts == [1, 2]
    assert desk.now_ms - begun >= 50 * 60_000


@pytest.mark.parametrize("retries", [-1, True, 100_000])
def test_a_senseless_number_of_retries_is_refused_when_it_is_written(retries: Any) -> None:
    app = weft.App("memory://")
    with pytest.raises(weft.BadValue):
        app.step(retries=retries)(lambda: None)
