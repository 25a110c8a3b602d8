"""Tools in words, for models without a way to call them: the model answers with JSON that names a tool, or its answer.

The tools stand in the system text, and where the model supports schemas, its answer is one of
``{"tool": NAME, "arguments": {…}}`` and ``{"tool": "final", "answer": …}``. Conversations have the same form as with
any other model, so that another model can go on with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.agents.spec import FINAL_OUTPUT
from weft.ports.models import CallPart, ModelMessage, ModelReply, ModelRequest, ResultPart, TextPart, ToolDefinition

FINAL = "final"
_TEXT = {"type": "string"}
_encode = msgspec.json.Encoder(order="deterministic").encode


def with_tools_in_text(request: ModelRequest) -> ModelRequest:
    """Return a request without tools and tool calls, with both in words."""
    tools = [tool for tool in request.tools if tool.name != FINAL_OUTPUT]
    final = next((tool for tool in request.tools if tool.name == FINAL_OUTPUT), None)
    answer = final.parameters if final is not None else request.output_schema
    messages = tuple(_calls_as_text(message) for message in request.messages)
    if not tools and final is None:
        return msgspec.structs.replace(request, messages=messages)
    told = ModelMessage(role="system", parts=(TextPart(_instructions(tools, answer)),))
    has_system = bool(messages) and messages[0].role == "system"
    if has_system:
        told = msgspec.structs.replace(messages[0], parts=(*messages[0].parts, *told.parts))
    return msgspec.structs.replace(
        request,
        messages=(told, *messages[1:]) if has_system else (told, *messages),
        tools=(),
        output_schema=_schema(tools, answer),
    )


def read_tool_in_text(request: ModelRequest, reply: ModelReply) -> ModelReply:
    """Return the answer to ``with_tools_in_text(request)`` as that of a model with tools. Other text stays as it is."""
    message = reply.message
    if not request.tools or message.calls:
        return reply
    try:
        said = msgspec.json.decode(message.text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return reply
    if not isinstance(said, dict) or not isinstance(said.get("tool"), str):
        return reply
    rest = tuple(part for part in message.parts if not isinstance(part, TextPart))
    if said["tool"] == FINAL:
        return msgspec.structs.replace(
            reply, message=_with_parts(message, (*rest, _final(request, said.get("answer"))))
        )
    call = _call_in_text(request, said["tool"], said.get("arguments", {}))
    finish = "calls" if reply.finish == "stop" else reply.finish
    return msgspec.structs.replace(reply, message=_with_parts(message, (*rest, call)), finish=finish)


def _with_parts(message: ModelMessage, parts: tuple[Any, ...]) -> ModelMessage:
    return msgspec.structs.replace(message, parts=parts)


def _final(request: ModelRequest, answer: Any) -> TextPart | CallPart:
    if any(tool.name == FINAL_OUTPUT for tool in request.tools):
        return _call_in_text(request, FINAL_OUTPUT, answer)
    is_text = request.output_schema is None and isinstance(answer, str)
    return TextPart(answer if is_text else _encode(answer).decode())


def _call_in_text(request: ModelRequest, name: str, arguments: Any) -> CallPart:
    return CallPart(id=f"call-{request.turn}", name=name, arguments=_encode(arguments).decode())


def _calls_as_text(message: ModelMessage) -> ModelMessage:
    """Return a message with its calls and results as text."""
    if message.role == "tool":
        results = [part for part in message.parts if isinstance(part, ResultPart)]
        told = "\n".join(f"The result of {part.name}: {part.content}" for part in results)
        return ModelMessage(role="user", parts=(TextPart(told),))
    if not message.calls:
        return message
    said = [part.text for part in message.parts if isinstance(part, TextPart) and part.text]
    for part in message.calls:
        name, arguments = _encode(part.name).decode(), part.arguments or "{}"
        said.append(f'{{"tool": {name}, "arguments": {arguments}}}')
    return ModelMessage(role="assistant", parts=(TextPart("\n".join(said)),))


def _instructions(tools: list[ToolDefinition], answer: Mapping[str, Any] | None) -> str:
    lines = ["You have these tools:"] if tools else []
    lines += [
        f"- {tool.name}: {tool.description} Arguments: {_encode(tool.parameters).decode()}"
        for tool in sorted(tools, key=lambda one: one.name)
    ]
    lines.append("Answer with one JSON object and nothing else.")
    if tools:
        lines.append('To call a tool: {"tool": NAME, "arguments": {…}}. You are told its result.')
    shape = f", where the answer fits this schema: {_encode(answer).decode()}" if answer is not None else ""
    lines.append(f'When you are done: {{"tool": "{FINAL}", "answer": …}}{shape}.')
    return "\n".join(lines)


def _schema(tools: list[ToolDefinition], answer: Mapping[str, Any] | None) -> dict[str, Any]:
    defs: dict[str, Any] = {}
    options = [
        _option(tool.name, "arguments", _hoist(tool.parameters, f"{tool.name}_", defs))
        for tool in sorted(tools, key=lambda one: one.name)
    ]
    options.append(_option(FINAL, "answer", _hoist(answer if answer is not None else _TEXT, "answer_", defs)))
    return {"anyOf": options, "$defs": defs} if defs else {"anyOf": options}


def _option(tool: str, field: str, schema: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": [tool]}, field: schema},
        "required": ["tool", field],
        "additionalProperties": False,
    }


def _hoist(schema: Mapping[str, Any], prefix: str, defs: dict[str, Any]) -> Any:
    """Return a schema that stands inside another one. Its definitions go to ``defs``, under names of its own."""
    for name, part in schema.get("$defs", {}).items():
        defs[f"{prefix}{name}"] = _renamed(part, prefix)
    return _renamed({key: part for key, part in schema.items() if key != "$defs"}, prefix)


def _renamed(part: Any, prefix: str) -> Any:
    if isinstance(part, Mapping):
        return {
            key: f"#/$defs/{prefix}{value.removeprefix('#/$defs/')}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#/$defs/")
            else _renamed(value, prefix)
            for key, value in part.items()
        }
    return [_renamed(one, prefix) for one in part] if isinstance(part, list | tuple) else part
