"""Links that decide: whoever has one may give one answer, in one person's name, to one question about one thing.

Everything a link stands for is in it, signed with bytes that all hosts of a store share and that never leave it. It is
good until its time is over or the question is settled, whichever comes first; a question that is asked again is another
one. Opening a link only shows what it would decide: programs that look at every link in a mail decide nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

import msgspec

from weft.errors import NotFound, Refused
from weft.ports.access import Access

PATH = "/decide"
GOOD_SECONDS = 7 * 86_400
TOKEN_CHARS_MAX = 4_096
SEED_BYTES = 32
_LABEL = b"weft link 1\0"


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What a link stands for."""

    uid: str
    ask: int
    digest: str
    approved: bool
    by: str
    groups: list[str]
    until_s: int


class Links:
    """Makes and opens links. ``base``: what they begin with."""

    def __init__(self, seed: bytes, base: str = "") -> None:
        self._seed = seed
        self._base = base

    @staticmethod
    async def of(access: Access, base: str = "") -> Links:
        """The links of a store."""
        return Links(await access.seed("links", secrets.token_bytes(SEED_BYTES)), base)

    def url(self, claim: Claim) -> str:
        return f"{self._base}{PATH}/{self.token(claim)}"

    def token(self, claim: Claim) -> str:
        payload = _packed(msgspec.json.encode(claim))
        return f"{payload}.{self._mac(payload)}"

    def open(self, token: str, *, now_s: int) -> Claim:
        """What a link stands for.

        Raises:
            NotFound: it was not made here, or not like this.
            Refused: its time is over.
        """
        payload, _, mac = token.partition(".")
        if len(token) > TOKEN_CHARS_MAX or not token.isascii() or not hmac.compare_digest(self._mac(payload), mac):
            raise NotFound("This link was not made here.", hint="Ask for a new one.")
        try:
            claim = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=Claim)
        except (ValueError, msgspec.DecodeError):
            raise NotFound("This link was not made here.", hint="Ask for a new one.") from None
        if claim.until_s <= now_s:
            raise Refused("The time of this link is over.", hint="Ask for a new one.", code="ask.link_expired")
        return claim

    def _mac(self, payload: str) -> str:
        return _packed(hmac.new(self._seed, _LABEL + payload.encode(), hashlib.sha256).digest())


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
