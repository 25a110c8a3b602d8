"""The lower half of the Run screen: timeline, log, data, output, changes, and going through the events."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.conftest import PHONE
from tests.ui.served import Served, quoted


def asking(shop: Served, name: str) -> str:
    """Start an order and wait until it asks; return its id."""
    shop.start("order", f"order-{name}", order_id=name)
    shop.until_event(f"order-{name}", "ask_opened")
    return f"order-{name}"


@pytest.mark.proof
def test_what_is_new_comes_in_at_the_end_and_moves_nothing_for_those_who_look_elsewhere(
    page: Page, shop: Served
) -> None:
    shop.start("many", "busy", count=200)
    shop.until("busy", "completed")
    run = asking(shop, "live")
    page.goto(f"/runs/{run}")
    log = page.get_by_role("grid", name="Log")
    expect(log.get_by_role("row").last).to_contain_text("asks")

    shop.ask("POST", f"/approvals/{quoted(run + ':approve')}/decision", {"approved": True, "by": "ann", "form": {}})

    expect(log.get_by_role("row").last).to_contain_text("the run completed")
    page.goto("/runs/busy")
    expect(log.get_by_role("row").last).to_contain_text("completed")
    log.press("Home")
    expect(log.get_by_role("row").first).to_contain_text("started")
    assert log.get_by_role("row").count() <= 80
    log.press("End")
    expect(log.get_by_role("row").last).to_contain_text("the run completed")


@pytest.mark.proof
def test_the_end_of_the_log_stays_in_sight_when_the_window_changes(page: Page, shop: Served) -> None:
    shop.start("many", "resized", count=30)
    shop.until("resized", "completed")
    page.goto("/runs/resized")
    last = page.get_by_role("row", name=re.compile("the run completed"))
    expect(last).to_be_in_viewport(ratio=1)

    page.set_viewport_size({"width": 1280, "height": 640})

    expect(last).to_be_in_viewport(ratio=1)


@pytest.mark.proof
def test_a_box_of_the_timeline_opens_for_its_places(page: Page, shop: Served) -> None:
    shop.start("many", "wide", count=300)
    shop.until("wide", "completed")
    page.goto("/runs/wide")
    timeline = page.get_by_role("treegrid", name="Timeline")
    box = timeline.get_by_role("row", name=re.compile("×300"))
    expect(box).to_contain_text("300 ✓")

    box.get_by_role("button", name="Open").click()

    expect(box).to_have_attribute("aria-expanded", "true")
    expect(timeline.get_by_role("row").filter(has_text="parcels/~0/pack")).to_be_visible()
    assert int(timeline.get_attribute("aria-rowcount") or 0) > 100
    assert timeline.locator(".tl-bar").count() <= 400


@pytest.mark.proof
def test_zooming_ends_following_and_the_end_key_resumes_it(page: Page, shop: Served) -> None:
    page.goto(f"/runs/{asking(shop, 'zoom')}")
    now = page.get_by_role("region", name="Timeline").get_by_role("button", name="Now")
    expect(now).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Zoom in").last.click()
    expect(now).to_have_attribute("aria-pressed", "false")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("End")

    expect(now).to_have_attribute("aria-pressed", "true")


@pytest.mark.proof
def test_the_second_attempt_greys_what_the_first_one_wrote(page: Page, shop: Served) -> None:
    shop.start("told", "told", words=["once", "upon"])
    shop.until("told", "completed")

    page.goto("/runs/told?tab=output")

    output = page.get_by_role("log", name="Output tokens")
    expect(output.locator("pre")).to_have_text(["once upon ", "once upon "])
    assert [piece.get_attribute("data-former") for piece in output.locator("pre").all()] == ["true", "false"]
    expect(output).to_contain_text("attempt 2")


@pytest.mark.proof
def test_what_steps_print_is_shown_by_attempt_and_as_text_only(page: Page, shop: Served) -> None:
    words = ["<img src=x onerror=alert(1)>", "\u202eupside"]
    shop.start("told", "printed", words=words)
    shop.until("printed", "completed")
    page.goto("/runs/printed?tab=output")

    page.get_by_role("button", name="Printed lines").click()

    printed = page.get_by_role("log", name="What steps printed")
    expect(printed.locator("pre")).to_have_text([*words, "warning story: not again", *words])
    expect(printed).to_contain_text("tell, attempt 2")
    expect(printed.locator("img")).to_have_count(0)


@pytest.mark.proof
def test_changes_say_who_when_and_why_and_lead_to_their_event(page: Page, shop: Served) -> None:
    run = asking(shop, "changed")
    shop.ask("POST", f"/runs/{run}/pause", {"reason": "lunch"})
    shop.ask("POST", f"/runs/{run}/resume", {"reason": "back"})
    page.goto(f"/runs/{run}?tab=changes")
    row = page.get_by_role("row", name=re.compile("lunch"))
    expect(row).to_contain_text("paused")

    row.get_by_role("button").first.click()

    expect(page).to_have_url(re.compile(r"at=\d+"))


@pytest.mark.proof
def test_playing_goes_through_all_events(page: Page, shop: Served) -> None:
    run = asking(shop, "played")
    seq = shop.run(run)["seq"]
    page.goto(f"/runs/{run}?at=1")
    slider = page.get_by_role("slider", name="Event")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"event 1 of {seq}, .*"))

    page.get_by_role("button", name="Play").click()

    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"event {seq} of {seq}.*now"))
    expect(page).not_to_have_url(re.compile("at="))


@pytest.mark.proof
@pytest.mark.parametrize("tab", ["log", "data", "output", "changes"])
def test_the_rules_of_accessibility_hold(page: Page, shop: Served, tab: str) -> None:
    run = asking(shop, f"axe-{tab}")
    shop.ask("POST", f"/runs/{run}/pause", {"reason": "lunch"})
    page.goto(f"/runs/{run}?tab={tab}&sel=reserve&at=4")
    expect(page.get_by_role("treegrid", name="Timeline").get_by_role("row").first).to_be_visible()
    expect(page.locator("#bottom-panel")).to_be_visible()

    assert violations_in_every_look(page) == []


@pytest.mark.proof
class TestOnAPhone:
    @pytest.fixture
    def viewport(self) -> dict[str, int]:
        return PHONE

    def test_the_log_is_a_pane_and_nothing_scrolls_sideways(self, page: Page, shop: Served) -> None:
        page.goto(f"/runs/{asking(shop, 'phone')}?pane=log")

        expect(page.get_by_role("grid", name="Log").get_by_role("row").last).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
