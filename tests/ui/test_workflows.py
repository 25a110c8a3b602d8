"""Workflows: the list, one workflow with its versions and source, and two versions compared."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served


def second_version(shop: Served) -> tuple[str, str]:
    """Publish another version of the graph; return both versions."""
    first = shop.ask("GET", "/workflows/leads/about")["newest"]
    patch = {"ops": [{"op": "add", "path": "/nodes/nurture/timeout", "value": "1h"}]}
    made = shop.ask("POST", "/workflows/leads/patch", {"tag": "live", "patch": patch, "reason": "a limit"})
    return first, made["version"]


@pytest.mark.proof
def test_a_run_is_started_from_the_list(page: Page, shop: Served) -> None:
    page.goto("/workflows?q=quick")
    page.get_by_role("button", name="Start quick").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("name", exact=False).first.fill("ann")
    dialog.get_by_role("button", name="Start", exact=True).click()

    expect(page).to_have_url(re.compile("/runs/quick-"))
    expect(page.get_by_text("completed").first).to_be_visible()


@pytest.mark.proof
def test_rows_are_walked_by_keys(page: Page) -> None:
    page.goto("/workflows")
    expect(page.get_by_role("link", name="leads", exact=True)).to_be_visible()

    page.keyboard.press("k")
    expect(page.get_by_role("link", name="told", exact=True)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    expect(page).to_have_url("/workflows/told")


@pytest.mark.proof
def test_two_versions_are_compared(page: Page, shop: Served) -> None:
    first, second = second_version(shop)

    page.goto(f"/workflows/leads/diff/{first}/{second}")

    lines = page.get_by_role("group", name="Changed lines")
    expect(lines.locator(".added").get_by_text("timeout")).to_be_visible()
    lines.get_by_role("button", name=re.compile("equal lines")).first.click()
    expect(lines.locator(".same").get_by_text("enrich_company")).to_be_visible()  # the second one has no written text
    expect(page.get_by_role("button", name=re.compile("^nurture.*changed"))).to_be_visible()


@pytest.mark.proof
@pytest.mark.parametrize("width", [1280, 390])
def test_a_long_id_leaves_room_for_the_button(page: Page, shop: Served, width: int) -> None:
    run = shop.start("told", f"{width}-" + "long" * 50, words=[])
    shop.until(run, "completed")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/workflows?q=told")

    expect(page.get_by_role("link", name=re.compile("^told$"))).to_be_visible()
    expect(page.get_by_role("button", name="Start told")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.proof
def test_the_number_of_open_runs_leads_to_them_paused_ones_included(page: Page, shop: Served) -> None:
    shop.start("offer", "offer-open", customer="ann")
    shop.until_event("offer-open", "ask_opened")
    shop.ask("POST", "/runs/offer-open/pause", {"reason": "lunch"})
    page.goto("/workflows?q=offer")

    open_runs = page.get_by_role("row", name=re.compile("^offer")).get_by_role("link", name="1", exact=True)
    expect(open_runs).to_be_visible()
    open_runs.click()

    expect(page).to_have_url(re.compile("/runs"))
    expect(page.get_by_role("link", name="offer-open", exact=True)).to_be_visible()


@pytest.mark.proof
def test_code_shows_what_its_runs_did_and_no_empty_source(page: Page, shop: Served) -> None:
    shop.start("order", "stood-1", order_id="stood-1", cents=200_000)
    shop.until("stood-1", "failed")
    page.goto("/workflows/order")

    expect(page.get_by_role("button", name=re.compile("^charge, .*failed"))).to_be_visible()
    expect(page.get_by_text("defined in")).to_be_visible()
    expect(page.get_by_role("heading", name="Source")).to_have_count(0)
