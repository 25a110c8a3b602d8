"""What somebody sees who has just begun: an empty store, with and without a host, and a page without WebSockets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.served import SHOP, Served

README = Path(__file__).parents[2] / "README.md"
NO_WORKFLOW = """
import os

import weft

app = weft.App(os.environ["WEFT_URL"])
"""


@pytest.fixture
def program() -> Path:
    """What is served. A class overrides it."""
    return SHOP


@pytest.fixture
def shop(tmp_path: Path, program: Path) -> Iterator[Served]:
    """A server with an empty store."""
    served = Served(tmp_path, program=program)
    served.start_server()
    yield served
    served.stop_server()


@pytest.mark.proof
def test_an_empty_store_offers_the_workflows_that_are_hosted(page: Page, shop: Served) -> None:
    page.goto("/runs")

    main = page.get_by_role("main")
    expect(main).to_contain_text(f"There is no run in {shop.store} yet.")
    assert violations_in_every_look(page) == []
    main.get_by_role("listitem").filter(has_text="quick").get_by_role("button", name="Start").click()
    expect(page.get_by_role("dialog").get_by_label("Workflow")).to_have_value("quick")


@pytest.mark.proof
def test_a_run_is_followed_where_no_websocket_can_be_opened(page: Page, shop: Served) -> None:
    page.route_web_socket(re.compile("/live"), lambda socket: socket.close())
    shop.start("order", "without-sockets", order_id="1")
    shop.until_event("without-sockets", "ask_opened")
    page.goto("/runs/without-sockets")
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()

    shop.ask("POST", "/runs/without-sockets/cancel", {"reason": "seen by events", "by": "bob"})

    expect(page.locator(".run-head")).to_contain_text("cancelled")


@pytest.mark.proof
class TestNothingIsHosted:
    @pytest.fixture
    def program(self, tmp_path: Path) -> Path:
        file = tmp_path / "none.py"
        file.write_text(NO_WORKFLOW)
        return file

    def test_the_program_of_the_readme_is_shown(self, page: Page) -> None:
        page.goto("/runs")

        shown = page.get_by_label("A first program")
        expect(shown).to_be_visible()
        found = re.search(r"```python\n(# app\.py\n.*?)```", README.read_text("utf-8"), re.DOTALL)
        assert found is not None
        assert shown.inner_text().strip() == found[1].strip()
