"""Make a conversation shorter before it passes what the model takes in.

Results that the model has read become previews, oldest first. If that is not enough, the model sums up the older half.
A call is never cut off from its result, and the system text, the first message and the newest half stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.agents.conversation import EMPTY, Conversations, HeldBlob
from weft.agents.models.estimate import messages_chars
from weft.authoring.agents.conversations import StoredConversation, stored_conversation
from weft.ports.models import ModelMessage, ResultPart, TextPart

NEWEST_RESULTS_KEPT = 5
PREVIEW_CHARS = 200
PRUNED_CHARS_MIN = 400
"""Shorter results are not worth pruning."""
AIM = 0.6
"""How much of the allowed length a shorter conversation may have, so that the next turns have room."""
SUM_UP = (
    "Sum up the conversation below for yourself, so that you can go on without it: what was asked, what was found out, "
    "what was done (with ids and numbers), and what is still to do. Write only the summary."
)
SUMMARY_CHARS = 2_000
SUMMARY = "What happened so far, in short:\n"


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation without its old results, and what to sum up if it is still too long."""

    conversation: StoredConversation
    holds: list[HeldBlob] = []
    """The results that became previews."""
    to_sum_up: StoredConversation | None = None
    kept: int = 0
    """How many of the newest messages the summary does not replace."""


async def prune(
    found: Conversations, head: str, add: Sequence[ModelMessage], chars_max: int, *, newest: int = NEWEST_RESULTS_KEPT
) -> Pruned:
    """Shorten the results in a conversation, and say what to sum up if it still has more than ``chars_max``.

    The ``newest`` results stay as they are.
    """
    messages = [*(await found.read(head)).messages, *add]
    holds: list[HeldBlob] = []
    places = [place for place, message in enumerate(messages) if message.role == "tool"]
    chars = messages_chars(messages)
    for place in places[: max(0, len(places) - newest)]:
        if chars <= chars_max:
            break
        before = messages[place]
        messages[place] = await _pruned(found, before, holds)
        chars += messages_chars([messages[place]]) - messages_chars([before])
    shorter = stored_conversation(await found.append(EMPTY, messages))
    if shorter.chars <= chars_max:
        return Pruned(conversation=shorter, holds=holds)
    first, rest = split_head(messages)
    older, newer = split_half(rest)
    if not older:
        return Pruned(conversation=shorter, holds=holds)
    told = (_text_message("system", SUM_UP), _text_message("user", transcript([*first, *older], chars_max)))
    return Pruned(
        conversation=shorter,
        holds=holds,
        to_sum_up=stored_conversation(await found.append(EMPTY, told)),
        kept=len(newer),
    )


async def with_summary(found: Conversations, pruned: Pruned, summary: str) -> StoredConversation:
    """Replace the older messages by their summary, or by their beginning and end if the model gave none."""
    first, rest = split_head((await found.read(pruned.conversation.head)).messages)
    cut = len(rest) - pruned.kept
    told = summary.strip() or transcript(rest[:cut], SUMMARY_CHARS)
    return stored_conversation(await found.append(EMPTY, [*first, _text_message("user", SUMMARY + told), *rest[cut:]]))


def split_head(messages: Sequence[ModelMessage]) -> tuple[list[ModelMessage], list[ModelMessage]]:
    """Split off the system text and the first message of the user."""
    cut = next((place + 1 for place, message in enumerate(messages) if message.role == "user"), 0)
    return list(messages[:cut]), list(messages[cut:])


def split_half(messages: Sequence[ModelMessage]) -> tuple[list[ModelMessage], list[ModelMessage]]:
    """Split messages near the middle of their characters, never between a call and its result."""
    half, total = 0, messages_chars(messages)
    for cut, message in enumerate(messages):
        if half >= total / 2 and message.role != "tool":
            return list(messages[:cut]), list(messages[cut:])
        half += messages_chars([message])
    last = next((cut for cut in range(len(messages) - 1, 0, -1) if messages[cut].role != "tool"), 0)
    return list(messages[:last]), list(messages[last:])


def transcript(messages: Sequence[ModelMessage], chars_max: int) -> str:
    """Write messages as text, without the middle if that is too long."""
    lines = []
    for message in messages:
        calls = "".join(f"\n  calls {call.name}({call.arguments})" for call in message.calls)
        lines.append(f"{message.role}: {message.text}{calls}")
    text = "\n\n".join(lines)
    if len(text) <= chars_max:
        return text
    half = max(chars_max // 2, 100)
    return f"{text[:half]}\n\n[…]\n\n{text[-half:]}"


async def _pruned(found: Conversations, message: ModelMessage, holds: list[HeldBlob]) -> ModelMessage:
    parts = []
    for part in message.parts:
        if not isinstance(part, ResultPart) or len(part.content) < PRUNED_CHARS_MIN or '"pruned":true' in part.content:
            parts.append(part)
            continue
        raw = part.content.encode()
        digest = await found.put(raw)
        holds.append(HeldBlob(at=f"cas://sha256:{digest}", size=len(raw)))
        shown = {
            "pruned": True,
            "tool": part.name,
            "ok": not part.content.startswith('{"error":'),
            "preview": part.content[:PREVIEW_CHARS],
            "result_ref": f"cas://sha256:{digest}",
        }
        parts.append(ResultPart(id=part.id, name=part.name, content=msgspec.json.encode(shown).decode()))
    return ModelMessage(role=message.role, parts=tuple(parts))


def _text_message(role: str, text: str) -> ModelMessage:
    return ModelMessage(role="system" if role == "system" else "user", parts=(TextPart(text),))
