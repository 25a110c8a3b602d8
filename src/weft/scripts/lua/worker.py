"""The process that may be killed: it answers one call after the other until its input ends.

A frame is four bytes of length and a body. The body of a question is MessagePack, that of an answer too; the first
answer, empty, says that the worker is ready. It does not outlive its parent: when the pipe closes it ends, and
while it is busy an alarm ends it, which needs no handler and so works inside of a pattern.
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
    """One call."""

    text: str
    given: bytes
    truth: bool


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next body, or None where the stream ends."""
    head = _read_exactly(stream, 4)
    return None if head is None else _read_exactly(stream, int.from_bytes(head, "big"))


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Write a body with its length, whole."""
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
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the parent, which closes the pipe
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    state = LuaState(Patterns.ALL)
    write_frame(answers, b"")
    while (frame := read_frame(questions)) is not None:
        question = msgspec.msgpack.decode(frame, type=LuaCall)
        _set_alarm(_ALARM_S)
        outcome = state.run(question.text, question.given, truth=question.truth)
        _set_alarm(0.0)
        if state.spent:
            state = LuaState(Patterns.ALL)
        write_frame(answers, msgspec.msgpack.encode(outcome))


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
