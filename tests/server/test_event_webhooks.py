"""Events are POSTed to another service: each once, signed, and until the service takes it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec
import pytest

import weft
from tests.docs.test_blocks import blocks
from tests.server.receiver import Receiver
from weft.core.values import VALUE_BYTES_MAX
from weft.observe.dead_letters import all_dead_letters
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.hooks import WORKFLOW
from weft.runtime.project_settings import project_settings
from weft.runtime.settings import Settings
from weft.server.settings import WebhookSettings, read_webhook_settings
from weft.tokens import is_signed

SECRET = "s" * 32
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    running = Receiver()
    # However slow the machine is, an answer comes in time.
    monkeypatch.setattr("weft.server.approvals.notifier.SEND_MS", 250_000)
    monkeypatch.setattr("weft.authoring.webhooks.TIMEOUT", "250s")
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    monkeypatch.setenv("WEFT_EVENTS_URL", running.url)
    monkeypatch.setenv("WEFT_EVENTS_SECRET", SECRET)
    yield running
    running.close()


def shop() -> weft.App:
    app = weft.App("memory://")

    @app.step(retries=0)
    async def charge(fails: bool) -> None:
        if fails:
            raise OSError("the bank is away")

    @app.workflow
    async def order(ctx: weft.Context, fails: bool = False, region: str = "us") -> str:
        await ctx.set(region=region)
        await charge(fails)
        return "done"

    @app.workflow
    async def pay(ctx: weft.Context) -> bool:
        return (await ctx.ask("ok", title="Pay?", of=["ann", "role:ops"])).approved

    return app


async def deliveries(app: weft.App) -> list[RunRow]:
    return list((await app.service.search(RunQuery(workflow=WORKFLOW))).rows)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(100):
        while not (found := condition()) or (asyncio.iscoroutine(found) and not await found):
            await asyncio.sleep(0.02)


async def all_over(app: weft.App) -> None:
    async with asyncio.timeout(100):
        while not (rows := await deliveries(app)) or any(row.ended_at is None for row in rows):
            await asyncio.sleep(0.02)


def play(app: weft.App, story: Callable[[weft.App], Any]) -> None:
    async def hosted() -> None:
        async with app:
            await story(app)

    asyncio.run(hosted())


# --- what is sent ------------------------------------------------------------------------------------------------


def test_a_run_that_fails_is_told_once_and_signed(receiver: Receiver) -> None:
    async def story(app: weft.App) -> None:
        with pytest.raises(weft.RunFailed):
            await (await app.start("order", {"fails": True}, id="order-1")).result()
        await all_over(app)

    play(shop(), story)
    ((headers, body),) = receiver.heard
    told = json.loads(body)
    now = int(time.time())
    assert is_signed(SECRET, body, headers["weft-signature"], now_s=now)
    assert not is_signed(SECRET, body + b" ", headers["weft-signature"], now_s=now)
    assert not is_signed(SECRET, body, headers["weft-signature"], now_s=now + 3_600)
    assert (told["event"], told["key"], told["tenant"]) == ("run_failed", headers["idempotency-key"], "")
    assert told["details"]["run_id"] == "order-1"
    assert told["details"]["error"]["step"] == "charge"
    assert (told["approval"], told["links"]) == (None, [])


def test_the_check_in_the_documentation_believes_what_is_genuine_and_nothing_else(receiver: Receiver) -> None:
    async def story(app: weft.App) -> None:
        await (await app.start("order")).result()
        await all_over(app)

    play(shop(), story)
    headers, body = receiver.heard[0]
    page: dict[str, Any] = {}
    exec(next(source for _, source in blocks(DOCS / "hooks.md", "python") if "is_genuine" in source), page)
    check = page["is_genuine"]
    assert check(SECRET, headers["weft-signature"], body)
    assert not check(SECRET, headers["weft-signature"], body + b" ")
    assert not check("t" * 32, headers["weft-signature"], body)


def test_only_what_the_filter_names_is_sent(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_EVENTS_KINDS", "run_completed, run_held")
    monkeypatch.setenv("WEFT_EVENTS_WHERE", "workflow == 'order' && attributes.region == 'eu'")

    async def story(app: weft.App) -> None:
        for region in ("us", "eu"):
            await (await app.start("order", {"region": region}, id=region)).result()
        await all_over(app)

    play(shop(), story)
    assert [told["details"]["run_id"] for told in receiver.bodies] == ["eu"]


def test_a_question_is_sent_with_all_of_it_and_with_links(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_PUBLIC_URL", "https://weft.example/")

    async def story(app: weft.App) -> None:
        run = await app.start("pay", id="p")
        await until(lambda: receiver.heard)
        await run.decide("ok", approved=True, by="ann")
        await run.result()
        await all_over(app)

    play(shop(), story)
    asked = receiver.bodies[0]
    assert (asked["event"], asked["approval"]["title"], asked["approval"]["run"]) == ("question_opened", "Pay?", "p")
    (pair,) = asked["links"]
    assert pair["person"] == "ann"
    assert pair["approve"].startswith("https://weft.example/decide/")
    assert [told["event"] for told in receiver.bodies] == ["question_opened", "run_completed"]


def test_hooks_and_webhooks_are_told_apart(receiver: Receiver) -> None:
    app = shop()
    heard: list[str] = []

    @app.on("run_completed")
    def note(event: weft.HookEvent) -> None:
        heard.append(event.run_id)

    async def story(app: weft.App) -> None:
        await (await app.start("order", id="x")).result()
        await all_over(app)

    play(app, story)
    play(app, story)  # hosted again, it has the same webhooks
    assert heard == ["x", "x"]
    assert len(receiver.heard) == 2


def test_without_settings_nothing_is_sent_any_more(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    app = shop()

    async def story(app: weft.App) -> None:
        await (await app.start("order", id="x")).result()

    play(app, story)
    for name in ("WEFT_EVENTS_URL", "WEFT_EVENTS_SECRET"):
        monkeypatch.delenv(name)
    play(app, story)
    assert app.registered.hooks.table.hooks == {}


# --- receivers that fail -----------------------------------------------------------------------------------------


def test_a_receiver_that_fails_is_tried_again_with_the_same_key(receiver: Receiver) -> None:
    receiver.answers = [500, 429]

    async def story(app: weft.App) -> None:
        await (await app.start("order", id="x")).result()
        await all_over(app)
        assert [row.status for row in await deliveries(app)] == ["completed"]

    play(shop(), story)
    assert len(receiver.heard) == 3
    assert len({headers["idempotency-key"] for headers, _ in receiver.heard}) == 1


def test_an_address_that_may_not_be_called_is_said_in_the_log(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("WEFT_HTTP_ALLOW")
    monkeypatch.setattr("weft.authoring.webhooks.RETRIES", weft.Retry(attempts=3, delay="10ms"))

    async def story(app: weft.App) -> None:
        await (await app.start("order")).result()
        await all_over(app)

    play(shop(), story)
    assert receiver.heard == []
    (said,) = [line.getMessage() for line in caplog.records if "an event could not be delivered" in line.getMessage()]
    assert "127.0.0.1 is not a public address" in said
    assert "WEFT_HTTP_ALLOW" in said


def test_an_event_that_is_redirected_has_not_been_delivered(receiver: Receiver) -> None:
    """The page that it is redirected to answers well, but nobody there gets the event."""
    receiver.answers = [302, 307]

    async def story(app: weft.App) -> None:
        await (await app.start("order")).result()
        await all_over(app)
        (row,) = await deliveries(app)
        failed = [event async for event in app.get(row.id).events() if event.kind == "task_failed"]
        messages = [str(event.data) for event in failed]
        assert all("redirects to" in message and "/login" in message for message in messages), messages
        assert len(messages) == 2

    play(shop(), story)
    assert len(receiver.heard) == 3


def test_a_receiver_that_hangs_keeps_no_step_waiting(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even on a host that performs one step at a time."""

    def narrow(*given: Any, **named: Any) -> Settings:
        return msgspec.structs.replace(project_settings(*given, **named), slots=1)

    monkeypatch.setattr("weft.authoring.app.project_settings", narrow)
    receiver.answers = [0]

    async def story(app: weft.App) -> None:
        await (await app.start("order")).result()
        await asyncio.to_thread(receiver.wait_for, 1)
        assert await (await app.start("order")).result(timeout="60s") == "done"
        receiver.closing.set()

    play(shop(), story)


