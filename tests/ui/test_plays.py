"""A play on every screen. They share a browser and a server, which cost more than a play. ``make proof`` has more."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.ui.screens import Screen
from tests.ui.served import Served, quoted
from tests.ui.watched import Watch


def failed(shop: Served, *ids: str) -> None:
    """Start orders whose cards are declined, and wait until they have failed."""
    for run in ids:
        shop.start("order", run, order_id=run, cents=200_000)
    for run in ids:
        shop.until(run, "failed")


def asking(shop: Served, name: str) -> None:
    """Start an order and wait until it asks."""
    shop.start("order", f"order-{name}", order_id=name)
    shop.until_event(f"order-{name}", "ask_opened")


def test_a_failed_run_opens_at_its_failure_and_is_retried(page: Page, shop: Served) -> None:
    failed(shop, "declined")
    page.goto("/runs/declined")

    expect(page).to_have_title(re.compile("✗ declined · Weft"))
    expect(page).to_have_url(re.compile("sel=charge"))
    expect(page.get_by_role("region", name="Selected: charge")).to_contain_text("PermissionError: card declined")
    expect(page.get_by_role("button", name=re.compile("^charge, failed"))).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Why it stands").get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Back")).to_be_focused()
    expect(dialog.get_by_role("status")).to_contain_text("charge")
    dialog.get_by_label("Reason").fill("the bank called")
    dialog.get_by_role("button", name="Retry", exact=True).click()

    expect(dialog).to_have_count(0)
    retried = shop.until_event("declined", "run_retried")
    events = shop.ask("GET", f"/runs/declined/events?after={retried - 1}&limit=1")["events"]
    assert events[0]["data"]["reason"] == "the bank called"
    expect(page.locator(".tl-scroll")).to_have_attribute("data-following", "true")


def test_runs_and_a_run_are_useful_after_six_requests(page: Page, shop: Served, watch: Watch) -> None:
    asking(shop, "budget")
    for screen in (
        Screen("runs", "/runs?q=order-budget", "order-budget", "/runs?"),
        Screen("run", "/runs/order-budget", "waits for an answer", "/runs/order-budget/explain"),
    ):
        asked = screen.asked_until_useful(page, watch)
        assert len(asked) <= screen.requests, asked


def test_a_line_of_the_log_selects_its_place_and_goes_to_its_event(page: Page, shop: Served) -> None:
    asking(shop, "lines")
    page.goto("/runs/order-lines")
    log, timeline = page.get_by_role("grid", name="Log"), page.get_by_role("treegrid", name="Timeline")
    expect(log.get_by_role("row").last).to_contain_text("asks")

    log.get_by_role("row", name=re.compile("reserve succeeded")).click()

    expect(page).to_have_url(re.compile("sel=reserve"))
    expect(timeline.get_by_role("row", name=re.compile("^reserve"))).to_have_attribute("aria-selected", "true")
    log.press("Enter")
    expect(page).to_have_url(re.compile(r"at=\d+"))
    expect(page.get_by_role("status").filter(has_text="as it stood after event")).to_be_visible()
    expect(timeline.get_by_role("row")).to_have_count(2)

    page.get_by_role("tab", name="Data").click()
    expect(page.locator("#bottom-panel").get_by_role("region", name="Input")).to_contain_text("lines")
    page.keyboard.press("]")
    expect(timeline.get_by_role("row")).to_have_count(3)


def test_runs_are_filtered_and_opened(page: Page, shop: Served) -> None:
    failed(shop, "mouse-0", "mouse-1")
    shop.start("quick", "mouse-quick", name="ann")
    shop.until("mouse-quick", "completed")

    page.goto("/runs?q=mouse")
    expect(page.get_by_role("link", name="mouse-quick")).to_be_visible()
    page.get_by_role("button", name=re.compile("failed 2")).click()

    expect(page.get_by_role("link", name="mouse-quick")).to_have_count(0)
    expect(page).to_have_url(re.compile("status=failed"))
    row = page.get_by_role("row").filter(has_text="mouse-1")
    expect(row).to_contain_text("card declined")
    row.get_by_role("link", name="mouse-1").click()
    expect(page).to_have_url(re.compile("/runs/mouse-1"))


def test_a_run_is_started_by_its_form_and_seen_done(page: Page, shop: Served) -> None:
    page.goto("/runs?q=by-form")
    expect(page.get_by_text("No run that begins with")).to_be_visible()

    page.keyboard.press("n")
    form = page.get_by_role("dialog")
    form.get_by_label("Workflow").select_option("quick")
    form.get_by_label("name").fill("ann")
    expect(form.get_by_label("count")).to_have_value("1")
    form.get_by_text("Id, attributes, delay").click()
    form.get_by_label("Id", exact=False).first.fill("by-form-1")
    form.get_by_role("button", name="Start").click()

    expect(page).to_have_url(re.compile("/runs/by-form-1"))
    shop.until("by-form-1", "completed")
    assert shop.run("by-form-1")["output"] == "hello ann"


def test_a_question_is_answered_with_its_form(page: Page, shop: Served) -> None:
    asking(shop, "desk")
    page.goto(f"/inbox/{quoted('order-desk:approve')}")

    page.get_by_label("discount").fill("5")
    page.get_by_label("Reason").fill("a good customer")
    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()

    expect(page.get_by_role("dialog")).to_have_count(0)
    shop.until("order-desk", "completed")
    decided = shop.ask("GET", f"/approvals/{quoted('order-desk:approve')}")
    assert [(vote["by"], vote["reason"], vote["form"]["discount"]) for vote in decided["votes"]] == [
        ("ann", "a good customer", 5)
    ]


def test_a_goal_is_planned_given_what_it_lacks_and_run(page: Page, shop: Served) -> None:
    page.goto("/goals")
    page.get_by_label("Add a goal").fill("send_invoice")
    page.get_by_label("Add a goal").press("Enter")

    expect(page.get_by_text("order_id (string) is missing")).to_be_visible()
    page.get_by_role("button", name="I will give it").click()
    expect(page.get_by_text("is missing")).to_have_count(0)
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("order_id").fill("o-77")
    dialog.get_by_label("Id of the run").fill("invoice-77")
    dialog.get_by_role("button", name="Run").click()

    expect(page).to_have_url(re.compile("/runs/invoice-77"))
    expect(page.get_by_title("goal, version 1")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("^goal "))).to_have_count(
        0
    )  # it would lead to a workflow that nobody has
    assert shop.until("invoice-77", "completed")["input"]["order_id"] == "o-77"


def test_a_workflow_is_found_and_shows_its_source_as_written(page: Page) -> None:
    page.goto("/workflows")
    page.get_by_role("link", name="leads", exact=True).click()

    expect(page.get_by_role("heading", name="leads")).to_be_visible()
    expect(page.get_by_text("# Leads: small companies are nurtured")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^enrich"))).to_be_visible()


def test_the_host_that_answers_is_shown_and_a_queue_is_limited(page: Page, shop: Served) -> None:
    page.goto("/operations#queues")

    expect(page.get_by_role("table", name="Hosts").get_by_text("answers this page")).to_be_visible()
    page.get_by_role("table", name="Queues").get_by_role("button", name="Limit").first.click()
    page.get_by_label("Tasks at once").fill("7")
    page.get_by_role("button", name="Set the limit").click()

    expect(page.get_by_role("table", name="Queues").get_by_text("7 at once")).to_be_visible()
    assert [queue["concurrency"] for queue in shop.ask("GET", "/queues")["queues"]] == [7]
