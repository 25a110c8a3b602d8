"""The worker process for Lua. It runs calls one after the other until its input ends, and may be killed at any time.

A frame consists of four bytes of length and a body in MessagePack. The first reply is empty and means that the worker
is ready. The worker does not outlive its parent, because it ends when the pipe closes. While it is busy, an alarm ends
it. The alarm has no handler, so it works even while a pattern is matched.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import BinaryIO, Final

import msgspec

from weft.scripts.lua.state import LuaState, Patterns

_ALARM_S: Final = 5.0


class LuaCall(msgspec.Struct, array_like=True):
    """A call to run: a chunk, its arguments as JSON, and whether only the truth of the result matters."""

    text: str
    arguments: bytes
    truth: bool


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the body of the next frame, or None at the end of the stream."""
    head = _read_exactly(stream, 4)
    return None if head is None else _read_exactly(stream, int.from_bytes(head, "big"))


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Write a frame with this body."""
    stream.write(len(body).to_bytes(4, "big") + body)
    stream.flush()


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = stream.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve() -> None:
    """Run calls until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    calls, replies = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    state = LuaState(Patterns.ALL)
    write_frame(replies, b"")
    while (frame := read_frame(calls)) is not None:
        call = msgspec.msgpack.decode(frame, type=LuaCall)
        _set_alarm(_ALARM_S)
        outcome = state.run(call.text, call.arguments, truth=call.truth)
        _set_alarm(0.0)
        if state.spent:
            state = LuaState(Patterns.ALL)
        write_frame(replies, msgspec.msgpack.encode(outcome))


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