def test_the_path_of_a_receiver_is_in_no_message(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever knows the URL of an incoming webhook of a chat may post there."""
    monkeypatch.setenv("WEFT_EVENTS_URL", urljoin(receiver.url, f"/services/{'canary' * 50}"))
    receiver.answers = [500, 302]

    async def story(app: weft.App) -> None:
        await (await app.start("order")).result()
        await all_over(app)
        (row,) = await deliveries(app)
        failed = [str(event.data) async for event in app.get(row.id).events() if event.kind == "task_failed"]
        assert ["/… answered" in message for message in failed] == [True, True]
        assert not [message for message in failed if "canary" in message]

    play(shop(), story)
    assert "could not be delivered" in caplog.text
    assert "canary" not in caplog.text


def test_a_receiver_that_hangs_is_given_up_and_tried_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.server.approvals.notifier.SEND_MS", 100)
    receiver.answers = [0]

    async def story(app: weft.App) -> None:
        result = await (await app.start("order", id="x")).result()
        assert result == "done", "the run does not wait for the receiver"
        await all_over(app)
        assert [row.status for row in await deliveries(app)] == ["completed"]

    play(shop(), story)
    assert len(receiver.heard) >= 2  # a slow machine may give up more than once


def test_an_answer_that_is_too_large_for_a_value_is_an_answer(receiver: Receiver) -> None:
    receiver.answers = [200]  # a 204 has no body
    receiver.promised_bytes = 2 * VALUE_BYTES_MAX

    async def story(app: weft.App) -> None:
        await (await app.start("order", id="x")).result()
        await all_over(app)
        assert [row.status for row in await deliveries(app)] == ["completed"]

    play(shop(), story)
    assert len(receiver.heard) == 1


def test_a_receiver_that_never_takes_an_event_leaves_a_dead_letter(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.authoring.webhooks.RETRIES", weft.Retry(attempts=2, delay="10ms"))
    receiver.answers = [503] * 10

    async def story(app: weft.App) -> None:
        await (await app.start("order", id="x")).result()
        await all_over(app)
        (letter,) = [item async for item in all_dead_letters(app.service)]
        assert "answered 503" in letter.letter.failure.message
        assert SECRET not in str(letter)
        assert await app.get("x").status() == "completed"

    play(shop(), story)
    assert len(receiver.heard) == 2


# --- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"WEFT_EVENTS_URL": "chat.example"}, "WEFT_EVENTS_URL is not a URL"),
        ({"WEFT_EVENTS_URL": "https://"}, "is not a URL"),
        ({"WEFT_EVENTS_URL": "https://x:99999/"}, "is not a URL"),
        ({"WEFT_EVENTS_URL": "https://ann:pass@chat.example"}, "contains a user name or password"),
        ({"WEFT_EVENTS_URL": "https://chat.example"}, "needs WEFT_EVENTS_SECRET"),
        ({"WEFT_EVENTS_SECRET": SECRET}, "WEFT_EVENTS_URL is not set"),
        ({"WEFT_EVENTS_KINDS": "run_failed"}, "WEFT_EVENTS_URL is not set"),
        (
            {"WEFT_EVENTS_URL": "https://x.example", "WEFT_EVENTS_SECRET": SECRET, "WEFT_EVENTS_KINDS": "run_fails"},
            "WEFT_EVENTS_KINDS names 'run_fails'",
        ),
        (
            {"WEFT_EVENTS_URL": "https://x.example", "WEFT_EVENTS_SECRET": SECRET, "WEFT_EVENTS_WHERE": "1 +"},
            "WEFT_EVENTS_WHERE has a filter that is not valid CEL",
        ),
        ({"WEFT_APPROVALS_URL": "https://chat.example/hook"}, "WEFT_APPROVALS_SECRET"),
        ({"WEFT_APPROVALS_URL": "https://chat.example", "WEFT_APPROVALS_SECRET": "short"}, "at least 16 bytes"),
        ({"WEFT_APPROVALS_URL": "https://chat.example", "WEFT_APPROVALS_SECRET": SECRET}, "WEFT_PUBLIC_URL"),
    ],
)
def test_a_wrong_setting_stops_the_host_at_its_start(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], words: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    async def story(app: weft.App) -> None:
        pytest.fail("it started")

    with pytest.raises(weft.UsageError, match=words):
        play(shop(), story)


def test_approvals_are_the_events_that_are_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_webhook_settings() == []
    monkeypatch.setenv("WEFT_APPROVALS_URL", "https://chat.example/hook")
    monkeypatch.setenv("WEFT_APPROVALS_SECRET", SECRET)
    monkeypatch.setenv("WEFT_PUBLIC_URL", "https://weft.example/")
    assert read_webhook_settings() == [
        WebhookSettings(
            name="weft.approvals",
            url="https://chat.example/hook",
            secret=SECRET,
            kinds=frozenset({"question_opened", "question_escalated", "question_reminded"}),
            public="https://weft.example",
        )
    ]


def test_what_sends_events_is_imported_when_the_host_starts(receiver: Receiver) -> None:
    code = """
import asyncio, sys, weft
async def start():
    async with weft.App("memory://"):
        print("aiohttp" in sys.modules)
asyncio.run(start())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "True\n"
