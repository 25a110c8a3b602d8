"""Make the ids of tool calls unique in what is sent. Pure.

Providers refuse a conversation in which two calls have one id, and some of them give all calls the same id, or none. An
id identifies nothing in Weft, so it can be replaced where it would confuse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.ports.models import CallPart, ModelMessage, Part, ResultPart


def with_unique_ids(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Return the messages with an id of its own for each call, and the same id for its result."""
    ids = [part.id for message in messages for part in message.parts if type(part) is CallPart]
    if "" not in ids and len(set(ids)) == len(ids):
        return messages
    return _made_unique(messages)


def _made_unique(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    used: set[str] = set()
    open_calls: list[tuple[str, str]] = []
    """The calls without a result: their ids as they came, and as they are sent."""
    found = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, CallPart):
                sent = _free(part.id, used)
                used.add(sent)
                open_calls.append((part.id, sent))
                parts.append(part if sent == part.id else msgspec.structs.replace(part, id=sent))
            elif isinstance(part, ResultPart):
                sent = _take_open_id(part.id, open_calls)
                parts.append(part if sent == part.id else msgspec.structs.replace(part, id=sent))
            else:
                parts.append(part)
        found.append(msgspec.structs.replace(message, parts=tuple(parts)))
    return found


def _free(wanted: str, used: set[str]) -> str:
    if wanted and wanted not in used:
        return wanted
    begin = wanted or "call"
    number = len(used)
    while f"{begin}_{number}" in used:
        number += 1
    return f"{begin}_{number}"


def _take_open_id(came: str, open_calls: list[tuple[str, str]]) -> str:
    """Return the id of the first call without a result that came with this id."""
    for place, (given, sent) in enumerate(open_calls):
        if given == came:
            del open_calls[place]
            return sent
    return came
