"""Texts from hell in every field that users fill: they are shown as text, nothing breaks and nothing runs."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served, quoted

MARKUP = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
FOREIGN = "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f680 e\u0301"
LONG = "long " * 2_000
SIZES = (4_000_000, 16 * 1024 * 1024 - 100)
"""The second is nearly the largest value there may be."""
LEVELS = 60


def nested(levels: int) -> Any:
    value: Any = "the innermost"
    for _ in range(levels):
        value = {"in": value}
    return value


HELL = {
    "markup": MARKUP,
    "foreign": FOREIGN,
    "long": LONG,
    "a/slash/../and ?query#hash%2F": "in the id",
}


def started(shop: Served, text: str, number: int) -> str:
    """Start an order with a text in its id, its input, its attributes and its question."""
    run = f"hell-{number}/{''.join(one for one in text[:60] if one.isprintable())}".strip()
    shop.start("order", run, order_id=text)
    shop.until_event(run, "ask_opened")
    return run


@pytest.mark.proof
@pytest.mark.parametrize("number", range(len(HELL)))
def test_a_text_is_shown_as_text_on_every_screen(page: Page, shop: Served, number: int) -> None:
    name, value = list(HELL.items())[number]
    text = name if value == "in the id" else value
    run = started(shop, text, number)

    page.goto(f"/runs?q=hell-{number}")
    link = page.get_by_role("link", name=run, exact=True)
    expect(link).to_be_visible()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(run[:20])
    page.goto(f"/runs/{quoted(run)}?tab=data")
    expect(page.get_by_role("heading", level=1)).to_contain_text(run[:20])
    page.goto(f"/inbox/{quoted(f'{run}:approve')}")
    expect(page.get_by_role("heading", name="Ship order").first).to_contain_text(text[:40])

    assert page.locator("main img, main script").count() == 0
    assert "ran" not in page.title().split()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.proof
@pytest.mark.parametrize("text", [MARKUP, FOREIGN, LONG[:900]], ids=["markup", "foreign", "long"])
def test_what_people_type_is_shown_as_text(page: Page, shop: Served, text: str) -> None:
    run = f"typed-{len(text)}"
    shop.start("order", run, order_id=run)
    shop.until_event(run, "ask_opened")
    page.goto(f"/runs/{run}")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill(text)
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".run-head .status")).to_contain_text("paused")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator("#bottom-panel").get_by_text(text.strip()[-20:]).first).to_be_attached()
    shop.ask("POST", f"/runs/{run}/resume", {})

    page.goto(f"/inbox/{quoted(f'{run}:approve')}")
    page.get_by_label("note").fill(text)
    page.get_by_label("Reason").fill(text)
    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Your name").fill(text[:100])
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    shop.until(run, "completed")
    page.goto(f"/inbox/{quoted(f'{run}:approve')}")
    expect(page.locator(".votes")).to_contain_text(text.strip()[-20:])
    (vote,) = shop.ask("GET", f"/approvals/{quoted(f'{run}:approve')}")["votes"]
    assert (vote["reason"], vote["form"]["note"]) == (text, text)

    page.goto(f"/goals?want=send_invoice&fact={quoted('order_id=' + text[:500])}")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()
    page.goto(f"/runs?q={quoted(text[:200])}")
    expect(page.get_by_text("No run that begins with")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.insert_text("unheard of " + text[:80])
    expect(page.get_by_text("Nothing begins with")).to_be_visible()

    assert page.locator("main img, main script, dialog img, dialog script").count() == 0
    assert "ran" not in page.title().split()


@pytest.mark.proof
@pytest.mark.parametrize("size", SIZES)
def test_a_large_value_shows_its_head_and_its_size(page: Page, shop: Served, size: int) -> None:
    shop.start("large", f"huge-{size}", size=size)
    shop.until(f"huge-{size}", "completed")

    page.goto(f"/runs/huge-{size}?tab=data")

    expect(page.get_by_role("link", name="Download").first).to_be_visible()
    assert page.evaluate("document.body.textContent.length") < 1_000_000


@pytest.mark.proof
def test_a_value_of_sixty_levels_can_be_opened(page: Page, shop: Served) -> None:
    shop.start("patient", "deep-mail", name="ann")
    shop.ask("POST", "/runs/deep-mail/messages", {"name": "nested", "body": nested(LEVELS)})

    page.goto("/runs/deep-mail?tab=log")

    expect(page.get_by_role("heading", level=1)).to_contain_text("deep-mail")
    expect(page.get_by_text("nested").first).to_be_visible()
