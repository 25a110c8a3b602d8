"""Lua states with the sandbox loaded, and a pool of them for threads.

A state runs one call at a time, from JSON to JSON. No Lua object ever reaches Python, because a conversion that runs
out of memory outside a protected call would end the process. A state that has run out of memory, or has compiled many
chunks, is replaced. Making a new one takes about a millisecond.
"""

from __future__ import annotations

import os
import threading
from enum import StrEnum
from functools import cache
from importlib import resources
from time import thread_time
from typing import Any, Final, NamedTuple

from weft.extras import require
from weft.scripts import limits

STATES_MAX: Final = 10
_CHUNK_CHARS_MAX: Final = 262_144


class Patterns(StrEnum):
    """Which string patterns may run: those whose worst case is short, or all, in a process that can be killed."""

    BOUNDED = "bounded"
    ALL = "all"


class LuaOutcome(NamedTuple):
    """How a call ended: ``ok`` with JSON, ``failed`` with a reason, or ``limit`` with the name of the limit.

    ``line`` is 0 if it is unknown.
    """

    status: str
    text: bytes
    line: int


class LuaState:
    """One Lua state. Not thread-safe. A state that is ``spent`` must not be used again."""

    __slots__ = ("_chars", "_compile", "_ids", "_run", "spent")

    def __init__(self, patterns: Patterns) -> None:
        runtime = _lua().LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse_attribute,
            max_memory=limits.LUA_MEMORY_MAX,
        )
        values = runtime.execute(
            _source("values.lua"), limits.OUTPUT_BYTES_MAX, limits.OUTPUT_NODES_MAX, limits.DEPTH_MAX
        )
        numbers = (limits.LUA_STEPS_MAX, limits.TIME_S_MAX, limits.LUA_LIVE_KB_MAX, limits.OUTPUT_BYTES_MAX)
        get_limits = runtime.execute("local a, b, c, d = ... return function() return a, b, c, d end", *numbers)
        self._compile, self._run = runtime.execute(
            _source("sandbox.lua"), thread_time, patterns.value.encode(), get_limits, *values
        )
        self._ids: dict[str, int] = {}
        self._chars = 0
        self.spent = False

    def compile(self, text: str) -> str:
        """Compile a chunk, unless it is compiled already. Returns the error, or an empty text."""
        if text in self._ids:
            return ""
        id_next = len(self._ids) + 1
        problem = self._compile(id_next, text.encode())
        if problem is not None:
            self.spent = self.spent or problem == b"memory"
            return str(problem.decode(errors="replace"))
        self._ids[text] = id_next
        self._chars += len(text)
        return ""

    def run(self, text: str, arguments: bytes, *, truth: bool) -> LuaOutcome:
        """Call a chunk with a JSON array of arguments. With ``truth``, return only whether its value is true.

        The chunk has been compiled before in some state. If it does not compile in this one, memory is short here.
        """
        if text not in self._ids and self.compile(text):
            self.spent = True
            return LuaOutcome("limit", b"memory", 0)
        self.spent = True  # until the call returns normally
        try:
            status, message, line = self._run(self._ids[text], arguments, truth, thread_time())
        except _lua().LuaMemoryError:
            return LuaOutcome("limit", b"memory", 0)
        except _lua().LuaError as error:
            # Only an error that Lua raises while it reports another error gets here.
            return LuaOutcome("failed", str(error).encode(errors="replace"), 0)
        self.spent = message == b"memory" or self._chars > _CHUNK_CHARS_MAX
        return LuaOutcome(status.decode(), message, line)


class LuaStates:
    """A pool of Lua states. At most ``STATES_MAX`` threads run Lua at once; the others wait.

    ``borrow`` and ``give_back`` take the lock only to make a state, or if a thread is waiting.
    """

    def __init__(self) -> None:
        self._idle: list[LuaState] = []
        self._freed = threading.Condition()
        self._count = 0
        self._waiting = 0

    def borrow(self) -> LuaState:
        """Return a machine for one call, with ``Patterns.BOUNDED``."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make_or_wait()

    def give_back(self, state: LuaState) -> None:
        """Return a state to the pool. A spent one is dropped."""
        if state.spent:
            with self._freed:
                self._count -= 1
                self._freed.notify()
            return
        self._idle.append(state)
        if self._waiting:
            with self._freed:
                self._freed.notify()

    def _make_or_wait(self) -> LuaState:
        with self._freed:
            self._waiting += 1
            try:
                while not self._idle and self._count >= STATES_MAX:
                    self._freed.wait()
                if self._idle:
                    return self._idle.pop()
                self._count += 1
            finally:
                self._waiting -= 1
        try:
            return LuaState(Patterns.BOUNDED)
        except BaseException:
            with self._freed:
                self._count -= 1
                self._freed.notify()
            raise


_shared = [LuaStates()]


def state_pool() -> LuaStates:
    """Return the pool of this process."""
    return _shared[0]


def _reset_after_fork() -> None:
    """Make a new pool after a fork, because a thread of the parent may have held the lock."""
    _shared[0] = LuaStates()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _lua() -> Any:
    require("lua", "A script in Lua")
    from lupa import lua54  # type: ignore[import-untyped]  # noqa: PLC0415

    return lua54


@cache
def _source(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _refuse_attribute(_object: object, _name: object, _is_setting: object) -> Any:
    raise AttributeError("scripts cannot access attributes of Python objects")
