"""At every event of a run, in each style, the screen with ``at`` shows what a run shows whose log really ends there."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.ui.conftest import WIDE
from tests.ui.served import Served, quoted
from weft.stores.checksums import event_crc, uid_crc

pytestmark = pytest.mark.proof

BARE = "import os\nimport weft\n\napp = weft.App(os.environ['WEFT_URL'])\n"
SHOWN = """() => ({
    boxes: [...document.querySelectorAll('.run-picture .react-flow__node')].map((one) => one.textContent),
    rows: [...document.querySelectorAll('.tl-row')].map((row) => [
        row.querySelector('.tl-label').textContent,
        [...row.querySelectorAll('.tl-bar')].map((bar) => bar.className),
        row.querySelectorAll('.tl-cross').length,
    ]),
    data: document.querySelector('#bottom-panel').innerText,
})"""


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Play a run of each style, cut copies after each of its events, and serve them where nothing continues them."""
    folder = tmp_path_factory.mktemp("cut")
    played = Served(folder)
    played.start_server()
    played.start("order", "code", order_id="o-1")
    played.start("leads", "graph", company="Acme", domains=["a.de", "b.de"])
    played.ask("POST", "/runs", {"goals": ["send_invoice"], "input": {"order_id": "o-9"}, "id": "goal"})
    for run, place, form in (("code", "approve", {}), ("graph", "review", None)):
        played.until_event(run, "ask_opened")
        played.ask("POST", f"/approvals/{quoted(f'{run}:{place}')}/decision", {"approved": True, "form": form})
    for run in ("code", "graph", "goal"):
        played.until(run, "completed")
    played.stop_server()
    for run in ("code", "graph", "goal"):
        _cut_copies(folder / "shop.db", run)
    bare = folder / "bare.py"
    bare.write_text(BARE)
    served = Served(folder, program=bare)
    served.start_server()
    yield served
    served.stop_server()


def _cut_copies(path: Path, run: str) -> None:
    """Add a copy of a run for each of its events, named after the event with which its log ends."""
    with sqlite3.connect(path) as store:
        store.row_factory = sqlite3.Row
        row = dict(store.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone())
        events = store.execute("SELECT seq, at, body FROM events WHERE run = ? ORDER BY seq", (row["num"],)).fetchall()
        for last in events[:-1]:
            uid = f"{last['seq']:032x}{run}"[-32:]
            copy = {name: value for name, value in row.items() if name != "num"}
            copy |= {"uid": uid, "id": f"{run}-{last['seq']}", "seq": last["seq"], "updated_at": last["at"]}
            copy |= {"status": "paused", "ended_at": None, "owner": None, "wake_at": None}
            names = ", ".join(copy)
            marks = ", ".join("?" * len(copy))
            number = store.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", list(copy.values())).lastrowid
            for event in events:
                if event["seq"] <= last["seq"]:
                    crc = event_crc(uid_crc(uid), event["seq"], event["at"], event["body"].encode())
                    store.execute(
                        "INSERT INTO events (run, seq, at, body, crc) VALUES (?, ?, ?, ?, ?)", (number, *event, crc)
                    )


@pytest.fixture
def page(browser: Browser, cut: Served) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(
        base_url=cut.url, viewport={**WIDE, "height": 1200}, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


def shown(page: Page, path: str, event: int) -> Any:
    """Return what the screen shows once the answers about the run are on it."""
    with ExitStack() as answers:
        for name in ("picture", "standing", "timeline", "state"):
            answers.enter_context(page.expect_response(re.compile(f"/runs/[^/]+/{name}")))
        page.goto(path)
    expect(page.get_by_role("slider", name="Event")).to_have_attribute("aria-valuenow", str(event))
    expect(page.locator("#bottom-panel section").first).to_be_visible()
    drawn = page.locator(".run-picture .react-flow__node").or_(page.get_by_text("There is nothing to draw yet"))
    expect(drawn.first).to_be_attached()
    page.wait_for_load_state("networkidle")
    return page.evaluate(SHOWN)


@pytest.mark.parametrize("style", ["code", "graph", "goal"])
def test_the_past_is_shown_as_it_was(page: Page, cut: Served, style: str) -> None:
    events = cut.run(style)["seq"]
    assert events > 5

    for event in range(1, events):
        now = shown(page, f"/runs/{style}-{event}?tab=data", event)
        then = shown(page, f"/runs/{style}?tab=data&at={event}", event)

        assert then == now, f"{style} after event {event}"
        assert cut.run(f"{style}-{event}")["seq"] == event
