"""Links that answer a question. A link lets one person answer one question; it proposes an answer.

A link contains all its claims, signed with a secret that all hosts of a store share and that never leaves the store. It
is valid until it expires or the question is answered; a question that is asked again needs new links. Opening a link
only shows what it would decide, because mail scanners open every link.
"""

from __future__ import annotations

import secrets

import msgspec

from weft.errors import NotFound, Refused
from weft.observe.questions import OpenQuestion
from weft.ports.access import Access
from weft.server import views
from weft.tokens import ExpiredToken, InvalidToken, Signer

PATH = "/decide"
VALID_SECONDS = 7 * 86_400
SEED_BYTES = 32


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """The claims of a link: what it decides, which answer it proposes, in whose name, and until when."""

    uid: str
    ask: int
    digest: str
    approved: bool
    by: str
    groups: list[str]
    until_s: int


class Links:
    """Makes and opens links. ``base`` is the URL that they begin with."""

    def __init__(self, seed: bytes, base: str = "") -> None:
        self._signer = Signer(seed, "link")
        self._base = base

    @staticmethod
    async def for_store(access: Access, base: str = "") -> Links:
        """Return links that are signed with the secret of a store."""
        return Links(await access.seed("links", secrets.token_bytes(SEED_BYTES)), base)

    def url(self, claim: Claim) -> str:
        """Make a link."""
        return f"{self._base}{PATH}/{self.token(claim)}"

    def token(self, claim: Claim) -> str:
        """Make the last part of a link."""
        return self._signer.seal(claim)

    def open(self, token: str, *, now_s: int) -> Claim:
        """Return the claims of a link.

        Raises:
            NotFound: the link was not made here, or was changed.
            Refused: the link has expired.
        """
        try:
            return self._signer.open(token, Claim, now_s=now_s)
        except InvalidToken:
            raise NotFound("This link is not valid.", hint="Ask for a new link.") from None
        except ExpiredToken:
            raise Refused("This link has expired.", hint="Ask for a new link.", code="ask.link_expired") from None


def make_link_pair(links: Links, item: OpenQuestion, by: str, groups: list[str], *, now_ms: int) -> views.LinkPair:
    """Make the links with which one person approves or rejects. They expire no later than the question."""
    until_s = now_ms // 1000 + VALID_SECONDS
    if item.question.due and item.question.on_timeout != "escalate":
        until_s = min(until_s, item.question.due // 1000 + 1)

    def url(*, approved: bool) -> str:
        claim = Claim(item.row.uid, item.number, item.digest, approved, by, groups, until_s)
        return links.url(claim)

    expires_at = views.required_time(until_s * 1000)
    return views.LinkPair(person=by, approve=url(approved=True), reject=url(approved=False), expires_at=expires_at)
