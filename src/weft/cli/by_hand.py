"""Set the results of runs by hand."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from weft.cli.app_file import load_app
from weft.cli.login import login
from weft.cli.operations import run_operations
from weft.cli.output import print_json
from weft.cli.run_control import print_done
from weft.cli.store_access import open_run
from weft.errors import UsageError


class TypedResult(NamedTuple):
    """The arguments of ``weft set``."""

    place: str
    output: str | None
    error: str
    performed: bool
    force: bool
    reason: str


async def set_by_hand(run: str, typed: TypedResult, *, url: str | None, app: str | None, json: bool) -> None:
    """End the work at a place with a result, or replace a recorded one. Raises UsageError, NotFound, Refused."""
    output = _read_result(typed.output)
    async with open_run(run, url, app) as (service, row):
        if app is not None:
            service.declared = load_app(app, "weft set").app.catalogue()
        await (
            run_operations(service)
            .run_handle(row.id)
            .set(
                typed.place,
                output,
                error=typed.error,
                performed=typed.performed,
                force=typed.force,
                reason=typed.reason,
                by=login(),
            )
        )
        if json:
            now = await service.row(row.id)
            print_json({"id": now.id, "status": now.status, "place": typed.place})
            return
        await print_done(service, row, f"{row.id}: {typed.place} is set", f"{row.id}: {typed.place} will be set")


def _read_result(text: str | None) -> object:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"--output is not JSON: {error}.", hint="Text needs quotes: --output '\"done\"'.") from None
