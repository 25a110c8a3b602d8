"""Every screen in each state of its data, with what must be in sight there."""

from __future__ import annotations

import re
from typing import NamedTuple

from playwright.sync_api import Page, expect

from tests.ui.served import Served, quoted
from tests.ui.watched import Watch


class Screen(NamedTuple):
    """A screen: its name, its address, a text that is seen on it, and the request that makes it useful.

    What is asked for on top of a screen that is useful already, such as a selected place, is no screen of its own.
    """

    name: str
    path: str
    text: str
    brought_by: str = ""
    requests: int = 6
    """How many requests may be sent before the one that makes it useful, itself included."""
    refused: str = ""
    """What the console says, because the server refuses what the address asks for."""

    def open(self, page: Page) -> None:
        """Open the screen, and wait until its text is there."""
        page.goto(self.path)
        expect(page.locator("main").get_by_text(re.compile(self.text)).locator("visible=true").first).to_be_visible()

    def asked_until_useful(self, page: Page, watch: Watch) -> set[str]:
        """Open the screen and return what was asked for until it was useful.

        What is sent later cannot delay it, and how much that is depends on how long the answer takes. A screen that
        was open before asks for nothing more once its page is gone.
        """
        page.goto("about:blank")
        watch.requests.clear()
        with page.expect_request(lambda one: "/api/v1/" in one.url and self.brought_by in one.url) as useful:
            self.open(page)
        sent = [url for url in watch.requests if "/api/" in url]
        return set(sent[: sent.index(useful.value.url) + 1])


ORDER, FAILED = "screen-order", "screen-failed"
SCREENS = (
    Screen("runs", "/runs?q=screen-", ORDER, "/runs?"),
    Screen("no runs", "/runs?q=no-run-begins-so", "No run that begins with", "/runs?"),
    Screen("run", f"/runs/{ORDER}", "waits for an answer", f"/runs/{ORDER}/explain"),
    Screen("selected place", f"/runs/{ORDER}?sel=charge", "4200"),
    Screen("past", f"/runs/{ORDER}?at=5&tab=data", "as it stood after event 5", f"/runs/{ORDER}/explain"),
    Screen("outline", f"/runs/{ORDER}?view=outline", "reserve", f"/runs/{ORDER}/explain"),
    Screen("failed run", f"/runs/{FAILED}", "PermissionError", f"/runs/{FAILED}/explain"),
    Screen("changes", f"/runs/{FAILED}?tab=changes", "the bank called"),
    Screen("graph run", "/runs/screen-lead", "Nurture Acme", "/runs/screen-lead/explain"),
    Screen("goal run", "/runs/screen-invoice", "send_invoice", "/runs/screen-invoice/explain"),
    Screen("parent run", "/runs/screen-parent", "screen-child-quick", "/runs/screen-parent/explain"),
    Screen("no such run", "/runs/nobody-started-this", "There is no run", "/runs/nobody-started-this", refused="404"),
    Screen("two runs", f"/runs/{ORDER}/diff/{FAILED}", "They part at", f"/diff/{FAILED}"),
    Screen("inbox", "/inbox?q=o-1", "Ship order o-1", "/approvals?"),
    Screen("question", f"/inbox/{quoted(f'{ORDER}:approve')}", "You decide on", f"/approvals/{ORDER}"),
    Screen("workflows", "/workflows", "leads", "/workflow-summaries?"),
    Screen("graph", "/workflows/leads", "Leads: small companies", "/source", requests=7),
    Screen("code", "/workflows/order", "defined in", "/workflows/order/about"),
    Screen("two versions", "/workflows/leads/diff/{0}/{1}", "timeout", "/diff"),
    Screen("goals", "/goals?want=send_invoice&given=order_id&show=all", "conditional", "/plan"),
    Screen("no goal", "/goals", "load_customer", "/catalogue/picture"),
    Screen("operations", "/operations", "answers this page", "/hosts", requests=12),
)


def fill(shop: Served) -> tuple[str, str]:
    """Start the runs that the screens show, and publish a second version of the graph. Returns both versions."""
    shop.start("order", ORDER, order_id="o-1")
    shop.start("order", FAILED, order_id="o-2", cents=200_000)
    shop.start("leads", "screen-lead", company="Acme", domains=["acme.example", "acme.test"])
    shop.ask("POST", "/runs", {"goals": ["send_invoice"], "input": {"order_id": "o-3"}, "id": "screen-invoice"})
    shop.start("parent", "screen-parent", name="screen-child")
    shop.until_event("screen-parent", "child_ended")
    shop.ask("POST", "/runs", {"workflow": "order", "id": "screen-order-2", "input": {"order_id": "o-4"}})
    for run in (ORDER, "screen-lead", "screen-order-2"):
        shop.until_event(run, "ask_opened")
    shop.until("screen-invoice", "completed")
    shop.until(FAILED, "failed")
    shop.ask("POST", f"/runs/{FAILED}/retry", {"reason": "the bank called"})
    shop.until_event(FAILED, "run_retried")
    shop.until(FAILED, "failed")
    first = shop.ask("GET", "/workflows/leads/about")["newest"]
    patch = {"ops": [{"op": "add", "path": "/nodes/nurture/timeout", "value": "1h"}]}
    made = shop.ask("POST", "/workflows/leads/patch", {"tag": "live", "patch": patch, "reason": "a limit"})
    return first, made["version"]
