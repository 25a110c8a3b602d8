"""Write a request in the format of POST ``/responses``. Nothing is kept by the provider (``store: false``)."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from weft.agents.models.aliases import ModelAlias
from weft.agents.models.call_ids import with_unique_ids
from weft.agents.models.chat_request import SCHEMA_NAME, Load
from weft.agents.models.strict_schemas import is_strict
from weft.ports.models import BlobPart, CallPart, ModelMessage, ModelRequest, OpaquePart, ResultPart, TextPart


async def responses_request(alias: ModelAlias, request: ModelRequest, load: Load) -> dict[str, Any]:
    """Return the body of a request."""
    body: dict[str, Any] = {"model": alias.model}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    body["input"] = [
        item for message in with_unique_ids(request.messages) for item in await _items(alias.name, message, load)
    ]
    if request.output_schema is not None and "schema" in alias.supports:
        strict = is_strict(request.output_schema)
        schema = {"type": "json_schema", "name": SCHEMA_NAME, "schema": request.output_schema, "strict": strict}
        body["text"] = {"format": schema}
    options = {**alias.options, **request.options}
    given = options.pop("max_output_tokens", None)
    body |= {name: value for name, value in options.items() if value is not None and name not in body}
    wanted = request.output_tokens
    body["max_output_tokens"] = min(given, wanted) if isinstance(given, int) and given > 0 else wanted
    body |= {"store": False, "include": ["reasoning.encrypted_content"]}
    if "stream" in alias.supports:
        body["stream"] = True
    return body


async def _items(alias: str, message: ModelMessage, load: Load) -> list[dict[str, Any]]:
    """Return a message as items. Those of an answer keep their order, since reasoning belongs to what follows it."""
    items: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                kind = "output_text" if message.role == "assistant" else "input_text"
                content.append({"type": kind, "text": text})
            case BlobPart():
                content.append(await _blob(part, load))
            case CallPart(id=call, name=name, arguments=arguments):
                _end_message(items, content, message.role)
                made = {"type": "function_call", "call_id": call, "name": name, "arguments": arguments or "{}"}
                items.append(made)
            case ResultPart(id=call, content=result):
                items.append({"type": "function_call_output", "call_id": call, "output": result})
            case OpaquePart(made_by=made_by, data=data) if made_by == alias:
                _end_message(items, content, message.role)
                items.append(msgspec.json.decode(data))
            case OpaquePart():
                pass
    _end_message(items, content, message.role)
    return items


def _end_message(items: list[dict[str, Any]], content: list[dict[str, Any]], role: str) -> None:
    if content:
        items.append({"type": "message", "role": role, "content": list(content)})
        content.clear()


async def _blob(part: BlobPart, load: Load) -> dict[str, Any]:
    url = f"data:{part.media_type};base64,{base64.b64encode(await load(part.ref)).decode()}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "filename": part.name or "file", "file_data": url}
