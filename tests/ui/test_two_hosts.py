"""Two hosts on one Postgres: what one of them does is seen and steered on the pages of the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import servers
from tests.ui.served import Served, quoted

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    url = servers.database("ui_hosts")
    here, there = (Served(tmp_path_factory.mktemp(name), store=url) for name in ("here", "there"))
    here.start_server()
    there.start_server()
    yield here, there
    here.stop_server()
    there.stop_server()


@pytest.fixture(scope="module")
def shop(hosts: tuple[Served, Served]) -> Served:
    """The host whose pages are looked at."""
    return hosts[0]


@pytest.fixture
def other(hosts: tuple[Served, Served]) -> Served:
    return hosts[1]


def test_a_run_that_was_started_by_form_is_done_on_the_pages_of_both(page: Page, shop: Served, other: Served) -> None:
    page.goto("/runs?workflow=quick")
    page.get_by_role("button", name="Start a run").click()
    form = page.get_by_role("dialog")
    form.get_by_label("name").fill("ann")
    form.get_by_text("Id, attributes, delay").click()
    form.get_by_label("Id", exact=False).first.fill("shared-1")
    form.get_by_role("button", name="Start").click()

    expect(page).to_have_url(re.compile("/runs/shared-1"))
    expect(page.locator(".run-head .status")).to_contain_text("completed")
    assert other.until("shared-1", "completed")["output"] == "hello ann"


def test_a_question_of_the_other_host_is_answered_here(page: Page, shop: Served, other: Served) -> None:
    other.start("order", "order-there", order_id="there")
    other.until_event("order-there", "ask_opened")
    page.goto(f"/inbox/{quoted('order-there:approve')}")

    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()

    expect(page.get_by_role("dialog")).to_have_count(0)
    assert other.until("order-there", "completed")["output"] == "shipped there"


def test_a_run_of_the_other_host_joins_the_list_and_is_cancelled_here(page: Page, shop: Served, other: Served) -> None:
    page.goto("/runs?q=joined")
    expect(page.get_by_text("No run that begins with")).to_be_visible()

    other.start("patient", "joined-1", name="a")
    page.get_by_role("link", name="joined-1").click()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the run").click()

    expect(page.locator(".run-head .status")).to_contain_text("cancelled")
    assert other.run("joined-1")["status"] == "cancelled"
