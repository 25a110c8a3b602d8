"""The tokens of published tasks: they prove that an answer is for a task that this deployment has handed out.

Every 30 days a new key signs. All keys are random bytes in the store, and never leave it. A token names its key; one of
an earlier key is valid until it expires. Whether the answer to a valid token still counts is decided by the row of the
task, not by time.
"""

from __future__ import annotations

import secrets

import msgspec

from weft.core.ids import Epoch, RunUid
from weft.ports.access import Access
from weft.ports.tasks import TaskOffer
from weft.tokens import InvalidToken, Signer, unpack

DAY_S = 86_400
KEY_S = 30 * DAY_S
"""How long a key signs."""
VALID_S = 30 * DAY_S
"""How long a token of an earlier key is valid if its task has no timeout."""
KEYS_MAX = 40
"""How many keys back a token may have been signed."""
SEED_BYTES = 32
_PURPOSE = "stream"

Identity = tuple[str, int, int, int]
"""The run, the number of the task, its attempt and its delivery."""


class TaskTicket(msgspec.Struct, frozen=True, array_like=True):
    """The claims of a token."""

    uid: str
    task: int
    attempt: int
    delivery: int
    tenant: str
    stream: str
    """The stream on which the task was published."""
    issued_s: int
    until_s: int

    @property
    def identity(self) -> Identity:
        """Return which delivery of which task this is."""
        return self.uid, self.task, self.attempt, self.delivery

    @property
    def timeout_s(self) -> int:
        """Return how long the attempt may take, rounded up; 0 for no limit."""
        seconds = self.until_s - self.issued_s
        return seconds if 0 < seconds < VALID_S else 0

    def offer(self) -> TaskOffer:
        """Return an offer with only the fields by which a store finds the task."""
        uid, task, attempt, delivery = self.identity
        return TaskOffer(
            uid=RunUid(uid),
            task=task,
            attempt=attempt,
            delivery=delivery,
            step="",
            queue="",
            body=b"",
            epoch=Epoch(0),
        )


def offer_identity(offer: TaskOffer) -> Identity:
    """Return which delivery of which task an offer is."""
    return offer.uid, offer.task, offer.attempt, offer.delivery


class StreamTokens:
    """Makes and opens tokens."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._signers: dict[int, Signer] = {}

    async def seal(self, ticket: TaskTicket) -> str:
        """Make the token of a task."""
        number = ticket.issued_s // KEY_S
        return f"{number}.{(await self._signer_of_key(number)).seal(ticket)}"

    async def open(self, token: str, *, now_s: int, may_expire: bool = True) -> TaskTicket:
        """Return the claims of a token. One of an earlier key ``may_expire``.

        Raises:
            InvalidToken: it was not made by this deployment, or was changed.
            ExpiredToken: it was signed with an earlier key, and has expired.
        """
        name, _, sealed = token.partition(".")
        newest = now_s // KEY_S
        if not name.isascii() or not name.isdigit() or len(name) > 6:
            raise InvalidToken
        number = int(name)
        # Another host's clock may be ahead, by no more than one key.
        if not newest - KEYS_MAX <= number <= newest + 1:
            raise InvalidToken
        valid_at = now_s if may_expire and number < newest else 0
        return (await self._signer_of_key(number)).open(sealed, TaskTicket, now_s=valid_at)

    async def _signer_of_key(self, number: int) -> Signer:
        known = self._signers.get(number)
        if known is None:
            seed = await self._access.seed(f"streams/{number}", secrets.token_bytes(SEED_BYTES))
            known = self._signers[number] = Signer(seed, _PURPOSE)
        return known


def claimed_ticket(token: str) -> TaskTicket | None:
    """Return what a token claims, without a proof; None if it claims nothing."""
    try:
        return unpack(token.partition(".")[2].partition(".")[0], TaskTicket)
    except InvalidToken:
        return None
