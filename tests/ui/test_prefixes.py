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
