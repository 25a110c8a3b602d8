"""A server with the API of a model provider that says what a test tells it to say.

It speaks raw HTTP, so that it can also send what no honest server sends: garbage, streams that are cut or never end,
ten megabytes. Each request gets the next answer of the script; the last one is repeated. An answer may be a function of
the request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import msgspec

USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 10},
}


class Sent(msgspec.Struct, frozen=True):
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class Say(msgspec.Struct, frozen=True):
    """What the server writes: pieces of bytes with pauses between them, then perhaps nothing for ever."""

    pieces: tuple[bytes, ...]
    hangs: bool = False
    pause_s: float = 0.0


Answer = Say | Callable[[Sent], Say]


class ScriptedServer:
    """Answers requests by a script, and keeps them."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = list(answers)
        self.requests: list[Sent] = []
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which has one request."""
        present = asyncio.current_task()
        assert present is not None
        self._tasks.add(present)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            self._tasks.discard(present)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:]) if name}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        sent = Sent(head[0].split()[1], headers, msgspec.json.decode(body or b"{}"))
        self.requests.append(sent)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        say = answer if isinstance(answer, Say) else answer(sent)
        for piece in say.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(say.pause_s)
        if say.hangs:
            await asyncio.sleep(3_600)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def scripted(*answers: Answer) -> AsyncIterator[ScriptedServer]:
    """Serve a script on loopback."""
    made = ScriptedServer(answers)
    server = await asyncio.start_server(made.connected, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        server.close()
        await made.stop()


# --- what it can say -----------------------------------------------------------------------------------------------


def http(status: int = 200, body: bytes = b"", content_type: str = "application/json", **headers: str) -> Say:
    """Say a whole response."""
    return Say((_head(status, content_type, {**headers, "Content-Length": str(len(body))}), body))


def whole(value: Any, status: int = 200, **headers: str) -> Say:
    """Say JSON."""
    return http(status, msgspec.json.encode(value), **headers)


def refused(status: int, code: str = "", message: str = "no", **headers: str) -> Say:
    """Say an error in the form of most providers."""
    return whole({"error": {"message": message, "type": "error", "code": code or None}}, status, **headers)


def raw(*pieces: bytes, hangs: bool = False) -> Say:
    """Say these bytes, HTTP or not."""
    return Say(pieces, hangs)


def stream(*events: Any, done: bool = True, hangs: bool = False) -> Say:
    """Say a stream of events, one piece each. Bytes are sent as they are."""
    head = _head(200, "text/event-stream", {"Connection": "close"})
    pieces = [
        event if isinstance(event, bytes) else b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events
    ]
    return Say((head, *pieces, *([b"data: [DONE]\n\n"] if done else [])), hangs)


def text(answer: str, *, usage: Any = USAGE, finish: str | None = "stop", **more: Any) -> Say:
    """Say a text in two pieces, as a stream, in the format of chat completions."""
    half = len(answer) // 2
    return stream(
        delta(role="assistant", content=answer[:half]),
        delta(content=answer[half:], **more),
        {"model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        *([{"model": "m-1", "choices": [], "usage": usage}] if usage is not None else []),
    )


def tool_calls(*wanted: tuple[str, str, str], finish: str = "tool_calls", usage: Any = USAGE) -> Say:
    """Say tool calls (id, name, arguments), their arguments in two pieces each."""
    pieces = []
    for index, (call_id, name, arguments) in enumerate(wanted):
        half = len(arguments) // 2
        begun = {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments[:half]},
        }
        pieces.append(delta(tool_calls=[begun]))
        pieces.append(delta(tool_calls=[{"index": index, "function": {"arguments": arguments[half:]}}]))
    end = {"model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
    return stream(*pieces, end)


def delta(**fields: Any) -> dict[str, Any]:
    """Return an event with a piece of an answer."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def _head(status: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in {"Connection": "close", **headers}.items()]
    return "\r\n".join([*lines, "", ""]).encode()
