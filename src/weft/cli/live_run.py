"""Show the progress of ``weft run``: one line that changes on a terminal, and a new line at intervals elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from weft.authoring.notices import Notices
from weft.cli.output import SafeText, age_text
from weft.core.ids import RunUid
from weft.core.machine import Machine
from weft.observe.diagnosis import PendingWait
from weft.observe.explain import explain
from weft.observe.progress import progress_of
from weft.observe.sentences import wait_sentence
from weft.observe.waits import waits_of
from weft.runtime.service import RunService

PATIENCE_SECONDS = 0.5
"""How long a run must take before its progress is shown."""
LOOK_SECONDS = 0.2
LINE_SECONDS = 5.0
SPINNER_WIDTH = 3
PARTS_MAX = 3


class LiveNotices(Notices):
    """The notices of ``app.run``, and the progress of the run."""

    async def until_over(self, service: RunService, uid: RunUid) -> None:
        """Wait for the end of the run, and show its progress meanwhile."""
        showing = asyncio.get_running_loop().create_task(self._show(service, uid))
        try:
            await super().until_over(service, uid)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    async def _show(self, service: RunService, uid: RunUid) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)
        if sys.stderr.isatty():
            await _draw(service, uid)
        else:
            await self._say_lines(service, uid)

    async def _say_lines(self, service: RunService, uid: RunUid) -> None:
        before = ""
        while True:
            await asyncio.sleep(LINE_SECONDS)
            now = await _live_line(service, uid)
            if now and now != before:
                self.say(now)
            before = now


async def _draw(service: RunService, uid: RunUid) -> None:
    console = Console(stderr=True, highlight=False)
    spinner = Spinner("dots")
    # The output of steps appears above the line, unless stdout goes to a file.
    with Live(spinner, console=console, transient=True, redirect_stdout=sys.stdout.isatty()):
        while True:
            text = SafeText(await _live_line(service, uid) or "waiting")
            text.truncate(console.width - SPINNER_WIDTH, overflow="ellipsis")
            spinner.update(text=text)
            await asyncio.sleep(LOOK_SECONDS)


async def _live_line(service: RunService, uid: RunUid) -> str:
    actor = service.local.find(uid) if service.local is not None else None
    if actor is None:
        # The run is not in this process, so read the store.
        row = await service.store.directory.row(uid)
        return f"{row.id} {row.status}: {(await explain(service, row)).summary}" if row is not None else ""
    what = progress_text(actor.machine, service.clock.now_ms())
    status = actor.machine.state.status.replace("_", " ")
    return f"{actor.id} {status}: {what}" if what else f"{actor.id} {status}"


def progress_text(machine: Machine, now: int) -> str:
    """Describe in one line what a run does: "pages 142 of 500; charge, attempt 2 of 4 after OSError: down"."""
    return "; ".join([*map(str, progress_of(machine)[:PARTS_MAX]), *_wait_texts(waits_of(machine, now), now)])


def _wait_texts(waits: list[PendingWait], now: int) -> Iterator[str]:
    """Describe the open tasks or, without tasks, what the run waits for. Each text occurs only once."""
    texts: dict[str, str] = {}
    for wait in sorted(waits, key=lambda wait: -wait.attempt):
        if wait.kind in ("step", "retry"):
            texts.setdefault(wait.step, _task(wait, now))
    parts = list(texts.values()) or list(dict.fromkeys(f"waits for {wait_sentence(wait)}" for wait in waits))
    yield from parts[:PARTS_MAX]
    if len(parts) > PARTS_MAX:
        yield f"{len(parts) - PARTS_MAX} more"


def _task(wait: PendingWait, now: int) -> str:
    attempts = ""
    if wait.failure is not None:
        what = wait.failure.message.partition("\n")[0][:80]
        attempts = f", attempt {wait.attempt} of {wait.attempts_max} after {wait.failure.type}: {what}"
    return f"{wait.step}{attempts}, {age_text(now - int(wait.since.timestamp() * 1000))}"
