"""Versions of workflows and their tags on a server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from weft.authoring.remote import PAGE, Remote
from weft.errors import NotFound
from weft.runtime.publication import PublishedVersion, WorkflowPatch
from weft.runtime.tag_views import TagMoves, TagView
from weft.runtime.versions import VersionDocument, WorkflowVersion
from weft.server.endpoints.workflows import TagList, WorkflowList


class RemoteWorkflows:
    """Carries out commands about versions and tags through the API of a server, which knows who asks.

    ``by`` is not sent.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def list(self, name: str | None = None, *, all: bool = False) -> Sequence[WorkflowVersion]:
        path = "workflows" if name is None else _workflow_path(name)
        found: list[WorkflowVersion] = []
        cursor: str | None = None
        while True:
            asked = [("limit", str(PAGE)), ("all", "true" if all else "false")]
            asked += [("cursor", cursor)] if cursor else []
            try:
                page = await self._remote.get_view(path, WorkflowList, asked)
            except NotFound:
                return []
            found += page.workflows
            cursor = page.cursor
            if cursor is None:
                return found

    async def get(self, name: str, version: str) -> VersionDocument:
        return await self._remote.get_view(
            f"{_workflow_path(name)}/versions/{quote(version, safe='')}", VersionDocument
        )

    async def tags(self, name: str) -> Sequence[TagView]:
        found: list[TagView] = []
        cursor: str | None = None
        while True:
            asked = [("limit", str(PAGE)), *([("cursor", cursor)] if cursor else [])]
            page = await self._remote.get_view(f"{_workflow_path(name)}/tags", TagList, asked)
            found += page.tags
            cursor = page.cursor
            if cursor is None:
                return found

    async def history(self, name: str, tag: str, *, upto: int | None = None, limit: int = 100) -> TagMoves:
        asked = [("limit", str(limit)), *([("upto", str(upto))] if upto is not None else [])]
        return await self._remote.get_view(_tag_path(name, tag), TagMoves, asked)

    async def tag(self, name: str, tag: str, version: str, *, by: str = "", reason: str = "") -> TagView:
        body = {"version": version, "reason": reason}
        return await self._remote.post(_tag_path(name, tag), body, TagView, method="PUT")

    async def publish(self, name: str, tag: str, patch: WorkflowPatch) -> PublishedVersion:
        body = {"tag": tag, "patch": dict(patch.patch), "text": patch.text, "reason": patch.reason}
        return await self._remote.post(f"{_workflow_path(name)}/patch", body, PublishedVersion)

    async def undo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView:
        return await self._send_once(f"{_tag_path(name, tag)}/undo", reason)

    async def redo_tag(self, name: str, tag: str, *, by: str = "", reason: str = "") -> TagView:
        return await self._send_once(f"{_tag_path(name, tag)}/redo", reason)

    async def _send_once(self, path: str, reason: str) -> TagView:
        """Send a command that must not be repeated: a second undo would undo another move."""
        return await self._remote.post(path, {"reason": reason}, TagView, pauses=())


def _workflow_path(name: str) -> str:
    return f"workflows/{quote(name, safe='')}"


def _tag_path(name: str, tag: str) -> str:
    return f"{_workflow_path(name)}/tags/{quote(tag, safe='')}"
