"""The errors of scripts, when they are compiled and when they run.

    BadScript        `compile_script`: language, line, reason; nothing was stored
    ScriptFailed     a call: the script raised an error, or returned what JSON cannot hold
    LimitExceeded    a call: steps, time, memory or size ran out (`script.limit`)

None of them depends on the machine, except time.
"""

from __future__ import annotations

from typing import Final

from weft.errors import BadValue, LimitExceeded, WeftError

REASON_CHARS_MAX: Final = 500
_TITLES: Final = {"lua": "Lua", "ale": "Ale"}
_LIMITS: Final = {
    "steps": ("it takes too many steps", "Scripts are for small decisions: loop over less, or do it in a step."),
    "time": ("it takes too long", "Scripts are for small decisions: do it in a step."),
    "memory": ("it needs too much memory", "Build less at once, or do it in a step."),
    "size": ("it takes or returns too much", "Store it elsewhere and pass its address."),
    "depth": ("its calls or values are nested too deeply", "Does it call or contain itself without an end?"),
}


class BadScript(BadValue):
    """A script that cannot be compiled. `line` counts from 1; None if no particular line is wrong."""

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
    """A script raised an error, or the values do not fit it. The same values will fail again."""

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
    """Make the error for a text that does not compile, with its line."""
    said = cut(reason)
    return BadScript(_told(language, said, line), language=language, line=line, reason=said, hint=hint)


def failed(language: str, reason: str, *, line: int | None = None, hint: str = "") -> ScriptFailed:
    """Make the error for a failed call, with its line."""
    said = cut(reason)
    return ScriptFailed(_told(language, said, line), language=language, line=line, reason=said, hint=hint)


def too_much(language: str, limit: str, *, line: int | None = None) -> LimitExceeded:
    """Make the error for a call that reached a limit: steps, time, memory, size or depth."""
    reason, hint = _LIMITS[limit]
    return LimitExceeded(
        _told(language, reason, line), hint=hint, code="script.limit", language=language, limit=limit, line=line
    )


def cut(text: str) -> str:
    """Return a reason on one line, cut to a size for logs, without its full stop."""
    line = " ".join(text[: 2 * REASON_CHARS_MAX].split())
    return (line if len(line) <= REASON_CHARS_MAX else f"{line[: REASON_CHARS_MAX - 3]}...").rstrip(".")


def _told(language: str, reason: str, line: int | None) -> str:
    where = f", line {line}" if line else ""
    return f"{_TITLES.get(language, language)} script{where}: {reason}."
