"""A task of the engine that fails stops the run that it is for, or its host. It is never only logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import weft
from tests.code.desk import Desk
from tests.code.timeless import calm


def desk() -> Desk:
    app = weft.App("memory://")

    @app.step
    async def work() -> None: ...

    @app.workflow
    async def flow(ctx: weft.Context) -> None:
        await work()
        await ctx.receive("go")

    return Desk(app)


async def broken(*_: object) -> None:
    raise RuntimeError("a defect")


def played(scene: Callable[[Desk], Awaitable[Any]]) -> Desk:
    at = desk()
    at.play(lambda: scene(at), crash=True)  # type: ignore[arg-type,return-value]
    return at


def test_a_failure_for_one_run_sets_that_run_aside_and_no_other() -> None:
    async def scene(at: Desk) -> None:
        await at.app.start("flow", {}, id="hurt")
        await at.app.start("flow", {}, id="well")
        await calm()
        at.host.background.spawn(broken(), at.host.runs.by_id["hurt"])  # type: ignore[index]
        await calm()
        assert at.host.status.failure is None
        await at.app.get("well").send("go")
        await at.app.get("well").result()

    at = played(scene)
    runs = at.store.content.runs
    assert "a defect" in str(runs[at.store.content.ids["hurt"]].fault)  # type: ignore[index]
    assert at.status("well") == "completed"


def test_a_failure_for_no_single_run_ends_the_host() -> None:
    async def scene(at: Desk) -> None:
        told = asyncio.Event()
        at.host.status.on_failure = told.set
        at.host.background.spawn(broken())
        await told.wait()
        assert isinstance(at.host.status.failure, RuntimeError)

    played(scene)


def test_what_others_do_again_may_fail() -> None:
    async def scene(at: Desk) -> None:
        at.host.background.spawn(broken(), may_fail=True)
        await calm()
        assert at.host.status.failure is None

    played(scene)


def test_an_answer_of_a_step_that_cannot_be_reported_ends_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(at: Desk) -> None:
        def report(*_: object) -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(at.host.worker, "_report", report)
        told = asyncio.Event()
        at.host.status.on_failure = told.set
        await at.app.start("flow", {}, id="run")
        await told.wait()
        assert isinstance(at.host.status.failure, RuntimeError)

    played(scene)
