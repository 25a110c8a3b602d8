"""Values that strangers gave, made storable: what has happened must not be lost because of a character."""

from __future__ import annotations

from typing import Any

from weft.core.unstorable import is_too_deep
from weft.core.values import DEPTH_MAX, VALUE_BYTES_MAX, encode
from weft.errors import WeftError

TEXT_CHARS_MAX = VALUE_BYTES_MAX // 8
"""How much is kept of a text that replaces a value. So many characters fit, however JSON escapes them."""


def without_nul(value: Any) -> Any:
    """Return a JSON value in which the character that no store keeps is replaced, in texts and keys."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, list):
        return [without_nul(one) for one in value]
    if isinstance(value, dict):
        return {without_nul(key): without_nul(one) for key, one in value.items()}
    return value


def fits_inside(value: Any, levels: int) -> bool:
    """Return whether a value can be stored inside so many objects and lists."""
    return not is_too_deep(value, DEPTH_MAX - levels)


def encode_answer(value: Any, raw: bytes, *, spare: int = 0, levels: int = 0) -> bytes:
    """Encode what strangers answered. What cannot be stored as JSON, because it is nested too deeply, is kept as text.

    ``raw`` is the answer as it came. ``spare``: how many bytes are needed beside it. ``levels``: how many objects and
    lists will be around it.
    """
    try:
        kept = encode(without_nul(value) if b"\\u0000" in raw or b"\0" in raw else value)
        if len(kept) <= VALUE_BYTES_MAX - spare and (not levels or fits_inside(value, levels)):
            return kept
    except (WeftError, RecursionError):
        pass  # the text is kept
    return encode(without_nul(raw.decode("utf-8", "replace")[:TEXT_CHARS_MAX]))
