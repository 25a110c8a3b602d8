"""Values as the engine stores them: compact JSON, checked once, on arrival. Pure.

Values that a store or a replay could not return unchanged are refused, whichever store is used: NaN and infinity, NUL
characters, lone surrogates, sets (their order differs between processes), dict keys that would collide, and values that
are too deep or too big. The rest of the engine relies on this check.

A value above ``INLINE_BYTES_MAX`` is stored in a blob, and the log has a reference to it. ``seal`` and ``unseal`` keep
a user's own JSON from being mistaken for a reference.
"""

from __future__ import annotations

import hashlib
from itertools import chain
from typing import Any, Final

import msgspec

from weft.core.offences import Offence, encode_json, is_plain, is_too_deep, offences, unencodable
from weft.core.secrets import KEY, MARK, is_forged
from weft.errors import BadValue, Corrupt, LimitExceeded

VALUE_BYTES_MAX: Final = 16 * 1024 * 1024
INLINE_BYTES_MAX: Final = 32 * 1024
DEPTH_MAX: Final = 100

MARKED = b'{"$weft":'
"""The beginning of a reference or a sealed value. Anything else is the user's own JSON."""
_LITERAL = b'{"$weft":"lit","v":'
_BLOB = b'{"$weft":"blob",'
_AT = "cas://sha256:"
_BACKSLASH = 0x5C


def encode(value: object, *, what: str = "got") -> bytes:
    """Encode a value as compact JSON, with keys in the given order.

    ``what`` begins the error message: "charge returned".

    Raises:
        BadValue: a part of the value is not JSON; the message names the field and its type. Or an object looks like a
            reference to a secret and is not one.
        LimitExceeded: the value is bigger than ``VALUE_BYTES_MAX``, or nested deeper than ``DEPTH_MAX``.
    """
    raw = encode_known(value, what=what)
    if raw.find(MARK) >= 0 and is_forged(value, raw):
        raise BadValue(
            f'{what} an object with the key "{KEY}", which is reserved for secrets.',
            hint="Use weft.Secret(...) in code, or another key in data.",
            code="value.secret",
        )
    return raw


def encode_known(value: object, *, what: str = "got") -> bytes:
    """Encode a value made from recorded values and documents, whose references to secrets were checked before."""
    try:
        raw = encode_json(value)
    except Exception as error:
        _check_depth(value, what)
        found = next(offences(value), None) or unencodable(value, error)
        raise _refusal(found, what) from error
    if _BACKSLASH in raw or len(raw) > VALUE_BYTES_MAX or not is_plain(value, raw.find(b"null") >= 0, DEPTH_MAX):
        guard(value, raw, what=what)
    return raw


def guard(value: object, raw: bytes, *, what: str = "got") -> None:
    """Refuse a value that was encoded as ``raw`` but could not be read back unchanged."""
    if len(raw) > VALUE_BYTES_MAX:
        raise LimitExceeded(
            f"{what} a value of {len(raw):,} bytes; the limit is {VALUE_BYTES_MAX:,}.",
            hint="Store it elsewhere and pass its address.",
        )
    escapes = _BACKSLASH in raw and b"\\u0000" in raw
    if not escapes and is_plain(value, raw.find(b"null") >= 0, DEPTH_MAX):
        return
    _check_depth(value, what)
    # A model's own serializer may write text that is not in its fields, so look for NUL in the JSON too.
    for found in chain(offences(value), offences(decode(raw)) if escapes else ()):
        raise _refusal(found, what)


def decode(raw: bytes) -> Any:
    """Decode JSON into Python builtins."""
    return msgspec.json.decode(raw)


def digest(raw: bytes) -> str:
    """Return a short digest of an input."""
    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def shown(value: object, *, chars_max: int = 60) -> str:
    """Return a short text of a value for a message: JSON if possible. Never raises."""
    try:
        text = encode_json(value).decode()
    except Exception:  # noqa: BLE001  # a message about a broken value must not fail on that value
        text = f"<{type(value).__name__}>"
    return text if len(text) <= chars_max else f"{text[: chars_max - 3]}..."


class Ref(msgspec.Struct, frozen=True):
    """A reference to a value too big for the log: the SHA-256 of its bytes, and their number."""

    digest: str
    size: int


class _StoredRef(msgspec.Struct):
    at: str
    size: int


def ref_for(digest: str, size: int) -> bytes:
    """Return the reference to a blob, as the log stores it."""
    return b'{"$weft":"blob","at":"cas://sha256:%b","size":%d}' % (digest.encode(), size)


def is_ref(raw: bytes) -> bool:
    """Return whether sealed bytes are a reference to a blob."""
    return raw.startswith(_BLOB)


def parse_ref(raw: bytes) -> Ref:
    """Parse a reference written by ``ref_for``.

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
    """Make a user's JSON safe to store next to references. ``unseal`` reverses this."""
    return b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw


def unseal(raw: bytes) -> bytes:
    """Return the JSON that was passed to ``seal``."""
    return raw[len(_LITERAL) : -1] if raw.startswith(_LITERAL) else raw


def plain(raw: bytes) -> bytes | None:
    """Return the JSON of sealed bytes, or None if they are a reference to a blob."""
    if not raw.startswith(MARKED):
        return raw
    return None if raw.startswith(_BLOB) else unseal(raw)


def small(raw: bytes) -> bytes | None:
    """Seal JSON for the log. Returns None if it is too large to be stored there."""
    sealed = b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw
    return sealed if len(sealed) <= INLINE_BYTES_MAX else None


def _check_depth(value: object, what: str) -> None:
    if is_too_deep(value, DEPTH_MAX):
        raise LimitExceeded(
            f"{what} a value nested deeper than {DEPTH_MAX} levels.",
            hint="Check whether it contains itself, or pass it in pieces.",
        )


def _refusal(found: Offence, what: str) -> BadValue:
    path = found.path.removeprefix(".")
    field = f" (field `{path}`)" if path else ""
    return BadValue(f"{what} {found.kind}{field}, which cannot be stored.", hint=found.hint, path=path)
