"""The frame: what is typed at once is not lost, menus open at their buttons, and a clock that is off is named."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served


@pytest.mark.proof
def test_what_is_typed_right_after_the_palette_was_called_is_in_its_field(page: Page, shop: Served) -> None:
    shop.start("patient", "order-typed", name="a")
    page.goto("/runs/order-typed")
    expect(page.get_by_role("heading", level=1)).to_have_text("order-typed")

    page.keyboard.press("Control+k")
    page.keyboard.type("order-typ")

    expect(page.get_by_role("combobox", name="Find")).to_have_value("order-typ")
    expect(page.get_by_role("option", name=re.compile("^run order-typed"))).to_be_visible()
    expect(page).to_have_url("/runs/order-typed")


@pytest.mark.proof
def test_the_menu_of_the_person_opens_below_its_button(page: Page, shop: Served) -> None:
    page.goto("/runs")
    button = page.get_by_role("button", name=re.compile("▾$")).filter(has_text="local")
    button.click()
    menu = page.locator("#person")
    expect(menu).to_be_visible()

    at, shown = button.bounding_box(), menu.bounding_box()
    assert at is not None
    assert shown is not None
    assert shown["x"] + shown["width"] > at["x"]
    assert at["y"] + at["height"] - 4 <= shown["y"] <= at["y"] + at["height"] + 20
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.proof
def test_ages_are_of_the_server_and_a_clock_that_is_off_is_named(page: Page, shop: Served) -> None:
    shop.start("quick", "clock-1", name="ann")
    shop.until("clock-1", "completed")
    page.clock.install(time=dt.datetime.now(dt.UTC) + dt.timedelta(hours=3))
    page.goto("/runs?q=clock-1")

    expect(page.get_by_text(re.compile("clock is (3 h|2 h 59)"))).to_be_visible()
    row = page.get_by_role("row").filter(has_text="clock-1")
    expect(row).to_contain_text(re.compile("now|s ago|min ago"))
    expect(row).not_to_contain_text("h ago")


@pytest.mark.proof
def test_two_keys_lead_to_each_screen_unless_single_keys_are_off(page: Page) -> None:
    page.goto("/runs")
    expect(page.get_by_role("button", name="Start a run")).to_be_visible()
    for key, screen in (("i", "inbox"), ("w", "workflows"), ("g", "goals"), ("o", "operations"), ("r", "runs")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f"/{screen}"))
        if screen == "goals":  # here o is a key of the picture
            page.get_by_role("application").focus()

    page.get_by_role("button", name="local").click()
    page.get_by_label("Single keys act").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.keyboard.press("Control+k")

    expect(page.get_by_role("dialog")).to_have_count(1)
    expect(page.get_by_role("combobox", name="Find")).to_be_visible()


@pytest.mark.proof
def test_times_change_between_the_local_zone_and_utc_everywhere(page: Page, shop: Served) -> None:
    shop.start("quick", "zoned", name="a")
    shop.until("zoned", "completed")
    page.goto("/runs/zoned")
    time = page.get_by_role("row", name=re.compile("the run of quick started")).get_by_role("button")
    expect(time).to_have_attribute("title", re.compile(r" UTC\+0$"))

    page.get_by_role("banner").get_by_role("button", name=re.compile("UTC")).click()

    expect(time).to_have_attribute("title", re.compile(" UTC$"))
