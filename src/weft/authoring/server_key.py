"""The API key for a server: given, or in ``WEFT_KEY``, or in the file that ``WEFT_KEY_FILE`` names."""

from __future__ import annotations

from pathlib import Path

from weft.errors import UsageError
from weft.settings import variable

KEY_VARIABLE, FILE_VARIABLE = "WEFT_KEY", "WEFT_KEY_FILE"


def find_key(given: str | None) -> str | None:
    """Return the key; None if there is none. Raises UsageError, without the key in its text."""
    key, source = given, "The key"
    if key is None:
        key, source = variable(KEY_VARIABLE), KEY_VARIABLE
    file = variable(FILE_VARIABLE)
    if not key and file:
        key, source = _read_key_file(file), file
    if not key:
        return None
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{source} has characters that no key has.", hint="A key looks like weft_…, without spaces.")
    return key


def _read_key_file(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"{FILE_VARIABLE} names {file}, which cannot be read: {why}.") from None
