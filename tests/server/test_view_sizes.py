"""What screens load of a large run is small: its picture, its standing and a page of its places, compressed."""

from __future__ import annotations

import asyncio
import gzip
import threading
from typing import Any

import msgspec
import pytest

from tests.graph.documents import compiled
from weft.core import events as e
from weft.core.ids import Millis, Seq
from weft.errors import Failure
from weft.observe import viewed_run
from weft.observe.pictures import Picture, picture_of_graph
from weft.observe.pictures.drawn import DrawnPicture, draw
from weft.observe.place_log import PlaceLog
from weft.observe.place_rows import PlaceSearch, find_places
from weft.observe.viewed_run import ViewedRuns
from weft.ports.store import StoredEvent
from weft.server import views
from weft.server.endpoints.run_views import PlacesView, StandingView

NODES = 2_000
WIDTH = 20
"""How many nodes stand side by side."""
KB = 1_000


def large_graph() -> dict[str, Any]:
    """Return a document with chains of nodes side by side."""
    nodes: dict[str, Any] = {"begin": {"pass": True, "next": [{"to": [name(n) for n in range(WIDTH)]}]}}
    for n in range(NODES - 1):
        after = n + WIDTH
        nodes[name(n)] = {"step": f"check_{n % 50}", **({"next": name(after)} if after < NODES - 1 else {})}
    return {"name": "large", "nodes": nodes}


def name(n: int) -> str:
    return f"check_the_order_{n}"


@pytest.fixture(scope="module")
def picture() -> Picture:
    return picture_of_graph(compiled(large_graph()))


@pytest.fixture(scope="module")
def log() -> PlaceLog:
    """Return the places of a run that performed each node, in which every tenth step failed at first."""
    log = PlaceLog()
    start = {"kind": "run_started", "run_id": "run", "workflow": "large", "style": "graph", "input": {}}
    add(log, e.decode(msgspec.json.encode(start)))
    for n in range(NODES - 1):
        add(log, e.TaskScheduled(step=f"check_{n % 50}", node=name(n), token=f"t{n}", input=e.NULL))
        task = log.seq
        if not n % 10:
            failure = Failure("ConnectionError", f"the warehouse did not answer request {n * 7919}")
            add(log, e.TaskFailed(task=task, failure=failure, attempt=1, retry_at=log.seq * 37 + 1))
        if n < NODES - WIDTH:
            output = msgspec.Raw(msgspec.json.encode({"ok": n}))
            add(log, e.TaskSucceeded(task=task, output=output, attempt=1))
    return log


def add(log: PlaceLog, event: e.AnyEvent) -> None:
    seq = log.seq + 1
    log.add(StoredEvent(Seq(seq), Millis(1_790_000_000_000 + seq * 37), e.encode(event)))


def compressed(value: object) -> int:
    return len(gzip.compress(msgspec.json.encode(value), 6))


def test_the_picture_of_2000_boxes_is_laid_out_in_a_thread_and_small(
    picture: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def noted(picture: Picture) -> DrawnPicture:
        threads.append(threading.current_thread())
        return draw(picture)

    monkeypatch.setattr(viewed_run, "draw", noted)
    drawn = asyncio.run(ViewedRuns().drawn(picture))
    assert len(drawn.boxes) >= NODES
    assert threads != [threading.main_thread()]
    assert compressed(drawn) <= 200 * KB


def test_the_standing_of_2000_boxes_is_small(picture: Picture, log: PlaceLog) -> None:
    log.counts.advance(log.seq)
    boxes = log.counts.standings(log.seq, log.places)
    assert len(boxes) == NODES - 1
    arrows = {arrow.id: number % 9 + 1 for number, arrow in enumerate(picture.arrows)}
    view = StandingView(log.seq, views.api_time(log.time_of(log.seq)), "running", boxes, arrows)
    assert compressed(view) <= 40 * KB


def test_a_page_of_places_is_small(log: PlaceLog) -> None:
    rows, after = find_places(log, PlaceSearch(seq=log.seq))
    assert len(rows) == PlaceSearch(seq=1).limit
    assert compressed(PlacesView(log.seq, rows, after)) <= 30 * KB
