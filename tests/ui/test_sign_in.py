"""A closed server: sign in and out, a session that ends, and what a key may not see."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.ui.axe import violations_in_every_look
from tests.ui.served import Served, quoted
from tests.ui.watched import Watch

REFUSED = "status of 401"
FORM_PX_MAX = 240
"""The form is as high as what is in it, not as the window."""


class Closed(Served):
    """A shop that has keys."""

    root = ""

    def key(self, name: str, *scopes: str, tenant: str = "") -> tuple[str, str]:
        """Create a key. Return its secret and its id."""
        body = {"name": name, "scopes": list(scopes), "tenant": tenant}
        made = self.ask("POST", "/keys", body, key=self.root)
        return made["secret"], made["key"]["id"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    """The shop with a run that asks, closed by its first key."""
    served = Closed(tmp_path_factory.mktemp("closed"))
    served.start_server()
    served.start("order", "order-1", order_id="1")
    served.until_event("order-1", "ask_opened")
    served.root, _ = served.key("root", "admin")
    yield served
    served.stop_server()


def sign_in(page: Page, secret: str) -> None:
    page.get_by_label("Key", exact=True).fill(secret)
    page.get_by_role("button", name="Sign in").click()


def test_sign_in_with_a_key_leads_to_the_page_that_was_asked_for_and_out_again(
    page: Page, shop: Closed, watch: Watch
) -> None:
    watch.expect(REFUSED)
    secret, _ = shop.key("ann", "admin")
    page.goto("/runs/order-1?tab=data")
    expect(page).to_have_url(re.compile("/login"))

    sign_in(page, "weft_wrong")
    expect(page.get_by_role("alert")).to_have_text("This key is not valid.")
    form = page.locator("form").bounding_box()
    assert form is not None
    assert form["height"] < FORM_PX_MAX
    sign_in(page, secret)

    expect(page).to_have_url(f"{shop.url}/runs/order-1?tab=data")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.get_by_role("button", name="ann").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{shop.url}/login")
    assert page.context.cookies() == []


@pytest.mark.proof
def test_a_session_that_ends_is_renewed_in_a_dialog_and_typed_text_stays(
    page: Page, shop: Closed, watch: Watch
) -> None:
    watch.expect(f"{REFUSED}|WebSocket")
    secret, bob = shop.key("bob", "admin")
    page.goto("/login?next=%2Finbox%2Forder-1%253Aapprove")
    sign_in(page, secret)
    page.get_by_label("Reason").fill("typed before the session ended")

    shop.ask("DELETE", f"/keys/{bob}", key=shop.root)
    dialog = page.get_by_role("dialog", name="Sign in to go on")
    expect(dialog).to_be_visible()
    sign_in(page, shop.root)

    expect(dialog).to_have_count(0)
    expect(page.get_by_label("Reason")).to_have_value("typed before the session ended")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()


@pytest.mark.proof
def test_a_key_that_may_only_read_sees_no_buttons_that_change_anything(page: Page, shop: Closed) -> None:
    secret, _ = shop.key("reader", "read")
    page.goto("/login?next=/runs")
    sign_in(page, secret)

    expect(page.get_by_role("link", name="order-1", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Start a run"))).to_have_count(0)
    page.goto("/runs/order-1")
    expect(page.get_by_role("heading", name="order-1")).to_be_visible()
    for name in ("Cancel", "Pause", "Fork", "Send"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    page.goto("/operations")
    expect(page.get_by_role("heading", name="Operations")).to_have_count(1)
    expect(page.get_by_role("button", name="Limit")).to_have_count(0)
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    expect(page.get_by_role("heading", name="Keys")).to_have_count(0)
    page.goto("/inbox")
    expect(page.get_by_text("No open questions for you.")).to_be_visible()
    expect(page.get_by_role("button", name="1 waits for others")).to_be_visible()
    page.goto("/inbox/order-1%3Aapprove")
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    expect(page.get_by_role("button", name="Reject")).to_be_disabled()
    page.keyboard.press("a")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_have_count(1)
    expect(page.get_by_role("combobox", name="Find")).to_be_visible()
    page.goto("/workflows")
    expect(page.get_by_role("link", name="leads", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Start"))).to_have_count(0)
    page.goto("/goals?want=send_invoice&given=order_id")
    expect(page.get_by_role("button", name=re.compile("^send_invoice.*goal"))).to_be_visible()
    for name in ("Run", "Freeze"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


@pytest.mark.proof
@pytest.mark.parametrize(
    "path", ["/runs/order-1?at=3&tab=data", "/runs/order-1/diff/order-1", "/inbox/order-1%3Aapprove", "/runs", "/inbox"]
)
def test_nothing_of_another_tenant_is_on_any_page(page: Page, shop: Closed, watch: Watch, path: str) -> None:
    watch.expect("status of 404|WebSocket")
    secret, _ = shop.key("guest", "read", "operate", "decide", tenant="other")
    page.goto(f"/login?next={quoted(path)}")
    sign_in(page, secret)

    expect(page).to_have_url(shop.url + path)
    expect(page.get_by_role("banner").get_by_text("live")).to_be_visible()
    page.wait_for_load_state("networkidle")
    shown = page.locator("main").inner_text()
    assert "Ship order" not in shown
    assert "4200" not in shown


@pytest.mark.proof
def test_a_run_of_another_tenant_is_not_found(page: Page, shop: Closed, watch: Watch) -> None:
    watch.expect("status of 404|WebSocket")
    secret, _ = shop.key("guest", "read", "operate", tenant="other")
    page.goto("/login?next=/runs/order-1")
    sign_in(page, secret)

    expect(page.get_by_text("There is no run order-1")).to_be_visible()
    assert "Ship order" not in page.content()


@pytest.mark.proof
def test_a_failure_at_the_provider_is_a_sentence(page: Page) -> None:
    page.goto("/login?failed=access.unknown")

    expect(page.get_by_role("alert")).to_contain_text("You were not signed in")
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    assert violations_in_every_look(page) == []
