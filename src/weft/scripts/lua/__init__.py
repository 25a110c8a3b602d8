"""Lua 5.4 through lupa: in this process if its time can be bounded, else in another one that can be killed.

A call in this process costs a few microseconds, a round trip to another one a hundred. So a script runs here, under a
hook that counts instructions, reads the processor time of the thread and watches memory (`sandbox.lua`). The hook
cannot interrupt the matching of a string pattern. A pattern whose worst case is short, by its length, its repetitions
and the subject, runs here like everything else. At the first pattern that is not short, the call is stopped and starts
again in a worker process, which is killed after a second. Scripts are pure, so starting again is safe, and a script
cannot tell where it ran.

Lua scripts get their inputs as local variables and `return` a value. `pairs` is sorted, `table.sort` is stable,
and there are no addresses and no random numbers: the same inputs give the same outputs on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.errors import WeftError
from weft.scripts.failures import bad_script, failed, too_much
from weft.scripts.lua.state import LuaOutcome, states
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
    """A chunk with its inputs as local variables."""

    __slots__ = ("_text",)

    def __init__(self, source: str, inputs: tuple[str, ...]) -> None:
        super().__init__(LANGUAGE, source, inputs)
        self._text = chunk_text(source, inputs)

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return _read(self._run(values, truth=False))

    def holds(self, values: Mapping[str, Any]) -> bool:
        return self._run(values, truth=True) == b"true"

    def _run(self, values: Mapping[str, Any], *, truth: bool) -> bytes:
        given = self.arguments(values)
        pool = states()
        state = pool.borrow()
        try:
            outcome = state.run(self._text, given, truth=truth)
        finally:
            pool.give_back(state)
        if outcome.text == b"elsewhere" and outcome.status == "limit":
            outcome = run_killable(self._text, given, truth=truth)
        if outcome.status == "ok":
            return outcome.text
        raise _failure(outcome)


def compile_lua(source: str, inputs: tuple[str, ...]) -> LuaScript:
    """Check the names and compile the chunk.

    Raises:
        BadScript: a name that Lua cannot have, or a text that it cannot read.
        UsageError: lupa is not installed.
    """
    for name in inputs:
        if not _NAME.fullmatch(name) or name in _KEYWORDS:
            fit = re.sub(r"\W", "_", name, flags=re.ASCII)
            hint = f"Rename it, to `{fit}` perhaps." if _NAME.fullmatch(fit) and fit != name else "Rename it."
            raise bad_script(LANGUAGE, f"the input {name!r} cannot be a variable of Lua", hint=hint)
    pool = states()
    state = pool.borrow()
    try:
        problem = state.compile(chunk_text(source, inputs))
        is_value = bool(problem) and not state.compile(chunk_text(f"return {source}", inputs))
    finally:
        pool.give_back(state)
    if problem:
        raise _refusal(problem, "Write `return` before the value." if is_value else "")
    return LuaScript(source, inputs)


def chunk_text(source: str, inputs: tuple[str, ...]) -> str:
    """Return the whole chunk. The inputs are bound on the first line of the script, so that line numbers stay right."""
    return f"local {', '.join(inputs)} = ...; {source}" if inputs else source


def _refusal(problem: str, hint: str) -> WeftError:
    if problem == "memory":
        return bad_script(LANGUAGE, "it is too big to compile")
    place = _PLACE.match(problem)
    line = int(place[1]) if place else None
    return bad_script(LANGUAGE, _PLACE.sub("", problem, count=1), line=line, hint=hint)


def _failure(outcome: LuaOutcome) -> WeftError:
    said = outcome.text.decode(errors="replace")
    if outcome.status == "limit":
        return too_much(LANGUAGE, said, line=outcome.line or None)
    reason = _PLACE.sub("", said, count=1)
    if "stack overflow" in reason or "error in error handling" in reason:
        return too_much(LANGUAGE, "depth", line=outcome.line or None)
    return failed(LANGUAGE, reason, line=outcome.line or None)


def _read(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise failed(LANGUAGE, "it returns text that is not UTF-8") from None
