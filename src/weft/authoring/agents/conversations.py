"""Read and rewrite conversations in steps of the loop: histories of other runs, shorter ones, and their tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from weft.agents.conversation import EMPTY, Conversation, Conversations, HeldBlob
from weft.agents.models.estimate import messages_chars
from weft.authoring.agents.operations import loop_scope
from weft.authoring.agents.reply import ToolCall
from weft.ports.models import CallPart, ModelMessage, ResultPart
from weft.runtime.service import RunService

ARGUMENTS_CHARS_MAX = 4_000
NOT_PERFORMED = '{"error":"this was not performed"}'


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that a step put: its head, in the form that keeps it, and its length."""

    head: str
    link: HeldBlob
    chars: int
    messages: int
    is_tainted: bool = False
    """It has words of strangers."""


def service_here() -> Callable[[], RunService]:
    """Return a function that returns the service of this run's host. A step calls it: replay may have no host."""
    program = loop_scope().driver.program

    def service() -> RunService:
        found = program.service()
        assert isinstance(found, RunService)
        return found

    return service


def conversations_here() -> Callable[[], Conversations]:
    """Return a function that gives access to conversations in the store of this run's host."""
    service = service_here()
    return lambda: Conversations(service().values.put, service().values.blob)


def stored_conversation(conversation: Conversation) -> StoredConversation:
    """Return a conversation as a step reports it, so that the run holds its blobs."""
    assert conversation.held is not None
    return StoredConversation(
        head=conversation.head,
        link=conversation.held,
        chars=messages_chars(conversation.messages),
        messages=len(conversation.messages),
        is_tainted=conversation.is_tainted,
    )


async def take_over_conversation(
    found: Conversations, history: str, system: Sequence[ModelMessage]
) -> StoredConversation:
    """Make one blob of another run's conversation, with this agent's own system text.

    Raises BadValue, NotFound, LimitExceeded.
    """
    before = await found.read(history)
    rest = [message for message in before.messages if message.role != "system"]
    return stored_conversation(await found.append(EMPTY, [*system, *with_results(rest)], is_tainted=before.is_tainted))


def with_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return messages in which every call has a result. The last calls of a run that ended may have none."""
    made: list[ModelMessage] = []
    open_calls: list[CallPart] = []
    for message in messages:
        if message.role != "tool":
            made += _results_for(open_calls)
            open_calls = list(message.calls)
        else:
            done = [part.id for part in message.parts if isinstance(part, ResultPart)]
            for id in done:  # noqa: A001 - the provider's word
                match = next((call for call in open_calls if call.id == id), None)
                if match is not None:
                    open_calls.remove(match)
        made.append(message)
    return made + _results_for(open_calls)


def _results_for(calls: Sequence[CallPart]) -> list[ModelMessage]:
    return [
        ModelMessage(role="tool", parts=(ResultPart(id=call.id, name=call.name, content=NOT_PERFORMED),))
        for call in calls
    ]


async def tool_calls_of(found: Conversations, head: str) -> list[ToolCall]:
    """Return the tool calls of a conversation, in order."""
    messages = (await found.read(head)).messages
    made: list[ToolCall] = []
    turn = -1
    results = _results_by_place(messages)
    for place, message in enumerate(messages):
        if message.role != "assistant":
            continue
        turn += 1
        for number, call in enumerate(message.calls):
            content = results.get((place, number), NOT_PERFORMED)
            made.append(
                ToolCall(
                    name=call.name,
                    arguments=call.arguments[:ARGUMENTS_CHARS_MAX],
                    ok=not content.startswith('{"error":'),
                    turn=turn,
                )
            )
    return made


def _results_by_place(messages: Sequence[ModelMessage]) -> dict[tuple[int, int], str]:
    """Return the results by message and number of their call. Results are in the order of the calls."""
    found: dict[tuple[int, int], str] = {}
    asked, number = -1, 0
    for place, message in enumerate(messages):
        if message.role == "assistant":
            asked, number = place, 0
        elif message.role == "tool":
            for part in message.parts:
                if isinstance(part, ResultPart):
                    found[asked, number] = part.content
                    number += 1
    return found
