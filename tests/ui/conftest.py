"""A real browser before a real server. Each test has a context of its own; each module has a browser.

A process of the test run has one server, except for modules that need another program, keys, or a server to kill.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.ui import browser as browsers
from tests.ui.served import Served
from tests.ui.watched import Watch

STATIC = Path(__file__).parents[2] / "src" / "weft" / "server" / "web" / "static"
WAIT_MS = 30_000
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

expect.set_options(timeout=WAIT_MS)


def _cannot(reason: str) -> None:
    """Fail where everything must be tested, else skip and say why."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module. A running Playwright would disturb the event loops of other modules."""
    if not (STATIC / "index.html").exists():
        _cannot("the UI is not built: run make ui")
    try:
        found = browsers.find()
    except browsers.NoBrowser as missing:
        _cannot(str(missing))
        return
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found.path, env={**os.environ, **found.environment}, args=list(browsers.ARGUMENTS)
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The shop on SQLite, served by a process of its own. Tests share it and use ids of their own."""
    served = Served(tmp_path_factory.mktemp("shop"))
    served.start_server()
    yield served
    served.stop_server()


@pytest.fixture
def viewport() -> dict[str, int]:
    """The size of the window. A module or class overrides it with PHONE."""
    return WIDE


@pytest.fixture
def context(browser: Browser, shop: Served, viewport: dict[str, int]) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=shop.url, viewport=viewport, reduced_motion="reduce")  # type: ignore[arg-type]
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


@pytest.fixture
def watch(context: BrowserContext, shop: Served) -> Iterator[Watch]:
    """What goes wrong on the pages. Anything that the test does not expect fails it."""
    watching = Watch(context, shop.url)
    yield watching
    assert watching.unexpected() == []


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    return context.new_page()
