"""A search in a long log leaves other requests their turns, and goes on where it stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any

import pytest

import weft
from tests.server.kit import API, Server, serving
from weft.server.endpoints import run_events

EVENTS = 450
URL = f"{API}/runs/long/events"


def searched() -> weft.App:
    """Return an app with a workflow that records many events."""
    app = weft.App("memory://")

    @app.workflow
    async def long(ctx: weft.Context) -> int:
        for number in range(EVENTS):
            await ctx.set(number=number)
        return EVENTS

    return app


def ended(server: Server) -> None:
    server.start("long", "long")
    server.result("long")


def turns_while(server: Server, monkeypatch: pytest.MonkeyPatch, query: str) -> Counter[int]:
    """Ask for events. Returns how many were formatted in each turn of the loop."""
    turn, formatted = 0, Counter[int]()
    view = run_events._event_view

    def counted(*args: Any) -> Any:
        formatted[turn] += 1
        return view(*args)

    async def take_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(take_turns())

    async def end(task: asyncio.Task[None]) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    monkeypatch.setattr(run_events, "_event_view", counted)
    task = server.inside(begin())
    try:
        assert server.get(f"{URL}?{query}").status == 200
    finally:
        server.inside(end(task))
    return formatted


@pytest.mark.parametrize("query", ["q=nothing-like-it", "limit=500"])
def test_other_requests_get_turns_while_events_are_formatted(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    with serving(searched()) as server:
        ended(server)

        formatted = turns_while(server, monkeypatch, query)

    assert formatted.total() >= EVENTS
    assert max(formatted.values()) <= run_events.SLICE


@pytest.mark.parametrize("order", ["first", "last"])
def test_a_search_that_finds_nothing_yet_has_a_cursor(monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(run_events, "SCANNED_MAX", 100)
    monkeypatch.setattr(run_events, "READ_AT_ONCE", 50)
    cursor = "after" if order == "first" else "before"
    with serving(searched()) as server:
        ended(server)
        wanted = "run_completed" if order == "first" else "run_started"
        page = server.get(f"{URL}?q={wanted}&order={order}").json
        pages = [page]
        while page[cursor] is not None:
            page = server.get(f"{URL}?q={wanted}&order={order}&{cursor}={page[cursor]}").json
            pages.append(page)

    assert pages[0]["events"] == []
    assert [event["kind"] for page in pages for event in page["events"]] == [wanted]
    assert len(pages) > EVENTS // 100


def test_a_filter_that_matches_little_goes_through_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_events, "NUMBERS_PER_SLICE", 10)
    with serving(searched()) as server:
        ended(server)
        page = server.get(f"{URL}?kind=run_completed").json

    assert ([event["kind"] for event in page["events"]], page["after"]) == (["run_completed"], None)
