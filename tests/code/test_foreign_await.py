"""Awaiting anything but Weft stops the run for a person, with the line and what to write instead; nothing is undone."""

import asyncio
import concurrent.futures
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


async def _timeout() -> None:
    async with asyncio.timeout(1):
        await asyncio.Event().wait()


async def _wait_for() -> None:
    inner = asyncio.Event().wait()
    try:
        await asyncio.wait_for(inner, 1)
    finally:
        inner.close()


async def _wait_with_timeout() -> None:
    await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=1)


async def _socket() -> None:
    with socket.socket() as mine:
        mine.setblocking(False)
        await asyncio.get_running_loop().sock_connect(mine, ("127.0.0.1", 9))


async def _thread_future() -> None:
    ended: concurrent.futures.Future[int] = concurrent.futures.Future()
    ended.set_result(1)
    await asyncio.wrap_future(ended)


async def _own_future() -> None:
    await asyncio.get_running_loop().create_future()


async def _event() -> None:
    await asyncio.Event().wait()


FOREIGN: dict[str, Callable[[], Awaitable[Any]]] = {
    "sleep": lambda: asyncio.sleep(1),
    "timeout": _timeout,
    "wait_for": _wait_for,
    "wait(timeout=)": _wait_with_timeout,
    "to_thread": lambda: asyncio.to_thread(int),
    "open_connection": lambda: asyncio.open_connection("127.0.0.1", 9),
    "subprocess": lambda: asyncio.create_subprocess_exec("true"),
    "socket": _socket,
    "a thread's future": _thread_future,
    "a future that nobody resolves": _own_future,
    "an event that nobody sets": _event,
}


def held_by(body: Callable[[], Awaitable[Any]]) -> tuple[Desk, Any]:
    app = weft.App("memory://")
    undone: list[int] = []

    @app.step
    async def book() -> None: ...

    @book.undo
    async def unbook() -> None:
        undone.append(1)

    @app.workflow
    async def flow() -> None:
        await book()
        await body()

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        return await run.status()

    desk = Desk(app)
    assert desk.play(scene) == "held"
    assert undone == []
    return desk, desk.state().held


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_a_foreign_await_holds_the_run_with_the_line_and_a_hint(name: str) -> None:
    desk, held = held_by(FOREIGN[name])
    assert held.code == "code.foreign_await"
    assert "test_foreign_await.py:" in held.message
    assert desk.kinds()[-1] == "run_held"


def test_a_future_of_another_loop_holds_the_run() -> None:
    app = weft.App("memory://")
    outside: list[asyncio.Future[None]] = []

    @app.workflow
    async def flow() -> None:
        await outside[0]

    async def scene() -> Any:
        outside.append(asyncio.get_running_loop().create_future())
        run = await app.start(flow(), id="run")
        await calm()
        return await run.status()

    desk = Desk(app)
    assert desk.play(scene) == "held"
    held = desk.state().held
    assert held is not None
    assert held.code == "code.foreign_await"
    assert "test_foreign_await.py:" in held.message


def test_a_run_that_was_held_goes_on_with_better_code() -> None:
    def build(*, better: bool) -> weft.App:
        app = weft.App("memory://")

        @app.step
        async def book() -> str:
            booked.append(1)
            return "booked"

        @app.workflow
        async def flow(ctx: weft.Context) -> str:
            found = await book()
            await (ctx.sleep(1) if better else asyncio.sleep(1))
            return found

        return app

    async def begin() -> None:
        await first.start("flow", {}, id="run")
        await calm()

    async def end() -> Any:
        run = second.get("run")
        assert await run.status() == "held"
        await run.resume()
        return await run.result()

    booked: list[int] = []
    first, second = build(better=False), build(better=True)
    desk = Desk(first)
    desk.play(begin)
    assert desk.play(end, app=second) == "booked"
    assert booked == [1]


def test_resuming_without_better_code_holds_it_again() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> None:
        await asyncio.sleep(1)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        await run.resume()
        await calm()
        return await run.status()

    desk = Desk(app)
    assert desk.play(scene) == "held"
    assert desk.kinds() == ["run_started", "run_held", "run_resumed", "run_held"]


def test_a_foreign_await_beside_open_work_is_held_when_the_work_is_done() -> None:
    app = weft.App("memory://")

    @app.step
    async def work() -> None:
        await asyncio.sleep(5)

    @app.workflow
    async def flow() -> None:
        await asyncio.gather(work(), asyncio.Event().wait())

    async def scene() -> list[str]:
        run = await app.start(flow(), id="run")
        await calm()
        before = await run.status()
        await asyncio.sleep(10)
        return [before, await run.status()]

    assert Desk(app).play(scene) == ["running", "held"]


def test_other_runs_are_not_disturbed() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def bad() -> None:
        await asyncio.sleep(1)

    @app.workflow
    async def good(ctx: weft.Context) -> str:
        await ctx.sleep("1m")
        return "fine"

    async def scene() -> Any:
        first, _, last = await app.start(good()), await app.start(bad()), await app.start(good())
        assert await first.result() == "fine"
        return await last.result()

    assert Desk(app).play(scene) == "fine"


def test_explain_says_why_it_stands_still() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow() -> None:
        await asyncio.sleep(1)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await calm()
        return str(await run.explain())

    text = Desk(app).play(scene)
    assert "held" in text
    assert "ctx.sleep" in text
