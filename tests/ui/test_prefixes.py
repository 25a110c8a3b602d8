"""The same UI below any prefix: mounted in another application, and behind a proxy that removes a prefix."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served
from tests.ui.stripping import stripping_proxy

ROOT = Path(__file__).parents[2]


class Mounted(Served):
    """The shop at ``/weft`` of a FastAPI application."""

    prefix = "/weft"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.ui.mounted", str(self.port)]


class Proxied(Served):
    """The shop behind a proxy that removes ``/a/b``."""

    prefix = "/a/b"


@pytest.fixture(scope="module", params=[Mounted, Proxied])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted | Proxied]:
    served = request.param(tmp_path_factory.mktemp("prefix"), PYTHONPATH=str(ROOT))
    served.start_server()
    try:
        if isinstance(served, Proxied):
            with stripping_proxy(served.port, served.prefix) as port:
                served.url = f"http://127.0.0.1:{port}{served.prefix}"
                yield served
        else:
            served.url += served.prefix
            yield served
    finally:
        served.stop_server()


@pytest.mark.proof
def test_a_run_is_found_opened_reloaded_and_seen_live_below_a_prefix(page: Page, shop: Mounted | Proxied) -> None:
    shop.start("patient", "a/b", name="ann")
    page.goto(f"{shop.url}/")
    expect(page).to_have_url(f"{shop.url}/runs")
    page.get_by_role("link", name="a/b", exact=True).click()
    expect(page).to_have_url(f"{shop.url}/runs/a%2Fb")

    page.reload()
    expect(page.get_by_role("heading", name="a/b")).to_be_visible()
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()
    shop.ask("POST", "/runs/a%2Fb/cancel", {"reason": "enough"})

    expect(page.get_by_text("cancelled").first).to_be_visible()
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Operations").click()
    expect(page).to_have_url(f"{shop.url}/operations")


@pytest.mark.proof
def test_a_link_for_a_person_is_whole_and_answers_below_a_prefix(page: Page, shop: Mounted | Proxied) -> None:
    shop.start("order", "linked", order_id="linked")
    shop.until_event("linked", "ask_opened")
    page.goto(f"{shop.url}/inbox/linked%3Aapprove")
    page.get_by_role("button", name="Link for a person").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name of the person").fill("ann")
    dialog.get_by_role("button", name="Make the link").click()
    link = dialog.locator("pre").inner_text()
    assert link.startswith(f"{shop.url}/decide/")

    page.goto(link)
    page.get_by_role("button", name="Approve").click()

    assert shop.until("linked", "completed")["output"] == "shipped linked"


@pytest.mark.proof
def test_a_page_without_a_clipboard_says_that_nothing_was_copied(page: Page, shop: Mounted | Proxied) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    shop.start("patient", "copied", name="ann")
    page.goto(f"{shop.url}/runs/copied")

    page.get_by_role("button", name="Copy the id").click()

    expect(page.get_by_text("The browser did not allow copying").first).to_be_visible()
