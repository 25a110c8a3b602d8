"""Scripts in Lua 5.4, run by lupa in this process, or in a worker process if their time cannot be bounded here.

A call in this process takes a few microseconds; a round trip to a worker takes a hundred. So a script runs here, under
a hook that counts instructions, reads the processor time of the thread and watches memory (``sandbox.lua``). The hook
cannot interrupt the matching of a string pattern. A pattern that is fast even in its worst case, judging by its length,
its repetitions and the subject, is matched here. At the first other pattern, the call is stopped and repeated in a
worker process, which is killed after a second. Scripts are pure, so repeating one is safe.

A script has its inputs as local variables and returns a value. ``pairs`` is sorted, ``table.sort`` is stable, and there
are no addresses or random numbers, so the same inputs produce the same outputs on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.errors import WeftError
from weft.scripts.failures import bad_script, limit_exceeded, script_failed
from weft.scripts.lua.state import LuaOutcome, state_pool
from weft.scripts.lua.workers import run_killable
from weft.scripts.script import CompiledScript

LANGUAGE: Final = "lua"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE: Final = re.compile(r'(?:script|\[string "[^"]*"\]):(\d+): ')
_KEYWORDS: Final = frozenset({
    "_ENV", "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
})  # fmt: skip


class LuaScript(CompiledScript):
    """A Lua chunk whose inputs are local variables."""

    __slots__ = ("_text",)

    def __init__(self, source: str, inputs: tuple[str, ...]) -> None:
        super().__init__(LANGUAGE, source, inputs)
        self._text = chunk_text(source, inputs)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return _decode(self._run(values, truth=False))

    def holds(self, values: Mapping[str, Any]) -> bool:
        return self._run(values, truth=True) == b"true"

    def _run(self, values: Mapping[str, Any], *, truth: bool) -> bytes:
        arguments = self.arguments(values)
        pool = state_pool()
        state = pool.borrow()
        try:
            outcome = state.run(self._text, arguments, truth=truth)
        finally:
            pool.give_back(state)
        if outcome.text == b"elsewhere" and outcome.status == "limit":
            outcome = run_killable(self._text, arguments, truth=truth)
        if outcome.status == "ok":
            return outcome.text
        raise _call_error(outcome)


def compile_lua(source: str, inputs: tuple[str, ...]) -> LuaScript:
    """Compile a Lua script.

    Raises:
        BadScript: an input cannot be a variable in Lua, or the text does not compile.
        UsageError: lupa is not installed.
    """
    for name in inputs:
        if not _NAME.fullmatch(name) or name in _KEYWORDS:
            suggestion = re.sub(r"\W", "_", name, flags=re.ASCII)
            usable = suggestion != name and _NAME.fullmatch(suggestion)
            hint = f"Rename the input, for example to `{suggestion}`." if usable else "Rename the input."
            raise bad_script(LANGUAGE, f"the input {name!r} cannot be a variable in Lua", hint=hint)
    pool = state_pool()
    state = pool.borrow()
    try:
        problem = state.compile(chunk_text(source, inputs))
        is_value = bool(problem) and not state.compile(chunk_text(f"return {source}", inputs))
    finally:
        pool.give_back(state)
    if problem:
        raise _compile_error(problem, "Write `return` before the value." if is_value else "")
    return LuaScript(source, inputs)


def chunk_text(source: str, inputs: tuple[str, ...]) -> str:
    """Return the chunk for a script. It binds the inputs on the first line, so that line numbers stay correct."""
    return f"local {', '.join(inputs)} = ...; {source}" if inputs else source


def _compile_error(problem: str, hint: str) -> WeftError:
    if problem == "memory":
        return bad_script(LANGUAGE, "the script is too big to compile")
    place = _PLACE.match(problem)
    line = int(place[1]) if place else None
    return bad_script(LANGUAGE, _PLACE.sub("", problem, count=1), line=line, hint=hint)


def _call_error(outcome: LuaOutcome) -> WeftError:
    message = outcome.text.decode(errors="replace")
    if outcome.status == "limit":
        return limit_exceeded(LANGUAGE, message, line=outcome.line or None)
    reason = _PLACE.sub("", message, count=1)
    if "stack overflow" in reason or "error in error handling" in reason:
        return limit_exceeded(LANGUAGE, "depth", line=outcome.line or None)
    return script_failed(LANGUAGE, reason, line=outcome.line or None)


def _decode(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise script_failed(LANGUAGE, "the script returns text that is not UTF-8") from None
