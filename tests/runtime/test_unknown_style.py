"""A run of a style that this release does not know stands still by itself, and disturbs no other."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

import weft


def app_at(path: Path) -> weft.App:
    app = weft.App(f"sqlite:///{path}/weft.db")

    @app.workflow
    async def patient(ctx: weft.Context) -> int:
        return await ctx.receive("go", int)

    return app


def test_a_run_of_an_unknown_style_is_set_aside(tmp_path: Path) -> None:
    async def begin() -> None:
        app = app_at(tmp_path)
        async with app:
            for run in ("odd", "sound"):
                await app.start("patient", id=run)

    async def go_on() -> int:
        app = app_at(tmp_path)
        async with weft.Client(app.url) as client:
            await client.get("sound").send("go", 5)
            with pytest.raises(weft.RunUnreadable, match="martian"):
                await client.get("odd").send("go", 5)
        async with app:
            return int(await app.get("sound").result(timeout=120))

    asyncio.run(begin())
    with sqlite3.connect(tmp_path / "weft.db") as plain:
        plain.execute("UPDATE runs SET style = 'martian' WHERE id = 'odd'")
    plain.close()

    assert asyncio.run(go_on()) == 5
