"""A failed run is told what can be done about it: tried again, or started anew where its work was undone."""

from __future__ import annotations

import asyncio

import pytest

import weft
from weft.core.ids import RunId
from weft.observe.explain import explain

app = weft.App("memory://")


@app.step
def book(n: int) -> int:
    return n


@book.undo
def unbook(n: int, result: int) -> None:
    pass


@app.step
def sink(n: int) -> None:
    raise weft.Critical("never")


def failing(name: str, first: str) -> weft.Graph:
    given = {"n": "${input.n}"}
    nodes = {"first": {"step": first, "with": given, "next": "last"}, "last": {"step": "sink", "with": given}}
    return app.graph({"name": name, "nodes": nodes})


undone = failing("undone", "book")
kept = failing("kept", "sink")


@app.step(gives="wreck")
def run_aground(n: int) -> str:
    raise weft.Critical("never")


goal = app.goal("lost", run_aground)


@app.workflow
async def code(ctx: weft.Context, n: int) -> None:
    await book(n)
    await sink(n)


async def hint_of(workflow: object) -> tuple[str, str]:
    """What is said of a failed run of it, and of trying that again."""
    async with app:
        handle = await app.start(workflow, {"n": 1})  # type: ignore[call-overload]
        with pytest.raises(weft.RunFailed) as failed:
            await handle.result()
        row = await handle._service.row(RunId(handle.id))
        said, more = (await explain(handle._service, row)).hint.split("\n")
        assert more.strip() == f"What it did, and the traceback: weft show {row.id}"
        try:
            await handle.retry()
        except weft.RunUndone as error:
            assert "weft retry" not in failed.value.hint
            assert "Start a new run with another id" in failed.value.hint
            return said, error.hint
        assert "weft retry" in failed.value.hint
        return said, ""


def test_work_that_was_undone_is_not_told_to_be_tried_again() -> None:
    said, refused = asyncio.run(hint_of(undone))
    assert said == "Its steps were undone. Start a new run with another id: weft start undone --input FILE"
    assert "weft start undone" in refused


@pytest.mark.parametrize("workflow", [kept, code, goal], ids=["nothing to undo", "code performs it anew", "goal"])
def test_what_can_be_tried_again_is(workflow: object) -> None:
    said, refused = asyncio.run(hint_of(workflow))
    assert said.startswith("Try again: weft retry ")
    assert refused == ""
