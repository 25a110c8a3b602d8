"""The limits of patches: what exceeds one is refused before anything is written, and all of them can be set."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import LimitExceeded, UsageError
from weft.runtime.patch_limits import PatchLimits, project_patch_limits, read_patch_limits
from weft.runtime.publication import PublicationService, WorkflowPatch

GRAPH = {"name": "order", "nodes": {"a": {"receive": "go", "next": "b"}, "b": {"pass": True}}}
SMALL = "[tool.weft.limits]\npatches = 2\npatch_operations = 3\npatch_bytes = 400\npatch_agents = 1\n"


def test_limits_are_read_from_the_project_with_everything_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    assert project_patch_limits(file) == PatchLimits()
    file.write_text(SMALL)
    assert project_patch_limits(file) == PatchLimits(patches=2, patch_operations=3, patch_bytes=400, patch_agents=1)
    with pytest.raises(UsageError, match=r"pathces is not known.*patches = 0 is not a number"):
        read_patch_limits({"pathces": 3, "patches": 0})
    with pytest.raises(UsageError, match="not a table"):
        read_patch_limits(7)


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, story: Callable[[weft.App, Any], Awaitable[None]]) -> None:
    (folder / "pyproject.toml").write_text(SMALL)
    monkeypatch.chdir(folder)

    async def run() -> None:
        app = weft.App("memory://")
        app.graph(GRAPH)
        async with app:
            handle = await app.start("order", id="o-1")
            await story(app, handle)
            await handle.cancel()

    asyncio.run(run())


async def _refused(app: weft.App, handle: Any, match: str, *ops: Any, **fields: Any) -> None:
    """A patch is refused, waiting or not, for the run and for its workflow, and nothing is written."""
    before = [event.seq async for event in handle.events()], len(await app.service.store.definitions.versions("order"))
    for options in ({}, {"wait": "1h"}, {"review": ["bob"], "by": "ann"}, {"dry_run": True}):
        with pytest.raises(LimitExceeded, match=match):
            await handle.patch(list(ops), **options, **fields)
    now = [event.seq async for event in handle.events()], len(await app.service.store.definitions.versions("order"))
    assert now == before


def test_operations_size_and_agents_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(app: weft.App, handle: Any) -> None:
        test = {"op": "test", "path": "/name", "value": "order"}
        await _refused(app, handle, "at most 3 operations; this one has 4", test, test, test, test)
        large = {"op": "add", "path": "/description", "value": "x" * 400}
        await _refused(app, handle, "the limit is 400", large)
        agents = [{"op": "add", "path": f"/nodes/c{n}", "value": {"agent": "x"}} for n in range(2)]
        await _refused(app, handle, "at most 1 agent nodes; this one adds 2", *agents)
        start = {"op": "add", "path": "/nodes/b/metadata", "value": {"a": "x" * 80}}
        twice = [{"op": "copy", "from": "/nodes/b/metadata", "path": f"/nodes/b/metadata/c{n}"} for n in range(2)]
        await _refused(app, handle, "bytes or more; the limit is 400", start, *twice)
        for ops in ([test] * 4, [large], [start, *twice]):
            with pytest.raises(LimitExceeded):
                await PublicationService(app.service).publish("order", "live", WorkflowPatch(patch={"ops": ops}))

    play(tmp_path, monkeypatch, story)


def test_the_number_of_patches_is_limited_and_those_that_wait_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(app: weft.App, handle: Any) -> None:
        first, second, third = ([{"op": "add", "path": "/nodes/b/timeout", "value": f"{n}m"}] for n in (1, 2, 3))
        await handle.patch(first)
        asked = await handle.patch(second, review=["bob"], by="ann")
        with pytest.raises(LimitExceeded, match="has had 2 patches"):
            await handle.patch(third, review=["bob"], by="eve")
        await handle.decide(f"patch@{asked.asked}", approved=True, by="bob")
        while len(await handle.versions()) < 3:
            await asyncio.sleep(0.01)
        await _refused(app, handle, "has had 2 patches")

    play(tmp_path, monkeypatch, story)
