"""Encode values as the engine stores them: compact JSON, checked once, on arrival. Pure.

A value that some store or a replay could not return unchanged is refused: NaN and infinity, NUL characters, lone
surrogates, sets (their order differs between processes), dict keys that would collide, and values that are too deep or
too big. The rest of the engine relies on this check.

A value larger than ``INLINE_BYTES_MAX`` is stored in a blob, and the log has a reference to it. ``seal`` marks a user's
own JSON that looks like a reference, and ``unseal`` removes the mark.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from weft.core.secrets import KEY, MARK, is_forged
from weft.core.unstorable import (
    UnstorablePart,
    encode_json,
    find_unencodable,
    is_too_deep,
    passes_quick_check,
    unstorable_parts,
)
from weft.errors import BadValue, Corrupt, LimitExceeded

VALUE_BYTES_MAX: Final = 16 * 1024 * 1024
INLINE_BYTES_MAX: Final = 32 * 1024
DEPTH_MAX: Final = 100

MARKED = b'{"$weft":'
"""The beginning of a reference or a sealed value. Anything else is the user's own JSON."""
_LITERAL = b'{"$weft":"lit","v":'
_BLOB = b'{"$weft":"blob",'
BLOB_START = b'{"$weft":"blob"'
"""Is in all stored bytes that refer to blobs."""
REF_BYTES_MIN = 100
"""Nothing shorter refers to a blob: a digest alone has 64 characters."""
_DIGEST = re.compile(rb'{"\$weft":"blob","at":"cas://sha256:([0-9a-f]{64})"')
_AT = "cas://sha256:"
_BACKSLASH = 0x5C


def encode(value: object, *, what: str = "got", trusted: bool = False) -> bytes:
    """Encode a value as compact JSON, with keys in the given order.

    ``what`` begins the error message, for example "charge returned". The references to secrets in a ``trusted`` value
    were checked before.

    Raises:
        BadValue: a part of the value cannot be stored as JSON (the message names it), or an object that is not a
            reference to a secret looks like one.
        LimitExceeded: the value is bigger than ``VALUE_BYTES_MAX``, or nested deeper than ``DEPTH_MAX``.
    """
    try:
        raw = encode_json(value)
    except Exception as error:
        _check_depth(value, what)
        part = next(unstorable_parts(value), None) or find_unencodable(value, error)
        raise _unstorable_error(part, what) from error
    if _BACKSLASH in raw or len(raw) > VALUE_BYTES_MAX or not passes_quick_check(value, raw, DEPTH_MAX):
        check_storable(value, raw, what=what)
    if not trusted and raw.partition(MARK)[1] and is_forged(value, raw):
        raise BadValue(
            f'{what} an object with the key "{KEY}", which is reserved for secrets.',
            hint="Use weft.Secret(...) in code, or another key in data.",
            code="value.secret",
        )
    return raw


encode_trusted = partial(encode, trusted=True)
"""Encode a value whose references to secrets were checked before. Raises as ``encode`` does otherwise."""


def check_storable(value: object, raw: bytes, *, what: str = "got") -> None:
    """Raise if a value that was encoded as ``raw`` could not be read back unchanged. Raises as ``encode`` does."""
    if len(raw) > VALUE_BYTES_MAX:
        raise LimitExceeded(
            f"{what} a value of {len(raw):,} bytes; the limit is {VALUE_BYTES_MAX:,}.",
            hint="Store the value elsewhere and pass its address.",
        )
    escapes = _BACKSLASH in raw and b"\\u0000" in raw
    if not escapes and passes_quick_check(value, raw, DEPTH_MAX):
        return
    _check_depth(value, what)
    # A model's own serializer may write text that is not in its fields, so search the JSON for NUL characters too.
    for part in chain(unstorable_parts(value), unstorable_parts(decode(raw)) if escapes else ()):
        raise _unstorable_error(part, what)


def decode(raw: bytes) -> Any:
    """Decode JSON into Python builtins."""
    return msgspec.json.decode(raw)


def digest(raw: bytes) -> str:
    """Return a short digest of JSON, to compare inputs."""
    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def preview_text(value: object, *, chars_max: int = 60) -> str:
    """Return the beginning of a value's JSON, for messages. If it has no JSON, return its type. Never raises."""
    try:
        text = encode_json(value).decode()
    except Exception:  # noqa: BLE001  # a message about a broken value must not fail on that value
        text = f"<{type(value).__name__}>"
    return text if len(text) <= chars_max else f"{text[: chars_max - 3]}..."


class Ref(msgspec.Struct, frozen=True):
    """A reference to a value that is too big for the log: the SHA-256 digest of its JSON, and the size in bytes."""

    digest: str
    size: int


class _StoredRef(msgspec.Struct):
    at: str
    size: int


def blob_ref(digest: str, size: int) -> bytes:
    """Return the reference to a blob, as the log stores it."""
    return b'{"$weft":"blob","at":"cas://sha256:%b","size":%d}' % (digest.encode(), size)


def blobs_in(raw: bytes) -> list[str]:
    """Return the digests of all blobs to which stored bytes refer."""
    return [digest.decode() for digest in _DIGEST.findall(raw)]


def is_ref(raw: bytes) -> bool:
    """Return whether sealed bytes are a reference to a blob."""
    return raw.startswith(_BLOB)


def parse_ref(raw: bytes) -> Ref:
    """Parse a reference written by ``blob_ref``.

    Raises:
        Corrupt: the bytes are not a reference.
    """
    try:
        stored = msgspec.json.decode(raw, type=_StoredRef)
    except msgspec.DecodeError as error:
        raise Corrupt(f"A blob reference cannot be read: {error}.") from error
    if not is_ref(raw) or not stored.at.startswith(_AT) or stored.size < 0:
        raise Corrupt(f"A blob reference cannot be read: {raw[:100]!r}.")
    return Ref(stored.at.removeprefix(_AT), stored.size)


def seal(raw: bytes) -> bytes:
    """Mark a user's JSON that could be mistaken for a reference. ``unseal`` reverses this."""
    return b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw


def unseal(raw: bytes) -> bytes:
    """Return the JSON that was passed to ``seal``."""
    return raw[len(_LITERAL) : -1] if raw.startswith(_LITERAL) else raw


def inline_json(raw: bytes) -> bytes | None:
    """Return the JSON of sealed bytes, or None if they are a reference to a blob."""
    if not raw.startswith(MARKED):
        return raw
    return None if raw.startswith(_BLOB) else unseal(raw)


def seal_inline(raw: bytes) -> bytes | None:
    """Seal JSON for the log, or return None if it is too large to be stored there."""
    sealed = b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw
    return sealed if len(sealed) <= INLINE_BYTES_MAX else None


def _check_depth(value: object, what: str) -> None:
    if is_too_deep(value, DEPTH_MAX):
        raise LimitExceeded(
            f"{what} a value nested deeper than {DEPTH_MAX} levels.",
            hint="Check whether the value contains itself, or pass it in pieces.",
        )


def _unstorable_error(part: UnstorablePart, what: str) -> BadValue:
    path = part.path.removeprefix(".")
    field = f" (field `{path}`)" if path else ""
    return BadValue(f"{what} {part.description}{field}, which cannot be stored.", hint=part.hint, path=path)
