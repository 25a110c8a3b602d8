"""Every address gives its screen, also after a reload. A page is useful after few requests and can be walked by Tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request, expect

from tests.ui.served import Served, quoted
from tests.ui.watched import Watch

REQUESTS_MAX = 6
STOPS_MAX = 200
NOTE_FOCUS = """() => {
  const at = document.activeElement;
  window.reached ??= new Set();
  if (at && at !== document.body) window.reached.add(at);
  return at !== null && at !== document.body;
}"""
NOT_REACHED = """() => [
    ...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")
  ]
  .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }))
  .filter((one) => !window.reached.has(one))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.mark.proof
def test_every_address_gives_the_same_screen_after_a_reload(page: Page, shop: Served) -> None:
    for order in ("order-a", "order-b"):
        shop.start("order", order, order_id=order)
        shop.until_event(order, "ask_opened")
    version = shop.ask("GET", "/workflows/leads/about")["newest"]
    for path in (
        "/runs?status=running&workflow=order&since=24h&where=order%3Dorder-a&q=order",
        "/runs/order-a?sel=charge&at=5&tab=data",
        "/runs/order-a?tab=log&q=charge",
        "/runs/order-a/diff/order-b",
        "/inbox",
        f"/inbox/{quoted('order-a:approve')}",
        "/workflows",
        f"/workflows/leads?version={version}",
        f"/workflows/leads/diff/{version}/{version}",
        "/goals?want=send_invoice&given=order_id&show=all",
        "/operations#queues",
    ):
        page.goto(path)
        expect(page.locator("h1")).not_to_be_empty()
        page.wait_for_load_state("networkidle")
        before, address = page.locator("h1").inner_text(), page.url

        page.reload()
        expect(page.locator("h1")).to_have_text(before)
        expect(page).to_have_url(address)
        assert page.locator("h1").count() == 1, path
        assert address == shop.url + path


@pytest.mark.proof
def test_the_rows_of_runs_wait_for_six_requests_of_data_at_most(page: Page, shop: Served, watch: Watch) -> None:
    shop.start("quick", "quick-1", name="ann")
    sent_before_rows: list[str] = []

    def on_finished(request: Request) -> None:
        if "/api/v1/runs?" in request.url and not sent_before_rows:
            sent_before_rows.extend(url for url in watch.requests if "/api/" in url)

    page.on("requestfinished", on_finished)
    page.goto("/runs")
    expect(page.get_by_role("link", name="quick-1", exact=True)).to_be_visible()

    assert 0 < len(sent_before_rows) <= REQUESTS_MAX, sent_before_rows


@pytest.mark.proof
def test_a_walk_by_tab_through_runs_reaches_everything_and_gets_out(page: Page, shop: Served) -> None:
    shop.start("quick", "quick-2", name="ann")
    shop.until("quick-2", "completed")
    page.goto("/runs?q=quick-2")
    expect(page.get_by_role("link", name="quick-2", exact=True)).to_be_visible()
    page.wait_for_load_state("networkidle")

    for stop in range(STOPS_MAX):
        page.keyboard.press("Tab")
        if not page.evaluate(NOTE_FOCUS) and stop > 0:
            break
    else:
        pytest.fail("the walk does not get out of the page")

    assert page.evaluate(NOT_REACHED) == []
