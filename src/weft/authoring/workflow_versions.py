"""Look at the versions of workflows and move their tags from Python, through a store or a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from weft.errors import UsageError
from weft.runtime.publication import PublishedVersion, WorkflowPatch
from weft.runtime.tag_views import TagMoves, TagView
from weft.runtime.version_refs import DEFAULT_TAG
from weft.runtime.versions import VersionDocument, WorkflowVersion


class WorkflowAccess(Protocol):
    """What carries out commands about versions and tags: the service of a store, or a server."""

    async def list(self, name: str | None = None, *, all: bool = False) -> Sequence[WorkflowVersion]: ...

    async def get(self, name: str, version: str) -> VersionDocument: ...

    async def tags(self, name: str) -> Sequence[TagView]: ...

    async def history(self, name: str, tag: str, *, upto: int | None = None, limit: int = 100) -> TagMoves: ...

    async def tag(self, name: str, tag: str, version: str, *, by: str = "", reason: str = "") -> TagView: ...

    async def publish(self, name: str, tag: str, patch: WorkflowPatch) -> PublishedVersion: ...

    async def undo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView: ...

    async def redo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView: ...


class Workflows:
    """The versions of workflows in a store, and their tags: ``app.workflows``, ``client.workflows``."""

    def __init__(self, open_access: Callable[[], WorkflowAccess]) -> None:
        self._open_access = open_access

    @property
    def _access(self) -> WorkflowAccess:
        """The versions behind this object. Raises NotRunning."""
        return self._open_access()

    async def list(self, name: str | None = None, *, all: bool = False) -> Sequence[WorkflowVersion]:
        """Return the versions of all workflows, or of one, with their tags and how many runs are open.

        With ``all`` also versions that only a patch of a run made.
        """
        return await self._access.list(name, all=all)

    async def get(self, name: str, version: str) -> VersionDocument:
        """Return one version with its document, as its author wrote it. Raises NotFound."""
        return await self._access.get(name, version)

    async def tags(self, name: str) -> Sequence[TagView]:
        """Return the tags of a workflow."""
        return await self._access.tags(name)

    async def history(self, name: str, tag: str, *, upto: int | None = None, limit: int = 100) -> TagMoves:
        """Return a tag with its moves, newest first, beginning with number ``upto``. Raises NotFound."""
        return await self._access.history(name, tag, upto=upto, limit=limit)

    async def tag(self, name: str, tag: str, version: str, *, reason: str = "") -> TagView:
        """Let a tag name a version from now on, and make the tag if there is none. Raises NotFound."""
        return await self._access.tag(name, tag, version, reason=reason)

    async def patch(
        self,
        name: str,
        ops: Sequence[Mapping[str, Any]] | None = None,
        *,
        document: Mapping[str, Any] | str | None = None,
        tag: str = DEFAULT_TAG,
        base: str = "",
        reason: str = "",
    ) -> PublishedVersion:
        """Make a version of a graph and let a tag name it: by JSON Patch operations, or from a whole document.

        A document may be a text, which is stored as it is, comments included. With ``base``, the tag must still name
        that version.

        Raises:
            StaleBase: the tag names another version by now.
            BadPatch, BadGraph: the patch or the new document is not valid.
        """
        if (ops is None) is (document is None):
            raise UsageError("A patch has operations or a document.", hint="Give one of ops and document=.")
        made: dict[str, Any] = {"base": base} if base else {}
        if isinstance(document, str):
            found = WorkflowPatch(patch=made, text=document, reason=reason)
        else:
            changes = {"ops": list(ops or ())} if document is None else {"document": dict(document)}
            found = WorkflowPatch(patch={**made, **changes}, reason=reason)
        return await self._access.publish(name, tag, found)

    async def undo_tag(self, name: str, tag: str, *, reason: str = "") -> TagView:
        """Take a tag back to where it was before its last move. Raises NotFound, Refused."""
        return await self._access.undo_tag(name, tag, reason=reason)

    async def redo_tag(self, name: str, tag: str, *, reason: str = "") -> TagView:
        """Repeat the move of a tag that was undone last. Raises NotFound, Refused."""
        return await self._access.redo_tag(name, tag, reason=reason)
