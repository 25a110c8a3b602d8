"""What a screen hears about a run: changed places and boxes, its status and what it waits for."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.server.kit import API, Server, covers
from tests.server.test_live import Heard, Listener
from tests.server.test_run_views import ended


def applied(
    frames: list[Heard], boxes: dict[str, Any], arrows: dict[str, int]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return how boxes and arrows stand after the changes in these frames."""
    for frame in frames:
        if frame.event == "standing":
            boxes = {name: box for name, box in boxes.items() if name not in frame.data["removed"]}
            boxes, arrows = {**boxes, **frame.data["boxes"]}, {**arrows, **frame.data["arrows"]}
    return boxes, arrows


def places_of(frames: list[Heard]) -> dict[int, Any]:
    """Return the last row of each place in these frames."""
    return {place["number"]: place for frame in frames if frame.event == "place" for place in frame.data["places"]}


@covers("followRun", "getStanding", "listPlaces")
def test_a_viewer_hears_what_happens_until_the_run_is_over(server: Server) -> None:
    async def play() -> list[Heard]:
        server.start("order", "seen", order_id="7")
        server.until("seen", "message_awaited")
        async with Listener(server, f"{API}/runs/seen/live?as=places&after=0") as listener:
            first = [await listener.next() for _ in range(4)]
            server.post(f"{API}/runs/seen/messages", {"name": "quote", "body": 5})
            return first + await listener.all()

    frames = asyncio.run(play())

    kinds = [frame.event for frame in frames]
    assert (kinds[:4], kinds[-1]) == (["place", "standing", "run", "explain"], "end")
    assert frames[3].data["waiting"][0]["action"]["kind"] == "send"
    assert not frames[2].data["actions"]["resume"]["allowed"]
    assert [frame.data["status"] for frame in frames if frame.event == "run"] == ["running", "completed"]
    standing = server.get(f"{API}/runs/seen/standing").json
    assert applied(frames, {}, {}) == (standing["boxes"], standing["arrows"])
    rows = server.get(f"{API}/runs/seen/places").json["places"]
    assert list(places_of(frames).values()) == rows
    digests = [frame.data["digest"] for frame in frames if frame.event == "standing"]
    assert digests[-1] == server.get(f"{API}/runs/seen/picture").json["digest"]


@covers("followRun", "getStanding")
def test_a_viewer_who_was_away_hears_what_has_changed_since(server: Server) -> None:
    run = ended(server, "away", name="anna")
    [greet] = server.get(f"{run}/places?q=greet").json["places"]
    then = server.get(f"{run}/standing?at={greet['began']}").json

    async def play() -> list[Heard]:
        async with Listener(server, f"{run}/live?as=places&after={greet['began']}") as listener:
            return await listener.all()

    frames = asyncio.run(play())

    now = server.get(f"{run}/standing").json
    assert list(places_of(frames)) == [greet["number"]]
    assert applied(frames, then["boxes"], then["arrows"]) == (now["boxes"], now["arrows"])
    assert [frame.event for frame in frames] == ["place", "standing", "run", "explain", "end"]


@covers("followRun")
def test_a_viewer_with_an_event_that_never_was_starts_anew(server: Server) -> None:
    run = ended(server, "foreign", name="anna")

    async def play() -> list[Heard]:
        async with Listener(server, f"{run}/live?as=places&after=900") as listener:
            return await listener.all()

    frames = asyncio.run(play())

    assert [frame.event for frame in frames] == ["gap", "standing", "run", "explain", "end"]
    assert frames[0].data == {"lost": -1}
    assert applied(frames, {}, {})[0] == server.get(f"{run}/standing").json["boxes"]


@covers("followRun")
def test_a_viewer_can_only_ask_for_events_or_places(server: Server) -> None:
    run = ended(server, "odd", name="anna")

    assert server.get(f"{run}/live?as=pictures").status == 422
    assert server.get(f"{run}/live?as_=places").status == 422
