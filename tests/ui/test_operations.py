"""Operations: what runs Weft, and what waits for whoever runs it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import PHONE


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
