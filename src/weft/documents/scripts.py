"""Read scripts from graph and step documents: ``{lua: …}``, or ``{language, script}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from weft.documents.fields import Fields

L = TypeVar("L", bound=str)
LONG = ("language", "lang", "script", "source")
"""The fields of the long form: two names for the language, and two for the script."""


def read_script(holder: Fields, key: str, languages: Mapping[str, L]) -> tuple[L, str] | None:
    """Read the language and the source of a script. If one is missing, this is reported, and None is returned."""
    fields = Fields(holder.raw[key], holder.place(key), holder.problems, (*languages, *LONG))
    named = [word for word in languages if word in fields]
    if len(named) == 1 and len(fields.raw) == 1:
        source = fields.text(named[0])
        return (languages[named[0]], source) if source else None
    language_key, source_key = fields.spelling("language", "lang"), fields.spelling("script", "source")
    for word in (language_key, source_key):
        if word not in fields:
            fields.needed(word)
    language = fields.choice(language_key, languages, None)
    source = fields.text(source_key)
    return (language, source) if source and language is not None else None
