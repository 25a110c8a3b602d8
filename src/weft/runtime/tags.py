"""Tags of workflows: move them, move them back, and find the version that one names.

A tag has a linear history of moves and a cursor. Undo and redo move the cursor; a new move cuts what could be redone. A
tenant has tags of its own, and sees those of the operator where it has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.core.findings import did_you_mean
from weft.errors import Conflict, NotFound, Refused
from weft.ports.clock import Clock
from weft.ports.tags import Tag, TagKey, TagMove, Tags
from weft.runtime.version_refs import VersionRef, check_tag

TRIES_MAX = 100
OPERATOR = ""


class TagHistory(msgspec.Struct, frozen=True):
    """A tag and its moves, newest first. Moves with a number above ``tag.cursor`` can be redone."""

    tag: Tag
    moves: Sequence[TagMove]


class WorkflowTags:
    """The tags of one tenant, or of the operator."""

    def __init__(self, tags: Tags, tenant: str, clock: Clock) -> None:
        self._tags = tags
        self._tenant = tenant
        self._clock = clock

    # --- looking --------------------------------------------------------------------------------------------------

    async def list(self, workflow: str | None = None) -> Sequence[Tag]:
        """Return all tags that name a version, or those of one workflow, sorted by workflow and name."""
        own = {tag.key[1:]: tag for tag in await self._tags.find(self._tenant, workflow)}
        common = await self._tags.find(OPERATOR, workflow) if self._tenant else ()
        found: Mapping[tuple[str, str], Tag] = {**{tag.key[1:]: tag for tag in common}, **own}
        return [tag for _, tag in sorted(found.items()) if tag.version]

    async def get(self, workflow: str, tag: str) -> Tag:
        """Return a tag. Raises NotFound."""
        found = await self._find_tag(workflow, tag)
        if found is None:
            raise await self._unknown_tag_error(workflow, tag)
        return found

    async def history(self, workflow: str, tag: str, *, upto: int | None = None, limit: int = 100) -> TagHistory:
        """Return a tag with its moves, newest first, beginning with number ``upto``. Raises NotFound."""
        found = await self.get(workflow, tag)
        return TagHistory(found, await self._tags.moves(found.key, upto=upto, limit=limit))

    async def version(self, ref: VersionRef) -> str:
        """Return the version that a tag names now, or named some moves ago. Raises NotFound."""
        tag = await self.get(ref.workflow, ref.tag)
        if not ref.back:
            return tag.version or self._names_nothing(tag)
        moves = await self._tags.moves(tag.key, upto=tag.cursor - ref.back, limit=1) if ref.back < tag.cursor else ()
        if not moves:
            raise NotFound(
                f"{ref.workflow}:{ref.tag} has moved {tag.cursor} times, so {ref.label} is before its first version.",
                hint=f"weft workflows tag {ref.workflow} {ref.tag} shows its moves.",
            )
        return moves[0].after

    async def standing(self, workflow: str, tag: str) -> tuple[Tag, str]:
        """Return this tenant's own tag, to be moved, and the version that the tag names now; empty if it names none."""
        own = await self._own_tag(TagKey(self._tenant, workflow, check_tag(tag)))
        seen = own if own.revision else await self._find_tag(workflow, tag)
        return own, seen.version if seen is not None else ""

    async def _find_tag(self, workflow: str, tag: str) -> Tag | None:
        own = await self._tags.get(TagKey(self._tenant, workflow, tag))
        if own is not None or not self._tenant:
            return own
        return await self._tags.get(TagKey(OPERATOR, workflow, tag))

    async def _unknown_tag_error(self, workflow: str, tag: str) -> NotFound:
        known = [one.key.tag for one in await self.list(workflow)]
        near = did_you_mean(tag, known)
        return NotFound(
            f"{workflow[:60]} has no tag {tag[:60]!r}.{f' {near}' if near else ''}",
            hint=f"Its tags: {', '.join(known[:20]) or 'none'}. weft workflows tag NAME TAG VERSION makes one.",
        )

    def _names_nothing(self, tag: Tag) -> str:
        raise NotFound(
            f"{tag.key.workflow}:{tag.key.tag} names no version: it was removed, or its first move was undone.",
            hint=f"weft workflows tag {tag.key.workflow} {tag.key.tag} shows its moves.",
        )

    # --- changing -------------------------------------------------------------------------------------------------

    async def move(self, workflow: str, tag: str, version: str, *, by: str = "", reason: str = "") -> Tag:
        """Let a tag name this version, and make the tag if there is none. A move to where it stands is none."""
        key = TagKey(self._tenant, workflow, check_tag(tag))
        for _ in range(TRIES_MAX):
            moved = await self.move_from(await self._own_tag(key), version, by=by, reason=reason)
            if moved is not None:
                return moved
        raise _contended_error(key)

    async def move_from(self, known: Tag, version: str, *, by: str = "", reason: str = "") -> Tag | None:
        """Let a tag name this version if it is still as it was read; else return None."""
        if known.version == version:
            return known
        at = self._clock.now_ms()
        number = known.cursor + 1
        moved = msgspec.structs.replace(
            known,
            version=version,
            cursor=number,
            moves=number,
            revision=known.revision + 1,
            by=by,
            at=at,
            reason=reason,
        )
        move = TagMove(number=number, before=known.version, after=version, by=by, at=at, reason=reason)
        return moved if await self._tags.write(moved, move) else None

    async def remove(self, workflow: str, tag: str, *, by: str = "", reason: str = "") -> Tag:
        """Let a tag name nothing, which is a move that can be undone. Raises NotFound."""
        key = TagKey(self._tenant, workflow, check_tag(tag))
        for _ in range(TRIES_MAX):
            known = await self._own_tag(key)
            if not known.version:
                raise await self._unknown_tag_error(workflow, tag)
            moved = await self.move_from(known, "", by=by, reason=reason)
            if moved is not None:
                return moved
        raise _contended_error(key)

    async def undo(self, workflow: str, tag: str, *, by: str = "", reason: str = "") -> Tag:
        """Take a tag back to where it was before its last move. Raises Refused if there is none."""
        return await self._undo_or_redo(TagKey(self._tenant, workflow, tag), -1, by=by, reason=reason)

    async def redo(self, workflow: str, tag: str, *, by: str = "", reason: str = "") -> Tag:
        """Repeat the move that was undone last. Raises Refused if there is none, or if the tag has moved since."""
        return await self._undo_or_redo(TagKey(self._tenant, workflow, tag), 1, by=by, reason=reason)

    async def _undo_or_redo(self, key: TagKey, step: int, *, by: str, reason: str) -> Tag:
        for _ in range(TRIES_MAX):
            known = await self._own_tag(key)
            if not known.revision:
                raise await self._unknown_tag_error(key.workflow, key.tag)
            cursor = known.cursor + step
            if not 0 <= cursor <= known.moves:
                word = "undone" if step < 0 else "redone"
                raise Refused(
                    f"{key.workflow}:{key.tag} has no move that can be {word}.",
                    hint="A new move cuts the moves that could be redone." if step > 0 else "",
                    code="tag.no_move",
                )
            (move,) = await self._tags.moves(key, upto=max(cursor, known.cursor), limit=1)
            moved = msgspec.structs.replace(
                known,
                version=move.before if step < 0 else move.after,
                cursor=cursor,
                revision=known.revision + 1,
                by=by,
                at=self._clock.now_ms(),
                reason=reason,
            )
            if await self._tags.write(moved):
                return moved
        raise _contended_error(key)

    async def _own_tag(self, key: TagKey) -> Tag:
        """Return a tag of this tenant. A new one is at revision 0 and names nothing."""
        known = await self._tags.get(key)
        return known or Tag(key=key, version="", cursor=0, moves=0, revision=0, at=self._clock.now_ms())


def _contended_error(key: TagKey) -> Conflict:
    return Conflict(f"{key.workflow}:{key.tag} is moved by others all the time.", hint="Try again.")
