"""The server is killed and started again under an open page."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.ui.served import Served, quoted
from tests.ui.watched import Watch

BROKEN = {"type": "about:blank", "title": "Broken", "status": 500, "code": "server.failed", "detail": "It is broken."}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A shop that may be killed."""
    served = Served(tmp_path_factory.mktemp("killed"))
    served.start_server()
    yield served
    served.stop_server()


@pytest.mark.proof
def test_a_page_says_that_it_is_offline_and_catches_up_without_losing_typed_text(
    page: Page, shop: Served, watch: Watch
) -> None:
    watch.expect("ERR_|WebSocket|Failed to load resource")
    shop.start("order", "order-cut", order_id="cut")
    shop.until_event("order-cut", "ask_opened")
    page.goto(f"/inbox/{quoted('order-cut:approve')}")
    page.get_by_label("Reason").fill("typed before the server was killed")

    shop.stop_server(signal.SIGKILL)
    expect(page.get_by_role("banner").get_by_text("offline")).to_be_visible()
    expect(page.get_by_role("heading", name="Ship order cut?")).to_be_visible()
    shop.start_server()

    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value("typed before the server was killed")
    shop.ask("POST", f"/approvals/{quoted('order-cut:approve')}/decision", {"approved": False, "by": "bob"})
    expect(page.get_by_text("bob has rejected it.")).to_be_visible()


@pytest.mark.proof
def test_a_form_that_was_half_filled_when_the_server_stopped_starts_its_run_afterwards(
    page: Page, shop: Served, watch: Watch
) -> None:
    watch.expect("ERR_|WebSocket|Failed to load resource")
    page.goto("/runs")
    page.get_by_role("button", name="Start a run").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Workflow").select_option("quick")
    form.get_by_label("name").fill("ann")

    shop.stop_server()
    expect(page.get_by_role("banner").get_by_text("offline")).to_be_visible()
    form.get_by_label("count").fill("2")
    form.get_by_role("button", name="Start").click()
    expect(form.get_by_text("The server did not answer")).to_be_visible()
    shop.start_server()
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()
    page.route("**/api/v1/workflows/**", lambda route: route.fulfill(status=500, json=BROKEN))
    with page.expect_response("**/api/v1/workflows/quick/**"):
        # As if somebody came back to the page, again and again: what was just read is not asked for again.
        page.evaluate("setInterval(() => dispatchEvent(new Event('visibilitychange')), 500)")

    expect(form.get_by_label("name")).to_have_value("ann")
    expect(form.get_by_label("count")).to_have_value("2")
    form.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile("/runs/quick-"))
    expect(page.locator(".run-head .status")).to_contain_text("completed")


@pytest.mark.proof
def test_a_run_is_followed_again_after_the_server_was_killed(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("ERR_|WebSocket|Failed to load resource")
    shop.start("patient", "patient-cut", name="cut")
    page.goto("/runs/patient-cut")
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()

    shop.stop_server(signal.SIGKILL)
    expect(page.get_by_role("banner").get_by_text("offline")).to_be_visible()
    shop.start_server()
    shop.ask("POST", "/runs/patient-cut/cancel", {"reason": "after the restart"})

    expect(page.locator(".run-screen").get_by_text("cancelled").first).to_be_visible()
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()


@pytest.mark.proof
def test_a_part_of_the_page_that_could_not_be_loaded_is_loaded_when_the_server_is_back(
    page: Page, shop: Served, watch: Watch
) -> None:
    watch.expect("ERR_|Failed to load resource")
    shop.start("order", "order-part", order_id="part")
    for address in ("**/assets/picture-canvas*", "**/healthz"):
        page.route(address, lambda route: route.abort())
    page.goto("/runs/order-part")
    expect(page.get_by_role("banner").get_by_text("offline")).to_be_visible()

    page.unroute_all()

    expect(page.locator(".run-screen canvas, .run-screen .picture svg").first).to_be_visible()
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()


@pytest.mark.proof
@pytest.mark.parametrize("missing", ["*", "{rows,useInfiniteQuery,picture,values}-*"], ids=["all", "shared"])
def test_a_screen_whose_shared_files_could_not_be_loaded_is_shown_when_the_server_is_back(
    page: Page, shop: Served, watch: Watch, missing: str
) -> None:
    watch.expect("ERR_|Failed to load resource")
    shop.start("order", f"order-{len(missing)}-shared", order_id="shared")
    page.goto("/runs?q=order-")
    link = page.get_by_role("link", name=f"order-{len(missing)}-shared")
    expect(link).to_be_visible()
    for address in (f"**/assets/{missing}.js*", "**/healthz"):
        page.route(address, lambda route: route.abort())
    link.click()
    expect(page.get_by_role("banner").get_by_text("offline")).to_be_visible()

    page.unroute_all()

    expect(page.locator(".run-head .status")).to_be_visible()
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()


@pytest.mark.proof
def test_a_part_that_the_server_does_not_have_is_said_to_be_missing(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("Failed to (load resource|fetch dynamically imported module)|at .*assets")
    shop.start("order", "order-gone", order_id="gone")
    page.route("**/assets/picture-canvas*.js*", lambda route: route.fulfill(status=404))
    page.goto("/runs/order-gone")
    expect(page.get_by_text("This screen has failed")).to_be_visible()
    expect(page.get_by_role("button", name="Reload the page")).to_be_visible()


@pytest.mark.proof
def test_a_retry_of_412_runs_survives_a_kill_of_the_server(page: Page, shop: Served, watch: Watch) -> None:
    watch.expect("ERR_|WebSocket|Failed to load resource")
    ids = [shop.start("many", f"bulk-{at}", count=1, missing=1) for at in range(412)]
    for run in ids:
        shop.until(run, "failed")
    page.goto("/runs?status=failed&q=bulk-")
    page.get_by_role("button", name="all 412 that match").click()
    page.get_by_role("region", name="What to do").get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("412 would be retried")).to_be_visible()
    dialog.get_by_label("Reason").fill("they are on their shelves now")
    dialog.get_by_role("button", name="Retry").click()
    expect(page).to_have_url(re.compile("/runs/"))
    job = page.get_by_role("heading", level=1).inner_text()

    shop.stop_server(signal.SIGKILL)
    shop.start_server()

    assert shop.until(job, "completed")["status"] == "completed"
    expect(page.locator(".run-head .status")).to_contain_text("completed")
    for run in ids:
        retried = shop.ask("GET", f"/runs/{run}/events?kind=run_retried")["events"]
        assert len(retried) == 1, run
