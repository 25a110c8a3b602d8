"""Tokens: claims as text for URLs, and signatures that prove who made them. Pure.

| ``pack``, ``unpack``         | claims that need no proof, such as cursors |
| ``Signer``                   | tokens with a proof and an expiry, and keys derived from one secret |
| ``sign_body``, ``is_signed`` | the ``Weft-Signature`` header of a request |
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Protocol, TypeVar

import msgspec

SIGNATURE_HEADER = "Weft-Signature"
WINDOW_S = 300
"""How far the time of a signature may be from now. An intercepted request is worthless after that."""
SECRET_BYTES_MIN = 16
TOKEN_CHARS_MAX = 4_096

_SIGNATURE = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")

T = TypeVar("T")


class InvalidToken(ValueError):
    """The token was not made by us, or was changed."""


class ExpiredToken(ValueError):
    """The token was made by us and has expired."""


class Expiring(Protocol):
    """Claims that expire."""

    @property
    def until_s(self) -> int:
        """The Unix time, in seconds, from which the claims are void."""
        ...


Claims = TypeVar("Claims", bound=Expiring)


def pack(claims: object) -> str:
    """Encode claims as text that is safe in a URL."""
    return _text(msgspec.json.encode(claims))


def unpack(text: str, kind: type[T]) -> T:
    """Decode what ``pack`` made. Raises InvalidToken."""
    if len(text) > TOKEN_CHARS_MAX or not text.isascii():
        raise InvalidToken
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidToken from error


class Signer:
    """Signs for one purpose. Signers with the same secret and another purpose do not accept each other's tokens."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        self._secret = secret
        self._label = f"weft {purpose} 1\0".encode()

    def derive(self, text: str) -> bytes:
        """Derive the key that belongs to this text alone."""
        return hmac.digest(self._secret, self._label + text.encode(), hashlib.sha256)

    def seal(self, claims: Expiring) -> str:
        """Make a token that carries its claims and their proof."""
        payload = pack(claims)
        return f"{payload}.{_text(self.derive(payload))}"

    def open(self, token: str, kind: type[Claims], *, now_s: int) -> Claims:
        """Return the claims of a token that ``seal`` made. Raises InvalidToken, ExpiredToken."""
        payload, _, mac = token.partition(".")
        # The proofs are compared as text: base64 has several spellings of the same bytes.
        if (
            len(token) > TOKEN_CHARS_MAX
            or not token.isascii()
            or not hmac.compare_digest(_text(self.derive(payload)), mac)
        ):
            raise InvalidToken
        claims = unpack(payload, kind)
        if claims.until_s <= now_s:
            raise ExpiredToken
        return claims


def sign_body(key: str, body: bytes, *, now_s: int) -> str:
    """Return the header that proves that the holder of the key sent this body now."""
    return f"t={now_s},v1={_body_mac(key, body, now_s)}"


def is_signed(key: str, body: bytes, signature: str, *, now_s: int) -> bool:
    """Return whether the header was made for this body, with this key, within the window."""
    found = _SIGNATURE.fullmatch(signature)
    signed_s = int(found[1]) if found else 0
    mac = found[2] if found else ""
    # Compared in constant time and before the clock, so that the time a refusal takes tells nothing.
    genuine = hmac.compare_digest(_body_mac(key, body, signed_s), mac)
    return genuine and abs(now_s - signed_s) <= WINDOW_S


def _body_mac(key: str, body: bytes, signed_s: int) -> str:
    return hmac.digest(key.encode(), b"%d.%b" % (signed_s, body), hashlib.sha256).hex()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
