"""The Inbox: a person answers, from a desk and from a phone; two at once; a question that is decided meanwhile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import PHONE
from tests.ui.served import Served, quoted
from tests.ui.watched import Watch

MANY = 120
ROWS_MAX = 80


def asked(shop: Served, name: str, cents: int = 4200) -> str:
    """Start an order and wait until it asks; return the path of its question."""
    shop.start("order", f"order-{name}", order_id=name, cents=cents)
    shop.until_event(f"order-{name}", "ask_opened")
    return f"/inbox/{quoted(f'order-{name}:approve')}"


@pytest.mark.proof
def test_by_keyboard_alone(page: Page, shop: Served) -> None:
    asked(shop, "keys")
    page.goto("/inbox?q=keys")
    expect(page.get_by_role("link", name="Ship order keys?")).to_be_visible()

    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Ship order keys?")).to_be_visible()
    page.keyboard.press("r")
    page.get_by_label("Your name").fill("bob")
    page.keyboard.press("Enter")

    shop.until("order-keys", "completed")
    assert shop.run("order-keys")["output"] == "rejected"


@pytest.mark.proof
def test_enter_sends_an_answer_with_a_form(page: Page, shop: Served) -> None:
    for name in ("enter-1", "enter-2"):
        asked(shop, name)
    page.goto("/inbox?q=enter-")
    page.get_by_role("link", name="Ship order enter-1?").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("note")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_label("Your name")).to_be_focused()
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Ship order enter-2?")).to_be_visible()

    page.keyboard.press("a")
    expect(page.get_by_role("dialog").get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")

    for name in ("enter-1", "enter-2"):
        assert shop.until(f"order-{name}", "completed")["output"] == f"shipped {name}"


@pytest.mark.proof
def test_what_was_typed_survives_a_reload_and_a_wrong_form_keeps_it(page: Page, shop: Served) -> None:
    path = asked(shop, "draft")
    page.goto(path)
    page.get_by_label("discount").fill("many")
    page.get_by_label("Reason").fill("typed <b>before</b>")

    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()

    expect(page.get_by_label("discount")).to_have_value("many")
    expect(page.get_by_label("Reason")).to_have_value("typed <b>before</b>")
    assert shop.run("order-draft")["status"] == "running"


@pytest.mark.proof
def test_somebody_else_was_faster(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("409")
    page.goto(asked(shop, "fast"))
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()

    shop.ask("POST", f"/approvals/{quoted('order-fast:approve')}/decision", {"approved": False, "by": "bob"})

    expect(page.get_by_text("bob has rejected it.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


@pytest.mark.proof
def test_what_was_typed_is_shown_when_somebody_else_was_faster(page: Page, shop: Served) -> None:
    page.goto(asked(shop, "slow"))
    page.get_by_label("note").fill("wrap it twice")
    page.get_by_label("Reason").fill("a good customer")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("dialog")).to_be_visible()

    shop.ask("POST", f"/approvals/{quoted('order-slow:approve')}/decision", {"approved": False, "by": "bob"})

    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("bob has rejected it.")).to_be_visible()
    unsent = page.get_by_role("region", name="Not sent")
    expect(unsent).to_contain_text("wrap it twice")
    expect(unsent).to_contain_text("a good customer")
    page.reload()
    expect(unsent).to_contain_text("a good customer")
    unsent.get_by_role("button", name="Forget it").click()
    expect(unsent).to_have_count(0)


@pytest.mark.proof
def test_a_question_that_changes_under_its_form_is_not_decided_and_nothing_typed_is_lost(
    page: Page, shop: Served, watch: Watch
) -> None:
    watch.expect("409")
    shop.start("offer", "offer-1", customer="ann")
    shop.until_event("offer-1", "ask_opened")
    page.goto(f"/inbox/{quoted('offer-1:approve')}")
    page.get_by_label("note").fill("by courier")
    page.get_by_label("Reason").fill("she asked twice")
    about = page.locator(".about")
    expect(about).to_contain_text("300")

    shop.ask("POST", "/runs/offer-1/pause", {})
    shop.until("offer-1", "paused")
    shop.ask("POST", "/runs/offer-1/set", {"place": "estimate", "output": 999})
    shop.ask("POST", "/runs/offer-1/resume", {})

    changed = page.get_by_role("alert").filter(has_text="The question has changed since you opened it")
    expect(changed).to_contain_text("999")
    expect(about).to_contain_text("300")
    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("nothing was decided").first).to_be_visible()
    assert shop.run("offer-1")["status"] == "running"

    changed.get_by_role("button", name="Show the new question").click()
    expect(about).to_contain_text("999")
    expect(page.get_by_label("note")).to_have_value("by courier")
    expect(page.get_by_label("Reason")).to_have_value("she asked twice")
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    assert shop.until("offer-1", "completed")["output"] == "sent"


@pytest.mark.proof
def test_questions_are_counted_and_chosen_by_workflow(page: Page, shop: Served) -> None:
    for name in ("counted-1", "counted-2"):
        asked(shop, name)
    shop.start("offer", "offer-counted", customer="ann")
    shop.until_event("offer-counted", "ask_opened")
    page.goto("/inbox?q=counted")
    expect(page.get_by_role("button", name="Mine 3", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="All 3", exact=True)).to_be_visible()

    page.get_by_label("Workflow").select_option("offer")

    expect(page.get_by_role("button", name="Mine 1", exact=True)).to_be_visible()
    questions = page.get_by_role("region", name="Questions").get_by_role("listitem")
    expect(questions).to_have_count(1)
    expect(questions).to_contain_text("Send ann the offer?")
    page.get_by_role("link", name="Send ann the offer?").click()
    expect(page).to_have_url("/inbox/offer-counted%3Aapprove?workflow=offer&q=counted")


@pytest.mark.proof
def test_of_many_questions_only_those_in_sight_are_in_the_page(page: Page, shop: Served) -> None:
    for number in range(MANY):
        shop.start("order", f"many-asked-{number}", order_id=f"many-{number}")
    shop.until_event(f"many-asked-{MANY - 1}", "ask_opened")
    page.goto("/inbox?q=many-asked")
    expect(page.get_by_role("button", name=f"All {MANY}", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=re.compile(r"open questions: 100\+$"))).to_be_visible()
    questions = page.get_by_role("region", name="Questions").get_by_role("listitem")
    assert questions.count() <= ROWS_MAX

    page.keyboard.press("k")

    last = questions.and_(page.locator(f"[aria-posinset='{MANY}']"))
    expect(last).to_be_in_viewport(ratio=1)
    expect(last.get_by_role("link")).to_have_attribute("aria-current", "true")
    assert questions.count() <= ROWS_MAX


@pytest.mark.proof
def test_an_inbox_without_questions_says_so(page: Page) -> None:
    page.goto("/inbox?q=nothing-has-this-name")

    expect(page.get_by_text("No open question has “nothing-has-this-name”")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(page).to_have_url("/inbox")


class TestOnAPhone:
    @pytest.fixture
    def viewport(self) -> dict[str, int]:
        return PHONE

    @pytest.mark.proof
    def test_a_link_opens_the_question_and_it_can_be_answered(self, page: Page, shop: Served) -> None:
        page.goto(asked(shop, "phone"))

        page.get_by_role("button", name="Approve").click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()

        shop.until("order-phone", "completed")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
