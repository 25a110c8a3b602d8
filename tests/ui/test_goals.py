"""Goals: the plan in the catalogue, grey steps with reasons, what is missing, run and freeze."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served


@pytest.mark.proof
def test_every_step_outside_the_plan_says_why(page: Page) -> None:
    page.goto("/goals?want=send_invoice&given=order_id,total")

    expect(page.get_by_role("button", name=re.compile("^send_invoice.*goal"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^price.*satisfied: total given"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^render_invoice.*conditional"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^load_customer.*in the plan"))).to_be_visible()
    page.get_by_label("plan only").check()
    expect(page.get_by_role("button", name=re.compile("^price"))).to_have_count(0)
    expect(page).to_have_url(re.compile("show=plan"))


@pytest.mark.proof
def test_a_click_makes_a_step_the_goal_and_shift_adds_another(page: Page) -> None:
    page.goto("/goals")
    step = page.get_by_role("application").get_by_role("button", name=re.compile("^render_invoice"))
    step.click()
    expect(page).to_have_url(re.compile("want=render_invoice&"))
    expect(page.get_by_role("button", name=re.compile("^load_customer.*lacks order_id"))).to_be_visible()

    page.get_by_role("application").get_by_role("button", name=re.compile("^price")).click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile("want=render_invoice(,|%2C)price"))
    step.click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile("want=price&"))


@pytest.mark.proof
def test_the_catalogue_is_drawn_as_long_as_there_is_no_plan(page: Page) -> None:
    page.goto("/goals?show=plan")
    expect(page.get_by_role("button", name=re.compile("^load_customer"))).to_be_visible()
    expect(page.get_by_label("plan only")).to_be_disabled()

    page.get_by_role("application").get_by_role("button", name=re.compile("^price")).click()
    expect(page).to_have_url(re.compile("want=price"))
    expect(page.get_by_label("plan only")).to_be_checked()
    expect(page.get_by_role("button", name=re.compile("^send_invoice"))).to_have_count(0)


@pytest.mark.proof
def test_a_plan_is_frozen_into_a_graph(page: Page, shop: Served) -> None:
    page.goto("/goals?want=send_invoice&given=order_id")
    page.get_by_role("button", name="Freeze").click()
    page.get_by_label("Name of the graph").fill("frozen-invoice")
    page.get_by_role("dialog").get_by_role("button", name="Freeze").click()

    expect(page).to_have_url(re.compile("/workflows/frozen-invoice"))
    assert shop.ask("GET", "/workflows/frozen-invoice")["workflows"][0]["style"] == "graph"


@pytest.mark.proof
def test_a_plan_is_run_once_by_a_double_click(page: Page, shop: Served) -> None:
    page.goto("/goals?want=price&given=order_id")
    page.get_by_role("button", name="Run", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("order_id").fill("twice-1")
    dialog.get_by_role("button", name="Run").dblclick()

    expect(page).to_have_url(re.compile("/runs/"))
    runs = [shop.run(run["id"]) for run in shop.ask("GET", "/runs?style=goal&limit=200")["runs"]]
    assert [run["input"]["order_id"] for run in runs].count("twice-1") == 1
