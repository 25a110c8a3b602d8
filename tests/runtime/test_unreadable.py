"""Commands to a run that cannot be read are refused with a typed error; force ends it, and mended it goes on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.damage import KINDS, damage, mend

Verb = Callable[[weft.Handle[Any]], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "send": lambda run: run.send("go", 5),
    "request": lambda run: run.request("go", 5, timeout="1m"),
    "cancel": lambda run: run.cancel("enough"),
    "pause": lambda run: run.pause(),
    "resume": lambda run: run.resume(),
    "retry": lambda run: run.retry(),
    "decide": lambda run: run.decide("Go?", approved=True),
}


def app_at(path: Path) -> weft.App:
    app = weft.App(f"sqlite:///{path}/weft.db")

    @app.workflow
    async def patient(ctx: weft.Context) -> int:
        return await ctx.receive("go", int)

    @app.workflow
    async def parent(ctx: weft.Context, child: str) -> str:
        try:
            return str(await ctx.call(patient(), id=child))
        except weft.RunCancelled:
            return "the child was cancelled"

    return app


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with the waiting runs "odd" and "sound", and "above", which waits for its child "below"."""

    async def begin() -> None:
        app = app_at(tmp_path)
        async with app:
            for run in ("odd", "sound"):
                await app.start("patient", id=run)
            await app.start("parent", {"child": "below"}, id="above")
            async with asyncio.timeout(200):
                async for event in app.get("below").events(follow=True):
                    if event.kind == "message_awaited":
                        return

    asyncio.run(begin())
    shutil.copy(tmp_path / "weft.db", tmp_path / "copy.db")
    return tmp_path


async def marked(app: weft.App, run: str) -> None:
    """Wait until the host has found that a run cannot be read."""
    async with asyncio.timeout(200):
        while (await app.service.row(run)).fault is None:  # type: ignore[arg-type]
            app.service.wake()
            await asyncio.sleep(0.01)


async def refusals(get: Callable[[str], weft.Handle[Any]]) -> dict[str, weft.WeftError | None]:
    found: dict[str, weft.WeftError | None] = {}
    for name, verb in VERBS.items():
        found[name] = None
        try:
            await verb(get("odd"))
        except weft.RunUnreadable as error:
            found[name] = error
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_is_refused_without_a_host(place: Path, kind: str) -> None:
    async def scene() -> tuple[dict[str, Any], Any, str]:
        async with weft.Client(f"sqlite:///{place}/weft.db") as client:
            run = client.get("odd")
            found = await refusals(client.get)
            return found, await run.explain(), await run.status()

    damage(place / "weft.db", "odd", kind)
    found, explained, status = asyncio.run(scene())
    assert [name for name, error in found.items() if error is None] == []
    for error in found.values():
        assert (error.code, error.context["run_id"]) == ("run.unreadable", "odd")
        assert "odd cannot be read: " in error.message
        assert "weft cancel odd --force" in error.hint
    assert (explained.status, explained.code) == (status, "run.unreadable")


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_is_refused_where_a_host_has_found_it(place: Path, kind: str) -> None:
    async def scene() -> tuple[dict[str, Any], Any, str]:
        app = app_at(place)
        async with weft.Client(app.url) as client:
            await client.get("sound").send("go", 5)
        async with app:
            if kind != "mail":  # it has nothing to do by itself: whoever speaks to it finds out
                with pytest.raises(weft.RunUnreadable):
                    await app.get("odd").send("go", 1)
            await marked(app, "odd")
            assert await app.get("sound").result(timeout="1m") == 5
            found = await refusals(app.get)
            return found, await app.get("odd").explain(), await app.get("odd").status()

    damage(place / "weft.db", "odd", kind)
    found, explained, status = asyncio.run(scene())
    assert [name for name, error in found.items() if error is None] == []
    assert (status, explained.status, explained.code) == ("held", "held", "run.unreadable")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hosted", [True, False], ids=["hosted", "by a client"])
def test_it_is_ended_by_force(place: Path, kind: str, hosted: bool) -> None:
    async def end(speaker: Any) -> None:
        run = speaker.get("odd")
        await run.cancel("enough", force=True)
        assert await run.status() == "cancelled"
        with pytest.raises(weft.RunCancelled, match="enough"):
            await run.result(timeout="1m")
        explained = await run.explain()
        assert explained.status == "cancelled"
        assert "nothing that it did was undone" in explained.summary
        with pytest.raises(weft.RunUnreadable):
            await run.retry()
        with pytest.raises(weft.RunFinished):
            await run.send("go", 1)

    async def scene() -> None:
        app = app_at(place)
        async with app if hosted else weft.Client(app.url) as speaker:
            await end(speaker)

    damage(place / "weft.db", "odd", kind)
    asyncio.run(scene())


def test_the_children_of_a_run_that_is_ended_by_force_are_told_to_stop(place: Path) -> None:
    async def scene() -> str:
        app = app_at(place)
        async with weft.Client(app.url) as client:
            await client.get("above").cancel(force=True)
        async with app:
            with pytest.raises(weft.RunCancelled):
                await app.get("below").result(timeout="1m")
            return await app.get("above").status()

    damage(place / "weft.db", "above", "torn")
    assert asyncio.run(scene()) == "cancelled"


def test_a_child_that_cannot_be_read_either_is_ended_too(place: Path) -> None:
    async def scene() -> list[str]:
        async with weft.Client(f"sqlite:///{place}/weft.db") as client:
            await client.get("above").cancel(force=True)
            return [await client.get(run).status() for run in ("above", "below")]

    damage(place / "weft.db", "above", "torn")
    damage(place / "weft.db", "below", "checksum")
    assert asyncio.run(scene()) == ["cancelled", "cancelled"]


def test_the_parent_hears_of_a_child_that_is_ended_by_force(place: Path) -> None:
    async def scene() -> str:
        app = app_at(place)
        async with app:
            await app.get("below").cancel(force=True)
            return str(await app.get("above").result(timeout="1m"))

    damage(place / "weft.db", "below", "torn")
    assert asyncio.run(scene()) == "the child was cancelled"


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_when_it_can_be_read_again(place: Path, kind: str) -> None:
    async def break_it() -> None:
        app = app_at(place)
        async with app:
            if kind != "mail":
                with pytest.raises(weft.RunUnreadable):
                    await app.get("odd").send("go", 1)
            await marked(app, "odd")

    async def go_on() -> int:
        app = app_at(place)
        async with app:
            assert await app.get("odd").status() == "held"
            await app.get("odd").resume()
            assert await app.get("odd").status() == "running"
            await app.get("odd").send("go", 7)
            return int(await app.get("odd").result(timeout="1m"))

    damage(place / "weft.db", "odd", kind)
    asyncio.run(break_it())
    mend(place / "weft.db", place / "copy.db", "odd")
    assert asyncio.run(go_on()) == 7
