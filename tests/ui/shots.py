"""The pictures of the documentation: ``make ui-shots`` takes them again. A person looks at the difference."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, expect, sync_playwright

from tests.ui import browser as browsers
from tests.ui.served import Served, quoted

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/images"
WAIT_MS = 60_000


class Shot(NamedTuple):
    """A picture: its name, the address, a text that must be in sight, and how it is looked at."""

    name: str
    path: str
    text: str
    is_dark: bool = False
    width: int = 1280
    height: int = 800


FIRST_MINUTE = (
    Shot("run", "/runs/order-o-1", "completed"),
    Shot("run-dark", "/runs/order-o-1", "completed", is_dark=True),
)
SHOP = (
    Shot("runs", "/runs", "order-41"),
    Shot("inbox", f"/inbox/{quoted('order-41:approve')}", "You decide on"),
    Shot("inbox-phone", f"/inbox/{quoted('order-41:approve')}", "You decide on", width=390, height=844),
    Shot("goals", "/goals?want=send_invoice&given=order_id", "load_customer"),
    Shot("operations", "/operations", "answers this page"),
)
ALL = (*FIRST_MINUTE, *SHOP)


def take_all() -> None:
    """Take all pictures, of runs that stand still."""
    IMAGES.mkdir(exist_ok=True)
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        with served(first_minute(Path(folder))) as server:
            server.start("order", "order-o-1", order_id="o-1")
            server.until("order-o-1", "completed")
            take(browser, server, FIRST_MINUTE)
        with served(Served(Path(folder), store="sqlite:///shop.db")) as server:
            fill(server)
            take(browser, server, SHOP)


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
    for number, cents in ((41, 4200), (42, 9900)):
        shop.start("order", f"order-{number}", order_id=f"o-{number}", cents=cents)
        shop.until_event(f"order-{number}", "ask_opened")


def take(browser: Browser, server: Served, shots: tuple[Shot, ...]) -> None:
    for shot in shots:
        context = browser.new_context(
            base_url=server.url,
            viewport={"width": shot.width, "height": shot.height},
            color_scheme="dark" if shot.is_dark else "light",
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en-GB",
        )
        page = context.new_page()
        page.goto(shot.path)
        expect(page.get_by_text(shot.text).first).to_be_visible(timeout=WAIT_MS)
        page.wait_for_load_state("networkidle", timeout=WAIT_MS)
        page.evaluate("() => document.fonts.ready.then(() => undefined)")
        page.screenshot(path=IMAGES / f"{shot.name}.png", animations="disabled", caret="hide")
        context.close()


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
