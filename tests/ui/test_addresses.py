"""Every address gives its screen, also after a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served, quoted


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
