"""Export runs to bundles and import them, as one caller may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from weft.core.ids import RunId
from weft.runtime.bundles.adopt import Adopter
from weft.runtime.bundles.archive import read_bundle
from weft.runtime.bundles.export import Exporter
from weft.runtime.bundles.importer import Imported, Importer
from weft.runtime.bundles.move import MoveOrder, Mover
from weft.runtime.service import RunService


class BundleService:
    """The bundles of one caller."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def export(
        self, run_id: str, *, tree: bool = False, streams: bool = False, redact: Sequence[str] = ()
    ) -> bytes:
        """Return a run as a bundle; with ``tree`` all runs below it too, with ``streams`` also their output.

        ``redact`` are JSON pointers into events.

        Raises NotFound, RunUnreadable, LimitExceeded, UsageError.
        """
        exporter = Exporter(self._service, redact)
        return await exporter.bundle(await self._service.row(RunId(run_id)), tree=tree, streams=streams)

    async def export_events(self, run_id: str, *, redact: Sequence[str] = ()) -> dict[str, Any]:
        """Return one run without children as JSON, which ``replay`` reads. Raises as ``export``, and Refused."""
        exporter = Exporter(self._service, redact)
        return await exporter.events(await self._service.row(RunId(run_id)))

    async def move(self, run_id: str, *, to: str = "", reason: str = "", by: str = "") -> bytes:
        """End a run and all runs below it here, and return the bundle with which another store goes on with them.

        ``to`` says where that is, for people. A run that was moved already gives its bundle again.

        Raises NotFound, RunFinished, RunUnreadable, LimitExceeded, and Refused while work is in flight.
        """
        return await Mover(self._service).move(run_id, MoveOrder(to=to, reason=reason, by=by))

    async def import_(self, data: bytes, *, adopt: bool = False, by: str = "") -> Imported:
        """Import the runs of a bundle. Nothing is written unless all of it is sound. Raises Corrupt, IdTaken.

        With ``adopt``, go on with runs that were moved. Raises UsageError if they were not, and Refused.
        """
        bundle = await asyncio.to_thread(read_bundle, data)
        return await (Adopter(self._service).adopt(bundle, by) if adopt else Importer(self._service).write(bundle))
