"""Replays recorded runs with the code of an app."""

from __future__ import annotations

import asyncio
from pathlib import Path

from weft.cli.app_file import load_app
from weft.cli.bundles import read_bundle_file
from weft.cli.messages import say
from weft.cli.output import SafeText, console
from weft.cli.store_access import open_run
from weft.errors import UsageError
from weft.runtime.bundles.recorded import read_recorded, replay_recorded
from weft.runtime.bundles.service import BundleService
from weft.settings import project_text


def replay_file(file: str, *, url: str | None, app: str | None) -> int:
    """Replay a file, or a run of the store with those below it. Returns 1 if the code does not fit what is recorded."""
    target = app or project_text("app")
    if not target:
        raise UsageError("Say whose code is to be tried.", hint="weft replay FILE --app app.py")
    loaded = load_app(target, "weft replay")
    is_file = Path(file).is_file()
    data = read_bundle_file(file) if is_file else asyncio.run(_exported(file, url or loaded.app.url, app))
    wrong = 0
    for run in read_recorded(data, file):
        outcome = asyncio.run(replay_recorded(run, loaded.app.registered.find_program))
        if outcome.verdict == "fits":
            say(f"{run.id}: the code does what is recorded")
        else:
            console().print(SafeText(f"{run.id}: {outcome.message}", style="red"))
            wrong = 1
    return wrong


async def _exported(run: str, url: str, app: str | None) -> bytes:
    async with open_run(run, url, app) as (service, row):
        return await BundleService(service).export(row.id, tree=True)
