"""What ``app.run`` says on the terminal.

That a run goes on, that it is finished already, where it stands after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import NoReturn

from weft.core.ids import RunId, RunUid
from weft.core.state import Held, State
from weft.errors import Diverged, ForeignAwait, WeftError
from weft.ports.store import RunRow
from weft.runtime.door import Door, ago
from weft.runtime.engine import Engine

_UNNAMED = "It has no id of yours: the next run is a new one, and this one goes on beside it. Give app.run an id=."


class Notices:
    """The voice of one ``app.run``."""

    def __init__(self, url: str, *, named: bool) -> None:
        """``named``: the user chose the id, so that running again finds this very run."""
        self._named = named
        self._place = url.removeprefix("sqlite:///")
        self._last = ""

    def say(self, text: str) -> None:
        print(f"weft: {text}", file=sys.stderr, flush=True)  # noqa: T201 - it speaks to the person at the terminal

    async def begin(self, door: Door, engine: Engine, run_id: str, *, created: bool) -> None:
        """A run that was there before: say so, and what of it is not repeated."""
        if created:
            return
        row = await door.row(RunId(run_id))
        if row.ended_at is not None:
            when = ago(door.clock.now_ms() - row.ended_at)
            self.say(f"{run_id} {row.status} {when}; this is its recorded result. New run: another id.")
            return
        taken_up = await door.take_up(row) is not None
        state = engine.state_of(row.uid) or await door.state(row)
        if not taken_up and row.owner is not None and row.owner != engine.host:
            self.say(f"{run_id} runs in another process ({_steps(state)} recorded); its result is awaited here")
            return
        again = engine.recovery.performed_again(row.uid)
        note = f"; {', '.join(again)} had no result, so it is performed again" if again else ""
        if row.status == "paused":
            note += f"; it is paused: weft resume {run_id}"
        self.say(f"{run_id} goes on: {_steps(state)} recorded, not repeated{note}")

    async def until_over(self, door: Door, engine: Engine, uid: RunUid) -> None:
        """Wait for the end; a run that stops for a person is raised, because the person sits here."""
        stopped = asyncio.Event()
        unwatch = engine.watch(
            lambda changed, _, status: stopped.set() if changed == uid and status == "held" else None
        )
        try:
            ended = asyncio.ensure_future(engine.ended(uid))
            held = asyncio.ensure_future(stopped.wait())
            row = await door.store.directory.row(uid)
            if row is not None and row.status == "held":
                stopped.set()
            try:
                await asyncio.wait({ended, held}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                held.cancel()
            if stopped.is_set() and not ended.done():
                await self._raise_held(door, uid)
        finally:
            unwatch()

    async def _raise_held(self, door: Door, uid: RunUid) -> None:
        row = await door.store.directory.row(uid)
        state = await door.state(row) if row is not None else None
        if state is not None and state.held is not None:
            _raise(state.held)

    async def stop(self, door: Door, engine: Engine, run_id: str) -> None:
        """Ctrl-C: what is being performed may end, nothing new begins; then it is known where the run stands."""
        row = await door.row(RunId(run_id))
        self._last = await self._standing(door, row)
        if engine.worker.is_busy(row.uid):
            self.say("stopping as soon as the step under way has ended. Ctrl-C again: at once.")
        await engine.stop()
        self._last = await self._standing(door, await door.row(RunId(run_id)))

    async def _standing(self, door: Door, row: RunRow) -> str:
        if row.ended_at is not None:
            return f"{row.id} {row.status}."
        state = await door.state(row)
        recorded = f"{_steps(state)} recorded in {self._place}"
        next_time = "Run this again and it goes on." if self._named else _UNNAMED
        return f"{row.id} {_where(state)} ({recorded}). {next_time}"

    def interrupted(self) -> None:
        self.say(self._last or f"stopped. What was recorded is in {self._place}; run this again and it goes on.")


def _steps(state: State) -> str:
    return f"{state.steps_done} step{'s' if state.steps_done != 1 else ''}"


def _where(state: State) -> str:
    if state.tasks:
        return f"stopped at {', '.join(sorted({task.step for task in state.tasks.values()})[:3])}"
    if state.timers:
        due = datetime.fromtimestamp(min(state.timers.values()) / 1000).astimezone()
        today = due.date() == datetime.now().astimezone().date()
        return f"is asleep until {due:%H:%M:%S}" if today else f"is asleep until {due:%Y-%m-%d %H:%M:%S}"
    if state.asks:
        return "waits for an answer"
    if state.waits:
        return "waits for a message"
    return "is under way"


def _raise(held: Held) -> NoReturn:
    if held.code == "code.diverged":
        raise Diverged(held.message, location=held.location, recorded="", asked="")
    if held.code == "code.foreign_await":
        raise ForeignAwait(held.message)
    raise WeftError(held.message, code=held.code)
