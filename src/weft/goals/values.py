"""Read values from step documents: scripts, JSON in a text, milliseconds and deadlines."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.durations import duration_ms
from weft.core.goal.definitions import Language, Script
from weft.documents import scripts
from weft.documents.fields import Fields
from weft.errors import BadDuration

LANGUAGES: dict[str, Language] = {"cel": "cel", "jpath": "jpath", "lua": "lua", "ale": "ale"}


def read_goal_script(holder: Fields, key: str) -> Script | None:
    """Read a script: CEL text, ``{jpath: …}``, ``{lua: …}``, ``{ale: …}``, or ``{language, script}``."""
    raw = holder.raw.get(key)
    if raw is None:
        return None
    if isinstance(raw, str):
        return Script(raw) if holder.text(key) else None
    if not isinstance(raw, dict):
        holder.wrong(key, "CEL text, or {jpath: …}, {lua: …} or {ale: …}")
        return None
    script = scripts.read_script(holder, key, LANGUAGES)
    return Script(script[1], script[0]) if script is not None else None


def read_json_value(holder: Fields, key: str) -> Any:
    """Read a value that the older format writes as JSON in a text. Anything else is the value itself."""
    raw = holder.raw[key]
    if not isinstance(raw, str):
        return raw
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        suggestion = f"Quote a text twice: '{msgspec.json.encode(raw).decode()}'."
        holder.problems.add("wrong_type", holder.place(key), "must be JSON in a text.", suggestion)
        return msgspec.UNSET


def read_ms(holder: Fields, key: str) -> int:
    """Read a duration of the older format: a number is milliseconds."""
    raw = holder.raw.get(key)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return holder.integer(key, least=0) or 0
    return holder.duration(key)


def read_deadline(holder: Fields, key: str) -> Any:
    """Read a deadline: ``wait``, or milliseconds; None if there is none."""
    raw = holder.raw.get(key)
    if raw is None or raw == "wait":
        return raw
    try:
        return duration_ms(raw)
    except BadDuration as error:
        hint = f'{error.hint} Or "wait".' if error.hint else 'Or "wait".'
        holder.problems.add("bad_duration", holder.place(key), error.message, hint)
        return None
