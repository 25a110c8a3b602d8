"""Receive, await, take and answer messages. Pure.

A message belongs to the run as soon as it is in the log. A wait takes the oldest messages with a matching name, in
order of arrival. A MessagesTaken event removes messages from the buffer. While a wait is open, the buffer has no
message that the wait could take.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.commands import DeliverMessage
from weft.core.events import AnyEvent, MessageAnswered, MessageReceived, MessagesTaken
from weft.core.ids import EntryId
from weft.core.run.state import State, WaitingMessage
from weft.core.run.statuses import permits


def decide_message(state: State, command: DeliverMessage) -> Sequence[AnyEvent]:
    """Record a message. If a wait is open for it, take it at once."""
    permits(state, command)
    received = MessageReceived(
        id=command.id, name=command.name, body=command.body, sender=command.sender, answer=command.answer
    )
    for number, wait in state.waits.items():
        if not wait.names or command.name in wait.names:
            taken = MessagesTaken(wait=EntryId(number), ids=[command.id])
            if command.answer and not wait.answer:
                return (received, taken, MessageAnswered(message=command.id))
            return (received, taken)
    return (received,)


def take_buffered(wait: EntryId, messages: Sequence[WaitingMessage], *, answer: bool) -> Sequence[AnyEvent]:
    """Take messages from the buffer. Unless the code will answer them, answer null to senders that wait."""
    taken = MessagesTaken(wait=wait, ids=[message.id for message in messages])
    if answer:
        return (taken,)
    return (taken, *(MessageAnswered(message=message.id) for message in messages if message.answer))


def refuse_message(state: State, message: str, error: str) -> Sequence[AnyEvent]:
    """Return the answer to a refused message, if its sender waits for one."""
    return (MessageAnswered(message=message, error=error),) if message in state.requests else ()


def waiting_messages(state: State, names: Sequence[str], most: int) -> list[WaitingMessage]:
    """Return the oldest buffered messages with one of these names, at most ``most``. No names match any message."""
    if not state.messages:
        return []
    pools = [state.messages[name] for name in (names or state.messages) if name in state.messages]
    if len(pools) == 1:
        return pools[0][:most]
    return sorted((message for pool in pools for message in pool[:most]), key=lambda message: message.n)[:most]


def evolve_message(state: State, event: MessageReceived) -> None:
    """Append a message to the buffer."""
    state.arrived += 1
    message = WaitingMessage(
        n=state.arrived,
        id=event.id,
        name=event.name,
        at=state.at,
        body=event.body,
        sender=event.sender,
        answer=event.answer,
    )
    state.messages.setdefault(event.name, []).append(message)
    if event.answer:
        state.requests[event.id] = state.at


def take_messages(state: State, ids: Sequence[str], names: Sequence[str]) -> list[WaitingMessage]:
    """Remove these messages from the buffer and return them. They are the oldest with one of the names."""
    taken = waiting_messages(state, names, len(ids))
    for message in taken:
        pool = state.messages[message.name]
        pool.remove(message)
        if not pool:
            del state.messages[message.name]
    return taken
