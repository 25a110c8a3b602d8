"""The host's duties: idle runs leave memory, oldest first; busy ones stay; what is due, or has mail, comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

import weft
from tests.code.desk import CALM, Desk
from tests.code.timeless import calm
from weft.core import commands as c
from weft.ports.store import Mail
from weft.runtime.settings import Settings


def waiting_app() -> tuple[weft.App, Any]:
    app = weft.App("memory://")

    @app.workflow
    async def wait(ctx: weft.Context, n: int) -> int:
        return n + await ctx.receive("go", int)

    return app, wait


def resident(desk: Desk) -> list[str]:
    return sorted(actor.id for actor in desk.host.runs.actors.values())


def settings(**changes: Any) -> Settings:
    return msgspec.structs.replace(CALM, **changes)


def test_a_run_with_nothing_to_do_leaves_memory_after_a_while_and_not_before() -> None:
    app, wait = waiting_app()

    async def scene() -> None:
        await app.start(wait(1), id="run")
        await asyncio.sleep(20)
        assert resident(desk) == ["run"]
        await asyncio.sleep(20)
        assert resident(desk) == []
        run = desk.store.content.runs[desk.store.content.ids["run"]]  # type: ignore[index]
        assert run.owner is None

    desk = Desk(app)
    desk.play(scene)


def test_above_the_limit_those_idle_longest_leave_at_once() -> None:
    app, wait = waiting_app()

    async def scene() -> None:
        for n in range(4):
            await app.start(wait(n), id=f"r{n}")
            await asyncio.sleep(1)
        await app.get("r0").send("other", 1)
        for n in range(4, 6):
            await app.start(wait(n), id=f"r{n}")
            await asyncio.sleep(1)
        await asyncio.sleep(6)
        assert len(resident(desk)) <= 4
        assert "r1" not in resident(desk)
        assert "r5" in resident(desk)

    desk = Desk(app, settings=settings(resident_max=4, poll_seconds=1.0))
    desk.play(scene)


def test_a_run_at_rest_comes_back_when_it_is_due_also_when_many_are_due_at_once() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def nap(ctx: weft.Context, n: int) -> int:
        await ctx.sleep("10m")
        return n

    async def scene() -> list[int]:
        runs = [await app.start(nap(n)) for n in range(30)]
        await asyncio.sleep(60)
        assert resident(desk) == []
        return [await run.result() for run in runs]

    desk = Desk(app, settings=settings(resident_max=5))
    assert desk.play(scene) == list(range(30))


def test_a_run_at_rest_comes_back_for_mail_of_another_process() -> None:
    app, wait = waiting_app()

    async def scene() -> Any:
        run = await app.start(wait(1), id="run")
        await asyncio.sleep(60)
        assert resident(desk) == []
        uid = desk.store.content.ids["run"]  # type: ignore[index]
        body = c.encode(c.DeliverMessage("m1", "go", msgspec.Raw(b"41")))
        await desk.store.log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == 42


def test_mail_of_another_process_reaches_a_run_in_memory() -> None:
    app, wait = waiting_app()

    async def scene() -> Any:
        run = await app.start(wait(1), id="run")
        await calm()
        uid = desk.store.content.ids["run"]  # type: ignore[index]
        body = c.encode(c.DeliverMessage("m1", "go", msgspec.Raw(b"41")))
        await desk.store.log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == 42


def test_a_run_is_not_released_while_mail_waits_for_it() -> None:
    """The sender was accepted, so the run must see it: the release is refused and the mail taken in."""
    app, wait = waiting_app()

    async def scene() -> Any:
        run = await app.start(wait(1), id="run")
        await calm()
        uid = desk.store.content.ids["run"]  # type: ignore[index]
        body = c.encode(c.DeliverMessage("m1", "go", msgspec.Raw(b"41")))
        await desk.store.log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        await desk.host.releaser.release(list(desk.host.runs.actors.values()))
        await calm()
        return await run.result()

    desk = Desk(app, settings=settings(poll_seconds=1000.0))
    assert desk.play(scene) == 42


def test_a_run_with_a_step_under_way_is_not_released() -> None:
    app = weft.App("memory://")
    begun: list[int] = []

    @app.step
    async def slow() -> str:
        begun.append(1)
        await asyncio.sleep(500)
        return "done"

    @app.workflow
    async def flow() -> str:
        return await slow()

    async def scene() -> str:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(200)
        await desk.host.releaser.release(list(desk.host.runs.actors.values()))
        assert resident(desk) == ["run"]
        return await run.result()

    desk = Desk(app, settings=settings(resident_max=1))
    assert desk.play(scene) == "done"
    assert begun == [1]


def test_a_host_beats_while_it_lives() -> None:
    app, _ = waiting_app()

    async def scene() -> Any:
        await asyncio.sleep(100)
        return desk.store.content.hosts[desk.host.id].beats

    desk = Desk(app)
    assert desk.play(scene) >= 100 / CALM.lease_seconds


def test_a_shutdown_leaves_every_run_at_rest_with_the_time_it_wants_to_be_woken_at() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def nap(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    async def scene() -> None:
        await app.start(nap(), id="run")

    desk = Desk(app)
    desk.play(scene)
    run = desk.store.content.runs[desk.store.content.ids["run"]]  # type: ignore[index]
    assert run.owner is None
    assert run.wake_at is not None
    assert desk.store.content.hosts == {}


def test_a_run_released_with_a_long_tail_leaves_a_snapshot_and_comes_back_from_it() -> None:
    app = weft.App("memory://")

    @app.step
    async def work(text: str) -> int:
        return len(text)

    @app.workflow
    async def flow(ctx: weft.Context) -> int:
        total = sum([await work("x" * 500) for _ in range(20)])
        return total + await ctx.receive("go", int)

    async def scene() -> Any:
        run = await app.start(flow(), id="run")
        await asyncio.sleep(60)
        (stored,) = desk.store.content.runs.values()
        assert stored.snapshots
        await run.send("go", 1)
        return await run.result()

    desk = Desk(app)
    assert desk.play(scene) == 10_001
