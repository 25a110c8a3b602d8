"""The conversation of an agent's run: it grows as it is read, and a tool call is approved from it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import scale
from tests.agents.scripted_server import Say, delta, scripted, stream, text, tool_calls
from tests.ui.axe import violations_in_every_look
from tests.ui.served import Served

pytestmark = scale.MARKS

DESK = Path(__file__).with_name("desk.py")
SCRIPT = (
    tool_calls(("c-1", "find_order", '{"order_id": "o-1"}')),
    tool_calls(("c-2", "refund", '{"order_id": "o-1", "cents": 4200}')),
    text("Done, <b>it</b> is on its way."),
    stream(delta(role="assistant", content="Let me think of soup"), done=False, hangs=True),
)


@contextmanager
def model_server(*answers: Say) -> Iterator[str]:
    """The URL of a model that gives these answers, from a thread of its own."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[str] = []
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with scripted(*answers) as server:
            found.append(server.url)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The help desk, with a model that answers by a script."""
    with model_server(*SCRIPT) as url:
        served = Served(tmp_path_factory.mktemp("desk"), program=DESK, MODEL_URL=url)
        served.start_server()
        yield served
        served.ask("POST", "/runs/ticket-2/cancel", {})  # or the host waits for its model
        served.stop_server()


def test_a_conversation_is_read_approved_and_followed(page: Page, shop: Served) -> None:
    shop.start("support", "ticket-1", prompt="My soup o-1 arrived <i>cold</i>.")
    shop.until_event("ticket-1", "ask_opened")

    page.goto("/runs/ticket-1")
    talk = page.get_by_role("log", name="Conversation of support")
    expect(talk.get_by_text("My soup o-1 arrived <i>cold</i>.")).to_be_visible()
    first, second = talk.get_by_role("region", name="Turn 1"), talk.get_by_role("region", name="Turn 2")
    expect(first.get_by_text("find_order")).to_be_visible()
    expect(first.get_by_role("group")).to_contain_text("done")
    expect(second.get_by_text("waits for approval")).to_be_visible()
    expect(second.get_by_text('"cents": 4200')).to_be_visible()
    expect(talk.get_by_text("of 0.50 USD left")).to_be_visible()

    second.get_by_role("link", name="Answer").click()
    expect(page.get_by_role("heading", name="support wants to call refund")).to_be_visible()
    expect(page.get_by_text("digest", exact=True)).to_be_visible()
    page.get_by_label("Reason").fill("it was cold")
    page.get_by_role("button", name="Approve").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    shop.until("ticket-1", "completed")

    page.goto("/runs/ticket-1")
    expect(second.get_by_text("approved by ann: it was cold")).to_be_visible()
    expect(talk.get_by_text("Done, <b>it</b> is on its way.")).to_be_visible()
    second.get_by_text("refund", exact=True).click()
    expect(second.get_by_text("refund of 4200 for o-1")).to_be_visible()
    assert not scale.IS_PROOF or violations_in_every_look(page) == []

    shop.start("support", "ticket-2", prompt="And now?")
    page.goto("/runs/ticket-2")
    expect(talk.get_by_text("Let me think of soup")).to_be_visible()
    expect(talk.get_by_text("the model answers")).to_be_visible()
    page.get_by_role("tab", name="Log").click()
    expect(talk).to_have_count(0)
    page.get_by_role("tab", name="Conversation").click()
    expect(talk.get_by_text("Let me think of soup")).to_be_visible()
