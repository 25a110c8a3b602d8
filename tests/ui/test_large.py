"""A log of 100,000 events and a graph of 5,000 nodes: the page holds only what is in sight, and asks for little."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.large import NODES
from tests.ui.served import Served
from tests.ui.watched import Watch

pytestmark = pytest.mark.proof

PROGRAM = Path(__file__).with_name("large.py")
STEPS = 50_000
PLAY_SECONDS_MAX = 600.0
LAYOUT_MS_MAX = 300_000
ELEMENTS_MAX = 3_000
ROWS_MAX = 80
BARS_MAX = 400
JUMP_REQUESTS_MAX = 3
BOXES_MAX = 400
DRAGS = 4


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("large"), program=PROGRAM)
    served.start_server()
    yield served
    served.stop_server()


@pytest.fixture(scope="module")
def last(shop: Served) -> int:
    """The number of the last event of a long run."""
    shop.start("long", "long", steps=STEPS)
    return int(shop.until("long", "completed", seconds=PLAY_SECONDS_MAX)["seq"])


def elements(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


def asked(watch: Watch, part: str) -> int:
    """Return how many requests about a part of a run were sent."""
    return sum(f"/{part}?" in url for url in watch.requests)


def drag_up(page: Page) -> None:
    """Drag the picture up by most of its height."""
    area = page.locator(".react-flow").bounding_box()
    assert area is not None
    x, top, bottom = area["x"] + area["width"] / 2, area["y"] + 10, area["y"] + area["height"] - 10
    page.mouse.move(x, bottom)
    page.mouse.down()
    page.mouse.move(x, top, steps=5)
    page.mouse.up()


def test_a_log_of_100_000_events_is_walked_from_end_to_end(page: Page, last: int, watch: Watch) -> None:
    assert last > 2 * STEPS
    page.goto("/runs/long?tab=log")
    log = page.get_by_role("grid", name="Log")
    expect(log.get_by_role("row").last).to_contain_text("the run completed")
    expect(page.get_by_role("treegrid", name="Timeline").get_by_role("row").first).to_be_visible()

    for key, row in (("Home", 1), ("End", last), ("Home", 1)):
        before = asked(watch, "events")
        log.press(key)
        expect(log.locator(f"[aria-rowindex='{row}']").first).to_be_visible()
        assert asked(watch, "events") - before <= JUMP_REQUESTS_MAX, key
        assert log.get_by_role("row").count() <= ROWS_MAX
    assert page.locator(".tl-bar").count() <= BARS_MAX
    assert elements(page) <= ELEMENTS_MAX


@pytest.mark.usefixtures("last")
def test_an_event_in_the_middle_of_100_000_is_opened_by_its_address(page: Page, watch: Watch) -> None:
    page.goto(f"/runs/long?tab=log&at={STEPS}")
    row = page.get_by_role("grid", name="Log").locator(f"[aria-rowindex='{STEPS}']")

    expect(row).to_be_in_viewport()
    expect(row).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("slider", name="Event")).to_have_attribute("aria-valuenow", str(STEPS))
    assert asked(watch, "events") <= JUMP_REQUESTS_MAX
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(f"at={STEPS + 1}"))
    assert elements(page) <= ELEMENTS_MAX


def test_a_graph_of_5_000_nodes_is_listed_drawn_and_moved(page: Page, shop: Served, watch: Watch) -> None:
    shop.start("wide", "wide")
    shop.until("wide", "completed")
    page.goto("/runs/wide")
    outline = page.get_by_role("tree", name=re.compile("Outline"))
    expect(outline.get_by_role("treeitem").first).to_be_visible(timeout=LAYOUT_MS_MAX)
    expect(page.get_by_text(f"{NODES:,} boxes")).to_be_visible()
    assert outline.get_by_role("treeitem").count() <= ROWS_MAX
    assert elements(page) <= ELEMENTS_MAX

    page.get_by_role("button", name="Draw it anyway").click()
    boxes = page.locator(".react-flow__node")
    expect(boxes.first).to_be_visible()
    assert boxes.count() <= BOXES_MAX
    for _ in range(DRAGS):
        drag_up(page)
        assert boxes.count() <= BOXES_MAX
    expect(page.locator(".react-flow__node[data-id='b:n0']")).to_have_count(0)
    expect(boxes.first).to_be_visible()
    assert asked(watch, "picture") + sum(url.endswith("/picture") for url in watch.requests) == 1
