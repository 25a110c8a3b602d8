"""The worker process for Lua. It runs calls one after the other until its input ends, and may be killed at any time."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.killable import serve_calls
from weft.scripts.lua.state import LuaState, Patterns

_ALARM_S: Final = 5.0


class LuaCall(msgspec.Struct, array_like=True):
    """A call to run: a chunk, its arguments as JSON, and whether only the truth of the result matters."""

    text: str
    arguments: bytes
    truth: bool


def serve() -> None:
    """Run calls until the input ends."""
    state = LuaState(Patterns.ALL)

    def run(frame: bytes) -> bytes:
        nonlocal state
        call = msgspec.msgpack.decode(frame, type=LuaCall)
        outcome = state.run(call.text, call.arguments, truth=call.truth)
        if state.spent:
            state = LuaState(Patterns.ALL)
        return msgspec.msgpack.encode(outcome)

    serve_calls(run, alarm_s=_ALARM_S)
