"""Whole chat completions for the scripted server: the clients of the frameworks do not ask for streams."""

from __future__ import annotations

from typing import Any

from tests.agents.scripted_server import Say, whole

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def completed(text: str | None, *calls: tuple[str, str, str]) -> Say:
    """Say a text, or tool calls (id, name, arguments)."""
    wanted = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if wanted:
        message["tool_calls"] = wanted
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if wanted else "stop"}
    return whole(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "m-1",
            "choices": [choice],
            "usage": USAGE,
        }
    )
