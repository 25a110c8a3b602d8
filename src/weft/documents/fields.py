"""Read typed values from a raw document. Values of the wrong type are reported and replaced by a default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from weft.core.durations import duration_ms
from weft.core.findings import At, Problems, did_you_mean
from weft.core.values import preview_text
from weft.errors import BadDuration

T = TypeVar("T")
U = TypeVar("U")
INTEGER_MAX = 1_000_000_000
NAME = re.compile(r"[\w-]{1,200}")
_WORD = re.compile(r"[^\W\d]\w{0,99}")


class Fields:
    """One mapping of a document. It reports unknown fields when it is created."""

    def __init__(self, raw: Any, at: At, problems: Problems, known: Iterable[str]) -> None:
        self.at = at
        self.problems = problems
        self.raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        if not isinstance(raw, dict):
            problems.add("wrong_type", at, f"must be a mapping, not {describe(raw)}.")
        for key in self.raw:
            if key not in known:
                problems.add("unknown_field", (*at, key), f'"{key}" is not a field here.', problems.near(key, known))

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def place(self, key: str) -> At:
        return (*self.at, key)

    def spelling(self, *keys: str) -> str:
        """Return which of several names for one field is used, or the first if none is. Two names are reported."""
        given = [key for key in keys if key in self.raw]
        if len(given) > 1:
            self.problems.add(
                "two_spellings",
                self.place(given[1]),
                f"{given[0]} and {given[1]} are two names for the same field; use one of them.",
            )
        return given[0] if given else keys[0]

    def wrong(self, key: str, wanted: str, suggestion: str = "", *, code: str = "wrong_type") -> None:
        """Report a value that is not what it must be. ``wanted`` says what it must be."""
        self.problems.add(code, self.place(key), f"must be {wanted}, not {describe(self.raw[key])}.", suggestion)

    def needed(self, key: str) -> None:
        """Report a missing field."""
        self.problems.add("missing_field", self.at, f"{key} is missing.")

    def text(self, key: str) -> str:
        """Return a text that is not empty, or "" if the field is absent or wrong."""
        value = self.raw.get(key)
        if key in self.raw and (not isinstance(value, str) or not value):
            self.wrong(key, "text")
            return ""
        return value or ""

    def texts(self, key: str) -> list[str]:
        """Return one text or a list of texts as a list."""
        value = self.raw.get(key, [])
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            self.wrong(key, "text or a list of texts")
            return []
        return items

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, "true or false")
            return default
        return value

    def integer(self, key: str, *, least: int = 1) -> int | None:
        """Return an integer; None if the field is absent or wrong."""
        if key not in self.raw:
            return None
        value = self.raw[key]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= INTEGER_MAX:
            self.wrong(key, f"an integer of at least {least}")
            return None
        return value

    def duration(self, key: str) -> int:
        """Return a duration in milliseconds; 0 if the field is absent or wrong."""
        if key not in self.raw:
            return 0
        try:
            ms = duration_ms(self.raw[key])
        except BadDuration as error:
            self.problems.add("bad_duration", self.place(key), error.message, error.hint)
            return 0
        if ms == 0:
            self.wrong(key, "longer than 0")
        return ms

    def choice(self, key: str, words: Mapping[str, T], default: U) -> T | U:
        """Return the value for the word in the field."""
        if key not in self.raw:
            return default
        value = self.raw[key]
        if isinstance(value, str) and value in words:
            return words[value]
        near = did_you_mean(value, words) if isinstance(value, str) else ""
        message = f"{preview_text(value)} is not one of {', '.join(words)}."
        self.problems.add("unknown_word", self.place(key), message, near)
        return default

    def name(self, key: str) -> str:
        """Return a name that expressions can use, or "" if the field is absent or wrong."""
        word = self.text(key)
        if word and not _WORD.fullmatch(word):
            self.wrong(key, "a name: letters, digits and _")
            return ""
        return word


def describe(value: Any) -> str:
    """Describe a value for a message."""
    match value:
        case None:
            return "empty"
        case bool() | int() | float():
            return preview_text(value)
        case str():
            return preview_text(value) if value else "an empty text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return type(value).__name__
