"""What ``weft run`` shows while it waits: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import sys

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from weft.authoring.notices import Notices
from weft.cli.activity import summary
from weft.cli.output import SafeText
from weft.core.ids import RunUid
from weft.observe.explain import explain
from weft.runtime.host import Engine
from weft.runtime.service import RunService

PATIENCE_SECONDS = 0.5
"""A run that is over sooner shows nothing."""
LOOK_SECONDS = 0.2
LINE_SECONDS = 5.0
SPINNER_WIDTH = 3


class LiveNotices(Notices):
    """The notices of ``app.run``, and how far the run is."""

    async def until_over(self, service: RunService, engine: Engine, uid: RunUid) -> None:
        """Wait for the end and show meanwhile what the run does."""
        showing = asyncio.get_running_loop().create_task(self._show(service, engine, uid))
        try:
            await super().until_over(service, engine, uid)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    async def _show(self, service: RunService, engine: Engine, uid: RunUid) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)
        if sys.stderr.isatty():
            await _draw(service, engine, uid)
        else:
            await self._say_lines(service, engine, uid)

    async def _say_lines(self, service: RunService, engine: Engine, uid: RunUid) -> None:
        before = ""
        while True:
            await asyncio.sleep(LINE_SECONDS)
            now = await _line(service, engine, uid)
            if now and now != before:
                self.say(now)
            before = now


async def _draw(service: RunService, engine: Engine, uid: RunUid) -> None:
    console = Console(stderr=True, highlight=False)
    spinner = Spinner("dots")
    # What steps print stays above the line; what goes to a file must not be drawn into the terminal.
    with Live(spinner, console=console, transient=True, redirect_stdout=sys.stdout.isatty()):
        while True:
            text = SafeText(await _line(service, engine, uid) or "waiting")
            text.truncate(console.width - SPINNER_WIDTH, overflow="ellipsis")
            spinner.update(text=text)
            await asyncio.sleep(LOOK_SECONDS)


async def _line(service: RunService, engine: Engine, uid: RunUid) -> str:
    actor = engine.runs.actors.get(uid)
    if actor is None:
        # It is not in this process: what the store says of it.
        row = await service.store.directory.row(uid)
        return f"{row.id} {row.status}: {(await explain(service, row)).summary}" if row is not None else ""
    what = summary(actor.machine, engine.clock.now_ms())
    status = actor.machine.state.status.replace("_", " ")
    return f"{actor.id} {status}: {what}" if what else f"{actor.id} {status}"
