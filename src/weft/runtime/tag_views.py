"""Tags and their moves as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from weft.ports.tags import Tag, TagMove


class TagView(msgspec.Struct, frozen=True, kw_only=True):
    """A tag as it stands, and who changed it last."""

    workflow: str
    tag: str
    version: str | None
    """None if it was removed, or its first move was undone."""
    cursor: int
    """The number of the move that led to the version."""
    moves: int
    """How many moves there are. Those after the cursor can be redone."""
    by: str
    at: datetime
    reason: str
    common: bool
    """The tag is the operator's, and this tenant has none of that name."""


class MoveView(msgspec.Struct, frozen=True, kw_only=True):
    """A move of a tag. One with a number above the cursor was undone and can be redone."""

    number: int
    before: str | None
    after: str
    by: str
    at: datetime
    reason: str


class TagMoves(TagView, frozen=True, kw_only=True):
    """A tag with its moves, newest first."""

    history: list[MoveView]


def tag_view(tag: Tag, tenant: str) -> TagView:
    """Return a tag as a tenant sees it."""
    return TagView(
        workflow=tag.key.workflow,
        tag=tag.key.tag,
        version=tag.version or None,
        cursor=tag.cursor,
        moves=tag.moves,
        by=tag.by,
        at=datetime.fromtimestamp(tag.at / 1000, UTC),
        reason=tag.reason,
        common=tag.key.tenant != tenant,
    )


def tag_moves(tag: Tag, moves: Sequence[TagMove], tenant: str) -> TagMoves:
    """Return a tag with its moves as a tenant sees it."""
    view = tag_view(tag, tenant)
    return TagMoves(
        **{field: getattr(view, field) for field in view.__struct_fields__}, history=[*map(_move_view, moves)]
    )


def _move_view(move: TagMove) -> MoveView:
    return MoveView(
        number=move.number,
        before=move.before or None,
        after=move.after,
        by=move.by,
        at=datetime.fromtimestamp(move.at / 1000, UTC),
        reason=move.reason,
    )
