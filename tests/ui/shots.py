"""The pictures of the documentation: ``make ui-shots`` takes them again. A person looks at the difference."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, expect, sync_playwright

from tests.ui import browser as browsers
from tests.ui.served import Served, quoted
from tests.ui.watched import Watch

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
WAIT_MS = 60_000


Program = Literal["first minute", "shop", "closed"]


class Shot(NamedTuple):
    """A picture: its name, the address, a text that must be in sight, and how it is looked at."""

    name: str
    path: str
    text: str
    on: Program = "shop"
    is_dark: bool = False
    width: int = 1280
    height: int = 800


def in_every_look(name: str, path: str, text: str, on: Program = "shop") -> tuple[Shot, ...]:
    """Return a screen in both themes, and on a phone."""
    return (
        Shot(name, path, text, on),
        Shot(f"{name}-dark", path, text, on, is_dark=True),
        Shot(f"{name}-phone", path, text, on, width=390, height=844),
    )


LINK = "the link of a person"
"""Stands for an address that is known when the link has been made."""
ALL = (
    *in_every_look("run", "/runs/order-o-1", "completed", "first minute"),
    *in_every_look("runs", "/runs", "order-41"),
    *in_every_look("graph-run", "/runs/lead-acme", "Nurture Acme?"),
    *in_every_look("goal-run", "/runs/invoice-3", "load_customer"),
    *in_every_look("compare", "/runs/order-41/diff/order-42", "They part at"),
    *in_every_look("inbox", f"/inbox/{quoted('order-41:approve')}", "You decide on"),
    *in_every_look("link", LINK, "You decide on"),
    *in_every_look("workflows", "/workflows", "leads"),
    *in_every_look("workflow", "/workflows/leads", "Leads: small companies"),
    *in_every_look("versions", "/workflows/leads/diff/188fb919b1a9ae88/05e31e819981b2bb", "changes nurture"),
    *in_every_look("goals", "/goals?want=send_invoice&given=order_id&sel=render_invoice", "load_customer"),
    *in_every_look("operations", "/operations", "answers this page"),
    *in_every_look("sign-in", "/login", "Sign in to Weft", "closed"),
)


class Stage(NamedTuple):
    """The servers of all pictures, with runs that stand still."""

    servers: dict[Program, Served]
    link: str

    def take(self, browser: Browser, shot: Shot, folder: Path) -> Path:
        """Take a picture. Fails if the page shows a problem, or if anything goes wrong on it."""
        path = self.link if shot.path == LINK else shot.path
        return take(browser, self.servers[shot.on], shot._replace(path=path), folder)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Start the servers and their runs."""
    shop = Served(folder, store="sqlite:///shop.db")
    closed = Served(folder, store="sqlite:///closed.db")
    with served(first_minute(folder)) as minute, served(shop), served(closed):
        minute.start("order", "order-o-1", order_id="o-1")
        minute.until("order-o-1", "completed")
        fill(shop)
        closed.ask("POST", "/keys", {"name": "root", "scopes": ["admin"], "tenant": ""})
        made = shop.ask("POST", f"/approvals/{quoted('order-41:approve')}/links", {"by": "ann"})
        yield Stage({"first minute": minute, "shop": shop, "closed": closed}, made["approve"])


def take_all() -> None:
    """Take all pictures again."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser, tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as found:
        for shot in ALL:
            found.take(browser, shot, IMAGES)


def first_minute(folder: Path) -> Served:
    """Return a server of the README's program."""
    found = re.search(r"```python\n(# app\.py\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    program = folder / "app.py"
    program.write_text(found[1], "utf-8")
    return Served(folder, program=program, store="sqlite:///weft.db")


def fill(shop: Served) -> None:
    """Start runs of each style: done, failed, and waiting for people and messages."""
    for number in range(1, 4):
        shop.start("quick", f"greeting-{number}", name="ann")
        shop.until(f"greeting-{number}", "completed")
    shop.start("leads", "lead-acme", company="Acme", domains=["acme.example", "acme.test"])
    shop.start("many", "parcels-12", count=12, missing=2)
    shop.until("parcels-12", "failed")
    shop.start("order", "order-40", order_id="o-40", cents=120_000)
    shop.until("order-40", "failed")
    shop.start("patient", "quote-7", name="sofa")
    shop.ask("POST", "/runs", {"goals": ["send_invoice"], "input": {"order_id": "o-3"}, "id": "invoice-3"})
    shop.until("invoice-3", "completed")
    for number, cents in ((41, 4200), (42, 9900)):
        shop.start("order", f"order-{number}", order_id=f"o-{number}", cents=cents)
        shop.until_event(f"order-{number}", "ask_opened")
    patch = {"ops": [{"op": "add", "path": "/nodes/nurture/timeout", "value": "1h"}]}
    shop.ask("POST", "/workflows/leads/patch", {"tag": "live", "patch": patch, "reason": "a limit"})


def take(browser: Browser, server: Served, shot: Shot, folder: Path) -> Path:
    context = browser.new_context(
        base_url=server.url,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.is_dark else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
        locale="en-GB",
    )
    watch = Watch(context, server.url)
    page = context.new_page()
    page.goto(shot.path)
    expect(page.get_by_text(shot.text).locator("visible=true").first).to_be_visible(timeout=WAIT_MS)
    page.wait_for_load_state("networkidle", timeout=WAIT_MS)
    page.evaluate("() => document.fonts.ready.then(() => undefined)")
    expect(page.locator(".problem, [role=alert]:not(:empty)")).to_have_count(0)
    file = folder / f"{shot.name}.png"
    page.screenshot(path=file, animations="disabled", caret="hide")
    context.close()
    assert watch.found == [], watch.found
    return file


@contextmanager
def served(server: Served) -> Iterator[Served]:
    server.start_server()
    try:
        yield server
    finally:
        server.stop_server()


@contextmanager
def chromium() -> Iterator[Browser]:
    found = browsers.packaged()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found.path, env={**os.environ, **found.environment}, args=list(browsers.ARGUMENTS)
        )
        yield launched
        launched.close()


if __name__ == "__main__":
    take_all()
