"""Runs: filter and open, by mouse and by keyboard; start by form; retry many; texts from hell; the palette."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.conftest import PHONE
from tests.ui.served import Served
from tests.ui.watched import Watch

HELL = "<b>bold</b>&amp; 🪡 ../..//\"quoted\" 'x' " + "long" * 60


def failed(shop: Served, name: str, count: int) -> list[str]:
    """Start orders whose cards are declined, and wait until they have failed."""
    ids = [shop.start("order", f"{name}-{at}", order_id=f"{name}-{at}", cents=200_000) for at in range(count)]
    for run in ids:
        shop.until(run, "failed")
    return ids


@pytest.mark.proof
def test_a_wrong_input_is_refused_at_its_field_and_nothing_is_lost(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("status of 422")
    page.goto("/runs?workflow=quick")
    page.get_by_role("button", name="Start a run").click()
    form = page.get_by_role("dialog")
    form.get_by_label("count").fill("many")
    form.get_by_role("button", name="Start").click()
    expect(form.get_by_text("This is not a number.")).to_be_visible()

    form.get_by_label("count").fill("2")
    form.get_by_role("button", name="Start").click()

    expect(form.get_by_text("This is needed.")).to_be_visible()
    expect(form.get_by_label("count")).to_have_value("2")


@pytest.mark.proof
def test_by_keyboard_alone(page: Page, shop: Served) -> None:
    failed(shop, "keys", 3)
    page.goto("/runs")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("status:failed keys")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=keys"))
    expect(page.get_by_role("link", name=re.compile("^keys-"))).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_text("2 marked")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("none marked")).to_be_visible()
    expect(page.get_by_role("link", name="keys-1")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/runs/keys-1"))


@pytest.mark.proof
def test_all_that_match_are_retried_after_a_dry_run(page: Page, shop: Served) -> None:
    ids = failed(shop, "again", 3)
    before = [shop.run(run)["seq"] for run in ids]
    page.goto("/runs?status=failed&q=again")
    page.get_by_role("button", name="all 3 that match").click()

    page.get_by_role("region", name="What to do").get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("3 would be retried")).to_be_visible()
    dialog.get_by_label("Reason").fill("cards work again")
    dialog.get_by_role("button", name="Retry").click()

    expect(page).to_have_url(re.compile(r"/runs/weft\.|/runs/bulk"))
    for run, seq in zip(ids, before, strict=True):
        shop.until_event(run, "run_retried")
        assert shop.run(run)["seq"] > seq


@pytest.mark.proof
def test_all_runs_of_a_list_without_a_filter_cannot_be_chosen(page: Page, shop: Served) -> None:
    failed(shop, "unfiltered", 1)
    page.goto("/runs")
    bar = page.get_by_role("region", name="What to do")
    expect(bar.get_by_text("filter the list to choose all that match")).to_be_visible()
    expect(bar.get_by_role("button", name="that match")).to_have_count(0)

    page.goto("/runs?status=failed&q=unfiltered")
    bar.get_by_role("button", name="all 1 that match").click()
    expect(bar.get_by_role("button", name="Cancel")).to_be_enabled()


@pytest.mark.proof
def test_new_runs_join_and_rows_change_in_place(page: Page, shop: Served) -> None:
    shop.start("patient", "live-1", name="a")
    page.goto("/runs?q=live")
    expect(page.get_by_role("row").filter(has_text="live-1")).to_contain_text('waits for a message "quote"')

    shop.start("patient", "live-2", name="b")
    expect(page.get_by_role("row").nth(1)).to_contain_text("live-2")
    shop.ask("POST", "/runs/live-1/cancel", {"reason": "enough"})

    expect(page.get_by_role("row").filter(has_text="live-1")).to_contain_text("cancelled")
    expect(page.get_by_role("row").nth(2)).to_contain_text("live-1")


@pytest.mark.proof
def test_the_palette_finds_a_run_and_a_workflow(page: Page, shop: Served) -> None:
    shop.start("quick", "palette-7", name="ann")
    page.goto("/runs")
    expect(page.get_by_role("table", name="Runs")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("palette-")
    expect(page.get_by_role("option", name=re.compile("palette-7"))).to_be_visible()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/runs/palette-7"))


@pytest.mark.proof
def test_a_span_of_the_chart_is_selected_by_dragging(page: Page, shop: Served) -> None:
    shop.start("quick", "charted", name="a")
    page.goto("/runs")
    bars = page.locator(".bars")
    expect(bars).to_be_visible()
    box = bars.bounding_box()
    assert box is not None
    right, middle = box["x"] + box["width"], box["y"] + box["height"] / 2

    page.mouse.move(right - 30, middle)
    page.mouse.down()
    page.mouse.move(right - 2, middle, steps=4)
    page.mouse.up()

    expect(page).to_have_url(re.compile("since=.*until="))
    expect(page.get_by_role("link", name="charted", exact=True)).to_be_visible()


@pytest.mark.proof
def test_a_view_is_saved_for_everybody(page: Page, shop: Served) -> None:
    page.goto("/runs?status=failed&workflow=order")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name").fill("Declined cards")
    page.get_by_label("everybody").check()
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_role("button", name="Declined cards")).to_be_visible()
    assert [view["name"] for view in shop.ask("GET", "/views")["views"]] == ["Declined cards"]


@pytest.mark.proof
def test_texts_from_hell_are_text_and_no_rule_is_broken(page: Page, shop: Served) -> None:
    body = {"workflow": "quick", "id": HELL.strip(), "input": {"name": HELL}, "attributes": {"mood": HELL}}
    shop.ask("POST", "/runs", body)
    shop.until(HELL.strip(), "completed")
    page.goto("/runs")
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("mood").check()
    page.keyboard.press("Escape")

    row = page.get_by_role("row").filter(has_text="<b>bold</b>")
    expect(row).to_be_visible()
    expect(row.locator("b")).to_have_count(0)
    assert violations_in_every_look(page) == []
    page.get_by_role("button", name="Start a run").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Start")).to_be_visible()
    assert violations_in_every_look(page) == []


@pytest.mark.proof
def test_bad_parameters_are_named(page: Page) -> None:
    page.goto("/runs?since=soon&status=fnord&theme=x")

    expect(page.get_by_text("Ignored in the address")).to_contain_text("since:soon")
    expect(page.get_by_text("Ignored in the address")).to_contain_text("status:fnord")


@pytest.mark.proof
class TestOnAPhone:
    @pytest.fixture
    def viewport(self) -> dict[str, int]:
        return PHONE

    def test_nothing_scrolls_sideways_and_no_rule_is_broken(self, page: Page, shop: Served) -> None:
        shop.start("patient", "phone-1", name="a")
        page.goto("/runs?q=phone")
        expect(page.get_by_role("link", name="phone-1")).to_be_visible()

        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert violations_in_every_look(page) == []

    def test_every_state_and_the_workflow_of_a_run_are_in_sight(self, page: Page, shop: Served) -> None:
        shop.start("quick", "phone-done", name="a")
        shop.until("phone-done", "completed")
        shop.start("patient", "phone-open", name="a")
        page.goto("/runs?status=running,pending,paused,held,cancelling,failed,completed,cancelled")

        chips = page.get_by_role("group", name="States").get_by_role("button")
        expect(chips).to_have_count(8)
        for chip in chips.all():
            expect(chip).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("row", name=re.compile("phone-done")).get_by_text("quick")).to_be_visible()
        expect(
            page.get_by_role("row", name=re.compile("phone-open")).get_by_text("waits for a message")
        ).to_be_visible()
        expect(page.get_by_role("row", name=re.compile("phone-open")).get_by_text("patient")).to_be_hidden()
