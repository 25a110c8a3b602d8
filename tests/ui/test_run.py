"""The Run screen: a failure opens at its place, actions say what they do, and what is chosen is in the address."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import PHONE
from tests.ui.served import Served, quoted
from tests.ui.watched import Watch


def failed(shop: Served, name: str) -> str:
    """Start an order whose card is declined, and wait until it has failed; return its path."""
    shop.start("order", name, order_id=name, cents=200_000)
    shop.until(name, "failed")
    return f"/runs/{quoted(name)}"


def asking(shop: Served, name: str) -> str:
    """Start an order and wait until it asks; return its path."""
    shop.start("order", name, order_id=name)
    shop.until_event(name, "ask_opened")
    return f"/runs/{quoted(name)}"


@pytest.mark.proof
def test_a_run_is_cancelled_after_a_look_at_what_that_does(page: Page, shop: Served) -> None:
    page.goto(asking(shop, "unwanted"))

    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text("Gives up 1 open place")
    dialog.get_by_text("Copy as command").click()
    expect(dialog.get_by_text("weft cancel unwanted")).to_be_visible()
    dialog.get_by_role("button", name="Cancel the run").click()

    expect(page.locator(".run-head .status")).to_contain_text("cancelled")
    assert shop.until("unwanted", "cancelled")["status"] == "cancelled"


@pytest.mark.proof
def test_pause_and_resume_show_what_the_server_says(page: Page, shop: Served) -> None:
    shop.start("patient", "patient-1", name="p")
    shop.until_event("patient-1", "message_awaited")
    page.goto("/runs/patient-1")

    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".run-head .status")).to_contain_text("paused")
    page.locator(".run-head").get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator(".run-head .status")).to_contain_text("running")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_label("Content, as JSON").fill("42")
    page.get_by_role("dialog").get_by_role("button", name="Send").click()
    expect(page.get_by_label("Why it stands")).to_contain_text(re.compile(r"in 1 d|in 2 d"))


@pytest.mark.proof
def test_arrow_keys_walk_the_picture_and_the_outline(page: Page, shop: Served) -> None:
    page.goto(asking(shop, "walked"))
    picture = page.get_by_role("application")
    expect(picture.get_by_role("button", name=re.compile("^approve, waiting"))).to_be_visible()

    picture.focus()
    for name in ("reserve", "charge", "approve"):
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("region", name=f"Selected: {name}")).to_be_visible()
    page.keyboard.press("o")
    expect(page.get_by_role("treeitem", name=re.compile("^approve"))).to_have_attribute("aria-selected", "true")
    page.get_by_role("tree", name=re.compile("Outline")).focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("region", name="Selected: charge")).to_be_visible()
    page.reload()
    expect(page.get_by_role("treeitem", name=re.compile("^charge"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name=re.compile("Selected"))).to_have_count(0)


@pytest.mark.proof
def test_the_failed_ones_among_a_thousand_are_found(page: Page, shop: Served) -> None:
    shop.start("many", "many-1", count=1000, missing=3)
    shop.until("many-1", "failed")
    page.goto("/runs/many-1")

    places = page.get_by_role("table", name="Places")
    expect(places.get_by_role("row").first).to_contain_text("is not on its shelf")
    places.get_by_role("button").first.click()
    expect(page.get_by_role("region", name="Selected: pack")).to_contain_text("ValueError")
    expect(page).to_have_url(re.compile(r"sel=parcels%2F%7E\d+%2Fpack"))


@pytest.mark.proof
def test_an_event_beyond_the_last_one_leads_to_now(page: Page, shop: Served) -> None:
    path = failed(shop, "beyond")
    page.goto(f"{path}?at=9999")

    expect(page.get_by_text("There is no event 9,999").first).to_be_visible()
    expect(page).not_to_have_url(re.compile("at="))
    expect(page.get_by_text("no host has taken")).to_have_count(0)


@pytest.mark.proof
def test_keys_go_into_a_child_and_out_and_through_the_events_of_the_selection(page: Page, shop: Served) -> None:
    shop.start("parent", "keyed", name="k")
    shop.until("k-quick", "completed")
    page.goto("/runs/keyed?sel=quick")
    expect(page.get_by_label("Selected: quick")).to_be_visible()
    page.get_by_role("application").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/k-quick"))
    expect(page.get_by_role("navigation", name="Path of the run").get_by_role("link", name="keyed")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page).to_have_url(re.compile("/runs/keyed"))

    page.goto(f"{asking(shop, 'keyed-order')}?sel=reserve")
    expect(page.get_by_label("Selected: reserve")).to_be_visible()
    page.keyboard.press("Shift+BracketLeft")
    expect(page).to_have_url(re.compile("at=4"))
    page.keyboard.press("Shift+BracketLeft")
    expect(page).to_have_url(re.compile("at=3"))
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile("at=4"))


@pytest.mark.proof
def test_the_palette_offers_what_may_be_done_to_the_run(page: Page, shop: Served) -> None:
    page.goto(asking(shop, "steered"))
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find").fill("pause")
    expect(page.get_by_role("option", name=re.compile("Pause steered"))).to_be_visible()
    page.keyboard.press("Enter")

    expect(page.get_by_role("dialog", name=re.compile("Pause steered"))).to_be_visible()


@pytest.mark.proof
def test_the_past_has_only_a_fork_and_a_link(page: Page, shop: Served) -> None:
    path = asking(shop, "earlier")
    page.goto(f"{path}?at=3")

    expect(page.locator(".past-note")).to_contain_text("as it stood after event 3 of")
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Fork here").first).to_be_visible()
    page.get_by_role("button", name="Back to now").first.click()
    expect(page).not_to_have_url(re.compile("at="))
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_visible()


@pytest.mark.proof
def test_a_place_of_the_past_has_taken_as_long_as_it_had_then(page: Page, shop: Served) -> None:
    path = asking(shop, "brief")
    begun = shop.until_event("brief", "task_scheduled")
    page.goto(f"{path}?at={begun}&sel=reserve")

    facts = page.locator(".inspector .facts")
    expect(facts).to_contain_text("working")
    expect(facts).to_contain_text("(0 ms)")


def test_a_wait_for_another_attempt_says_what_failed(page: Page, shop: Served) -> None:
    shop.start("delivery", "late", parcel="p-1")
    shop.until_event("late", "task_failed")
    page.goto("/runs/late")

    waits = page.get_by_label("Why it stands as it stands")
    expect(waits).to_contain_text("waits for attempt 2 of 4 of deliver")
    expect(waits).to_contain_text("attempt 1 failed: ConnectionError: no route to the warehouse")


@pytest.mark.proof
def test_a_long_sentence_begins_beside_its_sign(page: Page, shop: Served) -> None:
    page.goto(failed(shop, "a-very-long-id-" * 20))

    line = page.locator(".explain .row").first
    expect(line).to_contain_text("card declined")
    sign, text = line.locator(".sign").bounding_box(), line.locator(".wrap").bounding_box()
    assert sign is not None
    assert text is not None
    assert text["height"] > 2 * sign["height"]
    assert abs(sign["y"] - text["y"]) < sign["height"] / 2


@pytest.mark.proof
def test_a_fork_with_another_input_is_compared_with_its_original(page: Page, shop: Served) -> None:
    page.goto(failed(shop, "forked"))

    page.get_by_role("button", name="Fork before it").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Arguments of the run that change").fill('{"cents": 100}')
    dialog.get_by_label("Id", exact=True).fill("forked-2")
    expect(dialog.get_by_role("status")).to_contain_text("It would work")
    dialog.get_by_role("button", name="Fork", exact=True).click()
    expect(page).to_have_url(re.compile("/runs/forked-2"))
    page.get_by_role("link", name="Compare").click()

    expect(page.get_by_text("They part at")).to_contain_text("the run")
    expect(page.get_by_role("row", name=re.compile("^charge"))).to_contain_text("failed, in B done")
    expect(page.get_by_role("row", name=re.compile("^approve"))).to_contain_text("only in B")


@pytest.mark.proof
def test_the_tree_leads_from_the_child_to_its_parent(page: Page, shop: Served) -> None:
    shop.start("parent", "mother", name="m")
    shop.until("m-quick", "completed")
    page.goto("/runs/m-quick")

    tree = page.get_by_role("navigation", name="Runs of this tree")
    expect(tree.get_by_role("link", name="m-order")).to_be_visible()
    page.keyboard.press("Backspace")
    expect(page).to_have_url(re.compile("/runs/mother"))
    expect(page.get_by_label("Why it stands")).to_contain_text("m-order")


@pytest.mark.proof
def test_hostile_ids_are_text(page: Page, shop: Served) -> None:
    name = "a/b <img src=x onerror=alert(1)> ü%20?#&"
    page.goto(asking(shop, name))

    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_role("application").get_by_role("button", name=re.compile("^approve"))).to_be_visible()


@pytest.mark.proof
def test_a_run_that_is_not_there_names_those_that_begin_alike(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("404")
    asking(shop, "similar-1")
    page.goto("/runs/similar-12")

    expect(page.get_by_role("heading", level=1)).to_have_text("There is no run similar-12")
    page.get_by_role("link", name="similar-1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("similar-1")


@pytest.mark.proof
class TestOnAPhone:
    @pytest.fixture
    def viewport(self) -> dict[str, int]:
        return PHONE

    def test_panes_are_tabs_and_the_explanation_stays(self, page: Page, shop: Served) -> None:
        page.goto(asking(shop, "pocket"))

        expect(page.get_by_role("application")).to_be_visible()
        page.get_by_role("group", name="What is shown").get_by_role("button", name="Log").click()
        expect(page.get_by_role("application")).to_be_hidden()
        expect(page.get_by_label("Why it stands")).to_contain_text("waits for an answer")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        page.goto("/runs/pocket?pane=data")
        expect(page.locator("#bottom-panel").get_by_role("region", name="Input")).to_contain_text("pocket")
        expect(page.get_by_role("tab")).to_have_count(0)

    def test_a_tab_that_was_chosen_on_a_wide_screen_is_shown_and_left_again(self, page: Page, shop: Served) -> None:
        page.goto(f"{asking(shop, 'sent-to-a-phone')}?tab=data")

        expect(page.locator("#bottom-panel").get_by_role("region", name="Input")).to_contain_text("sent-to-a-phone")
        page.get_by_role("group", name="What is shown").get_by_role("button", name="Picture").click()
        expect(page.get_by_role("application")).to_be_visible()

    def test_the_picture_opens_as_a_whole_also_below_a_long_explanation(self, page: Page, shop: Served) -> None:
        shop.start("leads", "whole", company="Acme", domains=["acme.example"])
        shop.until_event("whole", "ask_opened")
        page.goto("/runs/whole")
        expect(page.get_by_label("Why it stands")).to_contain_text("waits for an answer")
        expect_in_sight(page, "nurture")
        page.goto("/runs/whole?pane=log")
        expect(page.locator("#bottom-panel").get_by_text("Nurture Acme?").first).to_be_visible()
        page.get_by_role("group", name="What is shown").get_by_role("button", name="Picture").click()
        expect_in_sight(page, "nurture")

    def test_a_pane_is_not_covered_by_what_is_selected(self, page: Page, shop: Served) -> None:
        path = failed(shop, "covered")
        page.goto(f"{path}?tab=data")
        details = page.get_by_role("heading", name="charge", level=2)
        data = page.locator("#bottom-panel").get_by_role("region", name="Input")
        expect(data).to_contain_text("covered")
        expect(details).to_have_count(0)
        page.goto(path)
        expect(details).to_be_visible()
        page.get_by_role("group", name="What is shown").get_by_role("button", name="Data").click()
        expect(details).to_have_count(0)
        expect(data).to_be_visible()


def expect_in_sight(page: Page, box: str) -> None:
    """Wait until a box lies within the picture."""
    expect(page.locator(f".picture .react-flow__node[data-id='b:{box}']")).to_be_in_viewport(ratio=0.99)
