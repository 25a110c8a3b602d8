"""Bundles through a server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from weft.authoring.remote import Remote
from weft.runtime.bundles.importer import Imported


class RemoteBundles:
    """Exports and imports runs through the API of a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def export(
        self, run_id: str, *, tree: bool = False, streams: bool = False, redact: Sequence[str] = ()
    ) -> bytes:
        options = {"tree": tree, "streams": streams}
        asked = [
            *((name, "true" if on else "false") for name, on in options.items()),
            *(("redact", pointer) for pointer in redact),
        ]
        return await self._remote.get_bytes(f"bundles/{quote(run_id, safe='')}", asked)

    async def move(self, run_id: str, *, to: str = "", reason: str = "", by: str = "") -> bytes:
        said = {"to": to, "reason": reason, "by": by}
        return await self._remote.post_for_bytes(f"bundles/{quote(run_id, safe='')}", said)

    async def import_(self, data: bytes, *, adopt: bool = False, by: str = "") -> Imported:
        path = "bundles?adopt=true" if adopt else "bundles"
        return await self._remote.post_bytes(path, data, "application/zip", Imported)
