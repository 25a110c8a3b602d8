"""Dialogs and menus: no rule of accessibility is broken, Escape closes them, and the page behind them rests."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.served import Served, quoted

pytestmark = pytest.mark.proof

ASKING, FAILED = "dialogs-order", "dialogs-failed"


class Opened(NamedTuple):
    """A dialog: where it is, the button that opens it, and its title."""

    path: str
    button: str
    title: str


DIALOGS = (
    Opened(f"/runs/{ASKING}", "Pause", f"Pause {ASKING}?"),
    Opened(f"/runs/{ASKING}", "Cancel", f"Cancel {ASKING}?"),
    Opened(f"/runs/{ASKING}", "Fork", f"Fork {ASKING}"),
    Opened(f"/runs/{FAILED}", "Retry", f"Retry {FAILED}?"),
    Opened("/runs/dialogs-patient", "Send", "Send a message to dialogs-patient"),
    Opened("/runs", "Start a run", "Start a run"),
    Opened("/runs", "Find", "Find"),
    Opened(f"/inbox/{quoted(f'{ASKING}:approve')}", "✓ Approve", "Approve?"),
    Opened(f"/inbox/{quoted(f'{ASKING}:approve')}", "Link for a person", "Link for a person"),
    Opened("/workflows/leads", "Tag this version", "Tag this version"),
    Opened("/goals?want=send_invoice&given=order_id", "Run", "Run send_invoice"),
    Opened("/goals?want=send_invoice&given=order_id", "Freeze", "Freeze the plan"),
    Opened("/operations", "Create a key", "Create a key"),
    Opened("/operations", "Limit", "Limit"),
)


@pytest.fixture(scope="module", autouse=True)
def runs(shop: Served) -> None:
    shop.start("order", ASKING, order_id="dialogs")
    shop.start("order", FAILED, order_id="dialogs-failed", cents=200_000)
    shop.start("patient", "dialogs-patient", name="ann")
    shop.until_event(ASKING, "ask_opened")
    shop.until(FAILED, "failed")
    shop.until_event("dialogs-patient", "message_awaited")


@pytest.mark.parametrize("opened", DIALOGS, ids=[one.title.replace(" ", "-") for one in DIALOGS])
def test_a_dialog_breaks_no_rule_and_gives_the_focus_back(page: Page, opened: Opened) -> None:
    page.goto(opened.path)
    button = page.get_by_role("button", name=re.compile(f"^{re.escape(opened.button)}")).first
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=re.compile(re.escape(opened.title)))
    expect(dialog).to_be_visible()
    expect(dialog.locator(":focus")).to_have_count(1)

    assert violations_in_every_look(page) == []

    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()


def test_keys_of_the_page_do_nothing_while_a_dialog_is_open(page: Page) -> None:
    page.goto(f"/runs/{ASKING}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("typed")
    dialog.get_by_role("button", name="Back").focus()

    for key in ("g", "i", "[", "o", "?", "Control+k"):
        page.keyboard.press(key)

    expect(page.get_by_role("dialog")).to_have_count(1)
    expect(dialog.get_by_label("Reason")).to_have_value("typed")
    expect(page).to_have_url(re.compile(f"/runs/{ASKING}$"))


def test_the_menus_break_no_rule(page: Page) -> None:
    page.goto("/runs")
    for name in ("Views", "Columns", r"\+ filter", "local"):
        button = page.get_by_role("button", name=re.compile(f"^{name}"))
        button.click()
        assert violations_in_every_look(page) == [], name
        page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert violations_in_every_look(page) == []
    page.keyboard.press("Escape")
    page.goto(f"/runs/{ASKING}")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()
    page.keyboard.press(".")
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Copy link")).to_be_hidden()
    expect(page.locator("summary", has_text="⋯")).to_be_focused()
