"""Values as the engine stores them: compact JSON, checked once, when they come in. Pure.

What no store or no replay could give back is refused here, whatever the store: NaN and infinity, NUL characters, lone
surrogates, sets (their order differs between processes), dict keys that would collide, values too deep or too big.
Everything past this module may trust that the bytes are JSON that comes back as it went in.

A value above `INLINE_BYTES_MAX` lives in a blob and the log holds a reference to it; `seal` and `unseal` keep a user's
own JSON from being taken for one.
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
"""What a reference and a sealed value begin with; anything else is JSON as its author gave it."""
_LITERAL = b'{"$weft":"lit","v":'
_BLOB = b'{"$weft":"blob",'
_AT = "cas://sha256:"
_BACKSLASH = 0x5C


def encode(value: object, *, what: str = "got") -> bytes:
    """The value as compact JSON, keys in the order given.

    `what` begins the message of a refusal: "charge returned".

    Raises:
        BadValue: something in it is not JSON; the message names the field and its type. Or it looks like a reference to
            a secret and is none.
        LimitExceeded: bigger than `VALUE_BYTES_MAX`, or nested deeper than `DEPTH_MAX`.
    """
    raw = encode_known(value, what=what)
    if MARK in raw and is_forged(value, raw):
        raise BadValue(
            f'{what} an object with the key "{KEY}", which stands for a secret.',
            hint="Use weft.Secret(...) in code; another key in data.",
            code="value.secret",
        )
    return raw


def encode_known(value: object, *, what: str = "got") -> bytes:
    """`encode` for what is made of recorded values and documents: references in it were let in before."""
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
    """Refuse, as `encode` does, a value that became `raw` but would not come back."""
    if len(raw) > VALUE_BYTES_MAX:
        raise LimitExceeded(
            f"{what} a value of {len(raw):,} bytes; the limit is {VALUE_BYTES_MAX:,}.",
            hint="Store it elsewhere and pass its address.",
        )
    escapes = _BACKSLASH in raw and b"\\u0000" in raw
    if not escapes and is_plain(value, raw.find(b"null") >= 0, DEPTH_MAX):
        return
    _check_depth(value, what)
    # A model's own serializer may have written what its fields do not show, so a NUL is looked for in the JSON too.
    for found in chain(offences(value), offences(decode(raw)) if escapes else ()):
        raise _refusal(found, what)


def decode(raw: bytes) -> Any:
    """The value as JSON builtins."""
    return msgspec.json.decode(raw)


def digest(raw: bytes) -> str:
    """A short name for an input: equal bytes have equal digests."""
    return hashlib.blake2b(raw, digest_size=12).hexdigest()


def shown(value: object, *, chars_max: int = 60) -> str:
    """The value for a message: as JSON where it is, never long, never raising."""
    try:
        text = encode_json(value).decode()
    except Exception:  # noqa: BLE001  # a message about a broken value must not fail on that value
        text = f"<{type(value).__name__}>"
    return text if len(text) <= chars_max else f"{text[: chars_max - 3]}..."


class Ref(msgspec.Struct, frozen=True):
    """Where a value too big for the log lies: the SHA-256 of its bytes, and how many they are."""

    digest: str
    size: int


class _StoredRef(msgspec.Struct):
    at: str
    size: int


def ref_for(digest: str, size: int) -> bytes:
    """The reference that stands in the log for a blob."""
    return b'{"$weft":"blob","at":"cas://sha256:%b","size":%d}' % (digest.encode(), size)


def is_ref(raw: bytes) -> bool:
    """Whether sealed bytes are a reference to a blob."""
    return raw.startswith(_BLOB)


def parse_ref(raw: bytes) -> Ref:
    """Read what `ref_for` wrote.

    Raises:
        Corrupt: the bytes are no reference.
    """
    try:
        stored = msgspec.json.decode(raw, type=_StoredRef)
    except msgspec.DecodeError as error:
        raise Corrupt(f"A blob reference cannot be read: {error}.") from error
    if not is_ref(raw) or not stored.at.startswith(_AT) or stored.size < 0:
        raise Corrupt(f"A blob reference cannot be read: {raw[:100]!r}.")
    return Ref(stored.at.removeprefix(_AT), stored.size)


def seal(raw: bytes) -> bytes:
    """Make a user's JSON safe to store beside references; `unseal` undoes it."""
    return b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw


def unseal(raw: bytes) -> bytes:
    """Give back what `seal` was given."""
    return raw[len(_LITERAL) : -1] if raw.startswith(_LITERAL) else raw


def plain(raw: bytes) -> bytes | None:
    """Return the JSON of sealed bytes; None: they are a reference to a blob."""
    if not raw.startswith(MARKED):
        return raw
    return None if raw.startswith(_BLOB) else unseal(raw)


def small(raw: bytes) -> bytes | None:
    """Seal JSON for the log; None: it is too large to stand there."""
    sealed = b"%b%b}" % (_LITERAL, raw) if raw.startswith(MARKED) else raw
    return sealed if len(sealed) <= INLINE_BYTES_MAX else None


def _check_depth(value: object, what: str) -> None:
    if is_too_deep(value, DEPTH_MAX):
        raise LimitExceeded(
            f"{what} a value nested deeper than {DEPTH_MAX} levels.",
            hint="Does it contain itself? Pass it in pieces.",
        )


def _refusal(found: Offence, what: str) -> BadValue:
    path = found.path.removeprefix(".")
    field = f" (field `{path}`)" if path else ""
    return BadValue(f"{what} {found.kind}{field}, which cannot be stored.", hint=found.hint, path=path)
