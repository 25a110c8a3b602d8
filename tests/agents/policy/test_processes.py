"""Steps with ``run_in="process"`` may do no more than others."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.policy import elsewhere
from tests.agents.scripted_server import scripted, text, tool_calls


def test_a_step_in_another_process_reveals_only_what_is_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "open-sesame")
    monkeypatch.setenv("OTHER_KEY", "do-not-tell")
    call, done = tool_calls(("c1", "reveal", '{"place":"OTHER_KEY"}')), text("Done.")

    async def scenario() -> None:
        async with scripted(call, done, call, done) as provider:
            elsewhere.app.model("fast", url=provider.url)
            async with elsewhere.app as app:
                # The author's code: what a rule denies is refused once and for good, everything else is permitted.
                assert await (await app.start(elsewhere.show("SHOP_KEY"))).result(timeout="60s") == "11 characters"
                assert await (await app.start(elsewhere.show("OTHER_KEY"))).result() == "policy.denied after 1"
                trusted = await app.start(elsewhere.show("OTHER_KEY"), attributes={"trusted": True})
                assert await trusted.result() == "11 characters"
                # An agent: what its program has bound, and nothing else.
                await (await app.start(elsewhere.shop("go"))).result()
                await (await app.start(elsewhere.curious("go"))).result()
            told = [sent.body["messages"][-1]["content"] for sent in provider.requests[1::2]]
            assert told[0] == '"11 characters"'
            assert "policy.denied" in told[1]

    asyncio.run(scenario())
