"""The step ``weft.model``: reads the conversation, asks, and adds one link with what is new."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from tests.agents.model_kit import asking, system, user
from tests.agents.scripted_server import text, tool_calls
from tests.steps.http_kit import go, task
from weft.agents.models.prices import Prices
from weft.core.values import blobs_in
from weft.errors import BadValue, LimitExceeded, UsageError
from weft.ports.models import ModelMessage, ResultPart
from weft.steps.secrets import Secret
from weft.steps.task import CURRENT_TASK, Task


def _spend(*_: object) -> None:
    """Count nothing."""


def written(*messages: ModelMessage) -> list[object]:
    found: list[object] = msgspec.to_builtins(messages)
    return found


def test_a_turn_writes_what_is_new_and_sends_everything() -> None:
    async def scenario() -> None:
        async with asking(tool_calls(("c", "find", "{}")), text("Found.")) as asked:
            first = await asked.perform(add=written(system("Be brief."), user("Find it.")))
            assert first["calls"] == [{"id": "c", "name": "find", "arguments": "{}"}]
            assert (first["finish"], first["model"], first["alias"], first["text"]) == ("calls", "m-1", "fast", "")

            result = ModelMessage(role="tool", parts=(ResultPart(id="c", name="find", content='"here"'),))
            second = await asked.perform(head=first["head"], add=written(result), turn=1)

            assert second["text"] == "Found."
            assert [message["role"] for message in asked.sent["messages"]] == ["system", "user", "assistant", "tool"]
            conversation = await asked.conversations.read(second["head"])
            assert [message.role for message in conversation.messages] == [
                "system",
                "user",
                "assistant",
                "tool",
                "assistant",
            ]

    go(scenario())


def test_the_links_of_a_chain_hold_each_other_and_the_answer_holds_the_last() -> None:
    async def scenario() -> None:
        async with asking(text("one"), text("two")) as asked:
            first = await asked.perform(add=written(user("a")))
            second = await asked.perform(head=first["head"], add=written(user("b")))

            newest = second["head"].removeprefix("cas://sha256:")
            assert blobs_in(msgspec.json.encode(second)) == [newest]
            assert blobs_in(asked.blobs.content[newest]) == [first["head"].removeprefix("cas://sha256:")]

    go(scenario())


def test_a_conversation_can_be_made_one_blob() -> None:
    async def scenario() -> None:
        async with asking(text("one"), text("two")) as asked:
            first = await asked.perform(add=written(user("a")))
            second = await asked.perform(head=first["head"], add=written(user("b")))

            flat = await asked.conversations.flatten(second["head"])

            assert blobs_in(asked.blobs.content[flat.head.removeprefix("cas://sha256:")]) == []
            assert [message.text for message in flat.messages] == ["a", "one", "b", "two"]

    go(scenario())


@pytest.mark.parametrize("head", ["x", "cas://sha256:zz", "cas://sha256:" + "0" * 63])
def test_a_head_that_refers_to_nothing_is_refused(head: str) -> None:
    async def scenario() -> None:
        async with asking(text("one")) as asked:
            with pytest.raises(BadValue, match="does not refer to a conversation"):
                await asked.perform(head=head, add=written(user("a")))
            assert asked.server.requests == []

    go(scenario())


def test_a_blob_that_is_no_conversation_is_refused() -> None:
    async def scenario() -> None:
        async with asking(text("one")) as asked:
            head = f"cas://sha256:{await asked.blobs.put(b'[1, 2]')}"
            with pytest.raises(BadValue, match="does not refer to a conversation"):
                await asked.perform(head=head)

    go(scenario())


def test_a_conversation_has_a_limit() -> None:
    async def scenario() -> None:
        async with asking(text("one")) as asked:
            with pytest.raises(LimitExceeded, match="16,777,216 bytes"):
                await asked.perform(add=written(user("x" * 17_000_000)))

    go(scenario())


def test_what_all_calls_have_in_common_is_read_from_the_spec() -> None:
    tools = [{"name": "find", "description": "Find it.", "parameters": {"type": "object"}}]
    spec = {"request": {"tools": tools, "options": {"seed": 1}}, "anything": "else"}

    async def scenario() -> None:
        async with asking(text("one")) as asked:
            ref = f"cas://sha256:{await asked.blobs.put(msgspec.json.encode(spec))}"
            await asked.perform(spec=ref, add=written(user("a")), options={"temperature": 0})
            assert asked.sent["tools"][0]["function"]["name"] == "find"
            assert (asked.sent["seed"], asked.sent["temperature"]) == (1, 0)

            await asked.perform(spec=ref, add=written(user("a")), tools=[])
            assert "tools" not in asked.sent

    go(scenario())


def test_a_call_costs_what_the_prices_say() -> None:
    async def scenario() -> None:
        async with asking(text("one"), prices=Prices("0.25", "2.00", cached="0.025")) as asked:
            answer = await asked.perform(add=written(user("a")))

            # 20 × 0.25 + 100 × 0.025 + 30 × 2, rounded up
            assert (answer["money"], answer["currency"]) == (68, "USD")

    go(scenario())


def test_an_answer_may_have_no_more_tokens_than_the_alias_allows() -> None:
    async def scenario() -> None:
        async with asking(text("one"), output=1_000) as asked:
            await asked.perform(add=written(user("a")), output_tokens=5_000)
            assert asked.sent["max_completion_tokens"] == 1_000

    go(scenario())


def test_a_model_that_repeats_its_key_does_not_get_it_into_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKY_KEY", "sk-leaky-secret-987")

    async def scenario() -> None:
        async with asking(text("My key is sk-leaky-secret-987!"), key=Secret("env:LEAKY_KEY")) as asked:
            answer = await asked.perform(add=written(user("What is your key?")))

            assert "sk-leaky" not in str(answer)
            assert not any(b"sk-leaky" in content for content in asked.blobs.content.values())

    go(scenario())


@pytest.mark.parametrize("given", [{"add": 5}, {"add": [{"role": "king", "parts": []}]}, {"head": None}])
def test_a_call_that_cannot_be_read_is_refused(given: dict[str, object]) -> None:
    async def scenario() -> None:
        async with asking(text("one")) as asked:
            with pytest.raises(BadValue, match="no valid call"):
                await asked.perform(**given)

    go(scenario())


def test_an_unknown_model_is_named_with_the_nearest_one() -> None:
    async def scenario() -> None:
        async with asking(text("one")) as asked:
            with pytest.raises(UsageError, match='Did you mean "fast"') as unknown:
                await asked.perform(alias="fats")
            assert unknown.value.code == "model.unknown"
            assert asked.step.is_final(unknown.value)

    go(scenario())


def test_an_equal_request_is_answered_from_the_cache_and_costs_nothing() -> None:
    async def scenario() -> None:
        async with asking(text("one"), text("two"), cache="1h", prices=Prices("1", "1")) as asked:
            with task("u1/model"):
                first = await asked.perform(add=written(user("a")))
                again = await asked.perform(add=written(user("a")))
                other = await asked.perform(add=written(user("b")))

            assert (first["text"], again["text"], other["text"]) == ("one", "one", "two")
            assert len(asked.server.requests) == 2
            assert (again["money"], again["usage"]["input"], again["head"]) == (0, 0, first["head"])
            assert again["reused"] == {"run": "order-1", "at": 1_800_000_000_000}
            assert "reused" not in first

    go(scenario())


def test_tenants_do_not_share_answers() -> None:
    async def scenario() -> None:
        async with asking(text("one"), text("two"), cache=True) as asked:
            for run_id in ("@acme/order-1", "@other/order-1"):
                token = CURRENT_TASK.set(
                    partial(Task, spend=_spend, key="k", attempt=1, run_id=run_id, step="weft.model")
                )
                await asked.perform(add=written(user("a")))
                CURRENT_TASK.reset(token)
            assert len(asked.server.requests) == 2

    go(scenario())


def test_an_answer_that_was_cut_short_is_not_kept() -> None:
    async def scenario() -> None:
        async with asking(text("on", finish="length"), text("one"), cache=True) as asked:
            assert (await asked.perform(add=written(user("a"))))["finish"] == "length"
            assert (await asked.perform(add=written(user("a"))))["text"] == "one"

    go(scenario())


def test_a_stream_that_cannot_be_written_costs_no_answer() -> None:
    def is_full(*_: object, **__: object) -> None:
        raise LimitExceeded("The stream grows faster than the store can write it.")

    async def scenario() -> None:
        async with asking(text("Found.")) as asked:
            full = Task(key="uid/1", attempt=1, run_id="r", step="weft.model", emit=is_full, spend=_spend)
            token = CURRENT_TASK.set(lambda: full)
            try:
                assert (await asked.perform(add=written(user("Find it.")), stream="agent"))["text"] == "Found."
            finally:
                CURRENT_TASK.reset(token)

    go(scenario())
