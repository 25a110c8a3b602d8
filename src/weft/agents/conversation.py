"""Conversations as chains of blobs. Each link has what one turn added, and refers to the link before it.

The log of an agent has the head of its chain and nothing else of the conversation, so a turn writes only what is new.
References inside links have the form that stores count, so a link keeps all links before it, and its images and files.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from weft.cache import BoundedCache
from weft.errors import BadValue, LimitExceeded
from weft.ports.models import BlobPart, ModelMessage

CONVERSATION_BYTES_MAX = 16 * 1024 * 1024
CACHE_BYTES_MAX = 32 * 1024 * 1024
_HEAD = re.compile(r"cas://sha256:([0-9a-f]{64})")


class HeldBlob(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to a blob, in the form that stores recognise inside values."""

    kind: str = msgspec.field(name="$weft", default="blob")
    at: str
    size: int = 0


class _Link(msgspec.Struct, frozen=True, omit_defaults=True):
    messages: tuple[ModelMessage, ...]
    prev: HeldBlob | None = None
    holds: tuple[HeldBlob, ...] = ()
    is_tainted: bool = False


class Conversation(msgspec.Struct, frozen=True):
    """A conversation up to a link."""

    messages: tuple[ModelMessage, ...] = ()
    head: str = ""
    """The reference to the newest link: ``cas://sha256:…``. Empty if there is none."""
    head_bytes: int = 0
    total_bytes: int = 0
    """The size of all links."""
    is_tainted: bool = False
    """It has words of strangers."""

    @property
    def held(self) -> HeldBlob | None:
        """The reference to the newest link, in the form that keeps the whole chain where it is stored."""
        return HeldBlob(at=self.head, size=self.head_bytes) if self.head else None


EMPTY = Conversation()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Link).decode


class Conversations:
    """Reads and extends conversations."""

    def __init__(self, put: Callable[[bytes], Awaitable[str]], get: Callable[[str], Awaitable[bytes]]) -> None:
        """``put`` stores a blob and returns its digest; ``get`` returns the blob with a digest."""
        self.put = put
        self._get = get
        # A turn begins where the turn of its run before it ended, so it need not read the whole chain again.
        self._recent: BoundedCache[str, Conversation] = BoundedCache(CACHE_BYTES_MAX, _size)

    async def read(self, head: str, run: str = "") -> Conversation:
        """Return the conversation that ends with this link. The newest one of each run is kept in memory.

        Raises BadValue, LimitExceeded, NotFound, Corrupt.
        """
        newer: list[tuple[str, int, _Link]] = []
        place, total = head, 0
        known = self._known(run, place)
        while known is None:
            raw = await self._get(_digest(place))
            link = _read_link(place, raw)
            total += len(raw)
            _check_size(total)
            newer.append((place, len(raw), link))
            place = link.prev.at if link.prev is not None else ""
            known = self._known(run, place)
        if not newer:
            return known
        _check_size(known.total_bytes + total)
        messages = list(known.messages)
        for _, _, link in reversed(newer):
            messages += link.messages
        is_tainted = known.is_tainted or any(link.is_tainted for _, _, link in newer)
        found = Conversation(tuple(messages), head, newer[0][1], known.total_bytes + total, is_tainted)
        self._keep(run, found)
        return found

    def check_room(self, before: Conversation, messages: Sequence[ModelMessage]) -> None:
        """Refuse messages that have no room in a conversation, before a model is asked. Raises LimitExceeded."""
        _check_size(before.total_bytes + len(_encode(messages)))

    async def append(
        self, before: Conversation, messages: Sequence[ModelMessage], *, run: str = "", is_tainted: bool = False
    ) -> Conversation:
        """Add messages to a conversation. When this returns, they are stored. Raises LimitExceeded."""
        is_tainted = is_tainted or before.is_tainted
        link = _Link(messages=tuple(messages), prev=before.held, holds=_references_in(messages), is_tainted=is_tainted)
        raw = _encode(link)
        _check_size(before.total_bytes + len(raw))
        head = f"cas://sha256:{await self.put(raw)}"
        total = before.total_bytes + len(raw)
        extended = Conversation((*before.messages, *messages), head, len(raw), total, is_tainted)
        self._keep(run, extended)
        return extended

    async def flatten(self, head: str) -> Conversation:
        """Return the conversation as one link that refers to no other, for another run, a fork or an export."""
        found = await self.read(head)
        return await self.append(EMPTY, found.messages, is_tainted=found.is_tainted) if found.head else EMPTY

    def _known(self, run: str, place: str) -> Conversation | None:
        if not place:
            return EMPTY
        known = self._recent.get(run)
        return known if known is not None and known.head == place else None

    def _keep(self, run: str, conversation: Conversation) -> None:
        if run:
            self._recent.put(run, conversation)


def _size(conversation: Conversation) -> int:
    return conversation.total_bytes


def _digest(head: str) -> str:
    found = _HEAD.fullmatch(head)
    if found is None:
        raise BadValue(
            f"{head[:80]!r} does not refer to a conversation.", hint="Use the `conversation` of an agent's reply."
        )
    return found[1]


def _read_link(head: str, raw: bytes) -> _Link:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadValue(
            f"{head[:80]!r} does not refer to a conversation.", hint="Use the `conversation` of an agent's reply."
        ) from error


def _check_size(size: int) -> None:
    if size > CONVERSATION_BYTES_MAX:
        raise LimitExceeded(
            f"The conversation has more than {CONVERSATION_BYTES_MAX:,} bytes.",
            hint="Shorten it earlier (compact=), or return large results by reference.",
        )


def _references_in(messages: Iterable[ModelMessage]) -> tuple[HeldBlob, ...]:
    """Return the references to images and files in messages."""
    refs = (part.ref for message in messages for part in message.parts if isinstance(part, BlobPart))
    return tuple(HeldBlob(at=ref) for ref in dict.fromkeys(refs))


def read_messages(given: Any) -> tuple[ModelMessage, ...]:
    """Read messages from decoded JSON. Raises BadValue."""
    try:
        return msgspec.convert(given, tuple[ModelMessage, ...])
    except msgspec.ValidationError as error:
        raise BadValue(f"The messages are not valid: {error}.", code="value.wrong_type") from error
