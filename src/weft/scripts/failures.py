"""The errors of scripts, when they are compiled and when they run.

    BadScript        raised by ``compile_script``, with language, line and reason
    ScriptFailed     raised by a call: the script raised an error, or its result is not JSON
    LimitExceeded    raised by a call: a limit on steps, time, memory, size or depth was reached (``script.limit``)

Except for the limit on time, the errors are the same on every machine.
"""

from __future__ import annotations

from typing import Final

from weft.errors import BadValue, LimitExceeded, WeftError

REASON_CHARS_MAX: Final = 500
_TITLES: Final = {"lua": "Lua", "ale": "Ale"}
_LIMITS: Final = {
    "steps": (
        "the script takes too many steps",
        "Scripts are for small decisions. Loop over less, or write a step instead.",
    ),
    "time": ("the script takes too long", "Scripts are for small decisions. Write a step instead."),
    "memory": ("the script needs too much memory", "Build smaller values, or write a step instead."),
    "size": ("the input or output of the script is too large", "Store the data elsewhere and pass its address."),
    "depth": (
        "calls or values are nested too deeply",
        "Check for a function that calls itself forever, or a value that contains itself.",
    ),
}


class BadScript(BadValue):
    """A script that cannot be compiled. ``line`` counts from 1, and is None if the error has no line."""

    code = "script.invalid"

    def __init__(
        self,
        message: str,
        *,
        language: str = "",
        line: int | None = None,
        reason: str = "",
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.language = language
        self.line = line
        self.reason = reason


class ScriptFailed(WeftError):
    """A call of a script failed. With the same values, it will fail again."""

    code = "script.failed"

    def __init__(
        self,
        message: str,
        *,
        language: str = "",
        line: int | None = None,
        reason: str = "",
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.language = language
        self.line = line
        self.reason = reason


def bad_script(language: str, reason: str, *, line: int | None = None, hint: str = "") -> BadScript:
    """Make the error for a script that does not compile."""
    short = _shorten(reason)
    return BadScript(_describe(language, short, line), language=language, line=line, reason=short, hint=hint)


def script_failed(language: str, reason: str, *, line: int | None = None, hint: str = "") -> ScriptFailed:
    """Make the error for a call that failed."""
    short = _shorten(reason)
    return ScriptFailed(_describe(language, short, line), language=language, line=line, reason=short, hint=hint)


def limit_exceeded(language: str, limit: str, *, line: int | None = None) -> LimitExceeded:
    """Make the error for a call that reached a limit: steps, time, memory, size or depth."""
    reason, hint = _LIMITS[limit]
    return LimitExceeded(
        _describe(language, reason, line), hint=hint, code="script.limit", language=language, limit=limit, line=line
    )


def _shorten(text: str) -> str:
    """Return a reason on one line, short enough for a log, without its full stop."""
    line = " ".join(text[: 2 * REASON_CHARS_MAX].split())
    return (line if len(line) <= REASON_CHARS_MAX else f"{line[: REASON_CHARS_MAX - 3]}...").rstrip(".")


def _describe(language: str, reason: str, line: int | None) -> str:
    where = f", line {line}" if line else ""
    return f"{_TITLES.get(language, language)} script{where}: {reason}."
