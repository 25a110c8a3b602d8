"""Scripts and numbers as documents of steps have them: CEL as plain text, others by name, JSON inside text."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.durations import duration_ms
from weft.core.goal.definitions import Language, Script
from weft.errors import BadDuration
from weft.graphs.fields import Fields

LANGUAGES: dict[str, Language] = {"cel": "cel", "jpath": "jpath", "lua": "lua", "ale": "ale"}
SCRIPT = (*LANGUAGES, "language", "lang", "script", "source")


def read_script(holder: Fields, key: str) -> Script | None:
    """A script: CEL text, `{lua: …}`, `{ale: …}`, or `{language, script}` as the seeds have it."""
    raw = holder.raw.get(key)
    if raw is None:
        return None
    if isinstance(raw, str):
        return Script(raw) if holder.text(key) else None
    if not isinstance(raw, dict):
        holder.wrong(key, "CEL text, or {jpath: …}, {lua: …} or {ale: …}")
        return None
    fields = Fields(raw, holder.place(key), holder.problems, SCRIPT)
    named = [word for word in LANGUAGES if word in fields]
    if len(named) == 1 and len(raw) == 1:
        source = fields.text(named[0])
        return Script(source, LANGUAGES[named[0]]) if source else None
    language, source_key = fields.spelling("language", "lang"), fields.spelling("script", "source")
    for word in (language, source_key):
        if word not in fields:
            fields.needed(word)
    lang = fields.choice(language, LANGUAGES, None)
    source = fields.text(source_key)
    return Script(source, lang) if source and lang is not None else None


def read_json(holder: Fields, key: str) -> Any:
    """A value that the seeds write as JSON text; what is no text is the value itself."""
    raw = holder.raw[key]
    if not isinstance(raw, str):
        return raw
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        suggestion = f"Text is quoted twice: '{msgspec.json.encode(raw).decode()}'."
        holder.problems.add("wrong_type", holder.place(key), "must be JSON in a text.", suggestion)
        return msgspec.UNSET


def read_ms(holder: Fields, key: str) -> int:
    """A time as the seeds write it: a number is milliseconds."""
    raw = holder.raw.get(key)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return holder.whole(key, least=0) or 0
    return holder.duration(key)


def read_deadline(holder: Fields, key: str) -> Any:
    """`wait`, or how long; None: nobody waits."""
    raw = holder.raw.get(key)
    if raw is None or raw == "wait":
        return raw
    try:
        return duration_ms(raw)
    except BadDuration as error:
        hint = f'{error.hint} Or "wait".' if error.hint else 'Or "wait".'
        holder.problems.add("bad_duration", holder.place(key), error.message, hint)
        return None
