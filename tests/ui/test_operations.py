"""Operations: what runs Weft, and what waits for whoever runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import PHONE
from tests.ui.served import Served

ASKED_AGAIN_MS = 4_000
"""A page on this machine asks who it is every three seconds."""


@pytest.mark.proof
def test_the_first_key_is_shown_on_a_page_that_stays_signed_in(browser: Browser, tmp_path: Path) -> None:
    served = Served(tmp_path)
    served.start_server()
    context = browser.new_context(base_url=served.url)
    try:
        page = context.new_page()
        page.goto("/operations#keys")
        page.get_by_role("button", name="Create a key").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Name").fill("ann")
        form.get_by_label("admin").check()
        form.get_by_role("button", name="Create").dblclick()
        secret = page.get_by_role("dialog", name="The key ann").locator(".secret")
        expect(secret).to_contain_text("weft_")

        with page.expect_response("**/api/v1/me", timeout=ASKED_AGAIN_MS * 5):
            page.wait_for_timeout(ASKED_AGAIN_MS)

        expect(page.get_by_role("dialog")).to_have_count(1)
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("table", name="Keys").get_by_role("row")).to_have_count(2)
        expect(page.get_by_role("button", name="ann")).to_be_visible()
    finally:
        context.close()
        served.stop_server()


@pytest.mark.proof
class TestDeadLetters:
    @pytest.fixture
    def shop(self, tmp_path: Path) -> Iterator[Served]:
        served = Served(tmp_path, program=Path(__file__).with_name("letters.py"))
        served.start_server()
        for number in range(3):
            served.start("sorting", f"sorting-{number}", parcel=f"parcel {number}")
            served.until(f"sorting-{number}", "failed")
        yield served
        served.stop_server()

    def test_all_that_are_shown_are_discarded_at_once(self, page: Page) -> None:
        page.goto("/operations")
        letters = page.get_by_role("table", name="Dead letters")
        expect(letters.get_by_role("row")).to_have_count(1 + 3)
        expect(letters).to_contain_text("parcel 2 has no address")

        page.get_by_role("button", name="Mark all that are shown").click()
        expect(page.get_by_text("3 dead letters marked")).to_be_visible()
        page.get_by_role("button", name="Discard").last.click()
        dialog = page.get_by_role("dialog", name="Discard 3 dead letters?")
        dialog.get_by_role("button", name="Discard").click()

        expect(page.get_by_text("No dead letters")).to_be_visible()


@pytest.mark.proof
class TestOnAPhone:
    @pytest.fixture
    def viewport(self) -> dict[str, int]:
        return PHONE

    def test_every_row_is_a_block_and_its_button_is_in_sight(self, page: Page) -> None:
        page.goto("/operations")

        limit = page.get_by_role("button", name="Limit").first
        limit.scroll_into_view_if_needed()
        expect(limit).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        wide = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
        assert page.evaluate(wide) == 0
