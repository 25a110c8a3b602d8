"""An agent under fire: parallel tools, an approval, a compaction, a child agent and a budget that has little to spare.

The provider and the tools write what they did into a ledger outside the engine, before anyone is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import Path
from typing import Any

import msgspec

import weft
from tests.agents.scripted_server import Say, Sent, scripted, text, tool_calls
from tests.crash.hosting import QUICK, hosting, url_of
from tests.crash.scenario import Ledger

STATUSES: dict[str, str] = {}
RUN = "main"
APPROVAL = "turn/~2/tools/1/approve"
ENDS = ("done", "step.outcome_unknown", "budget.exceeded")
"""How the run may end: some deaths leave it unknown whether the money is gone, others use up the budget."""
LIMITS = {"calls": 8, "tokens": 4_200}
OUTPUT_TOKENS = 200
SETTINGS = msgspec.structs.replace(QUICK, lease_seconds=1.5)
"""A lease that a busy machine keeps, so that calls are lost by deaths and not by chance."""


def build(folder: Path, url: str) -> weft.App:
    """The program, as a user would write it."""
    app = weft.App(url_of(folder))
    ledger = Ledger(folder / "ledger.txt")
    app.model("fast", url=url, context=1_000, output=OUTPUT_TOKENS)
    app.model("small", url=url, output=OUTPUT_TOKENS)

    @app.step(effect="pure")
    async def read(page: int) -> str:
        """Read a page."""
        ledger.write("effect", "read", weft.task().key)
        return f"page {page}: " + "words " * 150

    @app.step(effect="irreversible")
    async def refund(order_id: str, cents: int) -> str:
        """Give money back."""
        ledger.write("effect", "refund", weft.task().key)
        return "refunded"

    helper = app.agent("helper", model="small", system="You help.", tools=[read])
    app.agent(
        "lead",
        model="fast",
        system="You lead.",
        tools=[read, refund, weft.tool(helper, effect="idempotent")],
        approvers=["role:finance"],
        budget=weft.Budget(**LIMITS),
    )
    return app


class Provider:
    """Answers by what a conversation has, and bills every request before it answers."""

    def __init__(self, folder: Path) -> None:
        self._ledger = Ledger(folder / "ledger.txt")

    def answer(self, sent: Sent) -> Say:
        messages: list[dict[str, Any]] = sent.body["messages"]
        usage = {"prompt_tokens": len(msgspec.json.encode(sent.body)) // 5, "completion_tokens": 30}
        key, digest = sent.headers["idempotency-key"], hashlib.sha256(msgspec.json.encode(sent.body)).hexdigest()
        self._ledger.write("effect", "model", key, digest, str(sum(usage.values())))
        if not is_well_formed(messages):
            self._ledger.write("malformed", key)
        content = "\n".join(str(message.get("content")) for message in messages)
        if messages[0]["content"].startswith("Sum up"):
            return text("Pages were read, and somebody helped." if "helped" in content else "Pages.", usage=usage)
        if "You help" in messages[0]["content"]:
            return text("helped", usage=usage) if "page 9" in content else _calls(usage, ("read", '{"page":9}'))
        if "refunded" in content:
            return text("Done.", usage=usage)
        if "helped" in content:
            return _calls(usage, ("read", '{"page":3}'), ("refund", '{"order_id":"o-1","cents":5}'))
        if "page 2" in content:
            return _calls(usage, ("helper", '{"prompt":"help"}'))
        return _calls(usage, ("read", '{"page":1}'), ("read", '{"page":2}'))


def _calls(usage: dict[str, int], *wanted: tuple[str, str]) -> Say:
    return tool_calls(*((f"c{n}", *call) for n, call in enumerate(wanted)), usage=usage)


def is_well_formed(messages: list[dict[str, Any]]) -> bool:
    """Return whether every tool call has exactly one result, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return not waiting


async def play(folder: Path, after: Path | None) -> None:
    """Start the agent and approve what it wants, or go on with both. With ``after``, host until that file is there."""
    ledger = Ledger(folder / "ledger.txt")
    async with scripted(Provider(folder).answer) as provider:
        app = build(folder, provider.url)
        async with hosting(app, SETTINGS):
            while after is not None and not after.exists():
                await asyncio.sleep(0.01)
            handle: weft.Handle[Any] = await app.start("lead", {"prompt": "o-1 was cold"}, id=RUN)
            ledger.write("acked", "start")
            approval = asyncio.create_task(_approve(handle, ledger))
            try:
                ended = "done" if (await handle.result(timeout=100)).output == "Done." else "wrong"
            except weft.RunFailed as failed:
                ended = str(failed.failure.code)
            approval.cancel()
            ledger.write("result", ended)


async def _approve(handle: weft.Handle[Any], ledger: Ledger) -> None:
    """Answer the question once it is open."""
    while not [event async for event in handle.events() if event.kind == "ask_opened"]:
        await asyncio.sleep(0.01)
    with contextlib.suppress(weft.AlreadyDecided, weft.RunFinished):
        await handle.decide(APPROVAL, approved=True, by="fin", key="yes")
        ledger.write("acked", "approval")


def run(folder: Path, after: Path | None = None) -> None:
    asyncio.run(play(folder, after))
