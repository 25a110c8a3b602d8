"""The messages that ``app.run`` prints for the user.

They say that a run continues, that it finished earlier, and where it stands after Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NoReturn

from weft.core import events as e
from weft.core.escapes import escape_line
from weft.core.ids import RunId, RunUid, Seq
from weft.core.machine import Machine
from weft.core.plurals import pluralize
from weft.core.run.state import Held, State
from weft.errors import Diverged, ForeignAwait, WeftError
from weft.observe.sentences import hold_hint
from weft.ports.store import RunRow
from weft.runtime.finished_error import format_ago
from weft.runtime.service import RunService

_UNNAMED = "You gave it no id, so running this again starts a new run beside it. Pass id= to app.run."


class Notices:
    """The messages of one ``app.run``."""

    def __init__(self, url: str, *, named: bool) -> None:
        """``named`` means that the user chose the id, so that running the program again continues this run."""
        self._named = named
        self._place = url.removeprefix("sqlite:///")
        self._last = ""
        self._asked: set[str] = set()
        """The places of the questions that were printed."""

    def say(self, text: str) -> None:
        print(f"weft: {escape_line(text)}", file=sys.stderr, flush=True)  # noqa: T201 - for the user at the terminal

    async def begin(self, service: RunService, run_id: str, *, created: bool) -> None:
        """Say that the run was started earlier, and what is not repeated. Prints nothing for a new run."""
        if created:
            return
        row = await service.row(RunId(run_id))
        if row.ended_at is not None:
            when = format_ago(service.clock.now_ms() - row.ended_at)
            self.say(f"{run_id} {row.status} {when}; this is its recorded result. New run: another id.")
            return
        if row.status == "held" and not await service.store.log.inbox(row.uid):
            return  # ``until_over`` raises the reason why the run is held
        assert service.local is not None
        assert service.work is not None
        actor = await service.load_here(row)
        live = actor.machine.state if actor is not None and actor.ready else None
        state = live or await service.reader.state(row)
        if actor is None and row.owner is not None and row.owner != service.local.host:
            self.say(f"{run_id} runs in another process ({_steps(state)} recorded); waiting for its result")
            return
        if not row.seq:
            later = row.wake_at is not None and row.wake_at > service.clock.now_ms()
            due = f"starts at {_time_in_notice(row.wake_at)}" if later else "begins now"
            self.say(f"{run_id} was started earlier and is pending; it {due}")
            return
        again = service.work.performed_again(row.uid)
        note = f"; {', '.join(again)} had no result, so it is performed again" if again else ""
        if row.status == "paused":
            note += f"; it is paused: weft resume {run_id}"
        self.say(f"{run_id} goes on: {_steps(state)} recorded, not repeated{note}")

    async def until_over(self, service: RunService, uid: RunUid) -> None:
        """Wait for the end of the run. If the run is held for a person, raise the reason."""
        stopped = asyncio.Event()
        assert service.local is not None
        unwatch = service.commits.watch(
            lambda changed, _, status: stopped.set() if changed == uid and status == "held" else None
        )
        unobserve = service.commits.observe(lambda actor, _: self._say_questions(uid, actor.machine))
        for actor in service.local.all():
            self._say_questions(uid, actor.machine)
        try:
            ended = asyncio.ensure_future(service.local.wait_for_end(uid))
            held = asyncio.ensure_future(stopped.wait())
            row = await service.store.directory.row(uid)
            if row is not None and row.status == "held" and not await service.store.log.inbox(uid):
                stopped.set()  # with mail, such as a resume, the next commit of the run shows whether it is still held
            try:
                await asyncio.wait({ended, held}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended.cancel()
                held.cancel()
            if stopped.is_set() and not ended.done():
                await self._raise_held(service, uid)
        finally:
            unwatch()
            unobserve()
        await self._say_not_undone(service, uid)

    def _say_questions(self, root: RunUid, machine: Machine) -> None:
        """Say what a run of this tree asks people, each question once."""
        state = machine.state
        if not state.questions or root not in (state.uid, state.root):
            return
        for number, question in state.questions.items():
            place = f"{state.run_id}:{machine.location(number)}"
            if place not in self._asked:
                self._asked.add(place)
                self.say(f'{state.run_id} asks "{question.title}"; to answer: weft decide {place} approve|reject')

    async def _say_not_undone(self, service: RunService, uid: RunUid) -> None:
        """Say which steps could not be undone. Neither the result nor the error of the run names them."""
        row = await service.store.directory.row(uid)
        if row is None or row.ended_at is None:
            return
        for stored in await service.store.log.events(uid, after=Seq(row.seq - 1), limit=1):
            left = getattr(e.decode(stored.body), "not_undone", ())
            if left:
                self.say(f"{row.id} is over, but not undone: {', '.join(left)}")

    async def _raise_held(self, service: RunService, uid: RunUid) -> None:
        row = await service.store.directory.row(uid)
        state = await service.reader.state(row) if row is not None else None
        if state is not None and state.held is not None:
            hint = hold_hint(state.run_id, state.held.message)
            if hint:
                self.say(f"{state.run_id} stopped for you. {hint}")
            _raise(state.held)

    async def stop(self, service: RunService, run_id: str, stop_host: Callable[[], Awaitable[None]]) -> None:
        """Stop after Ctrl-C: running steps may finish, and no new ones start. Then say where the run stands."""
        row = await service.row(RunId(run_id))
        self._last = await self._standing(service, row)
        if service.work is not None and service.work.is_busy(row.uid):
            self.say("stopping when the running step has ended. Press Ctrl-C again to stop at once.")
        await stop_host()
        self._last = await self._standing(service, await service.row(RunId(run_id)))

    async def _standing(self, service: RunService, row: RunRow) -> str:
        if row.ended_at is not None:
            return f"{row.id} {row.status}."
        state = await service.reader.state(row)
        recorded = f"{_steps(state)} recorded in {self._place}"
        next_time = "Run this again and it goes on." if self._named else _UNNAMED
        return f"{row.id} {_status_text(state)} ({recorded}). {next_time}"

    def interrupted(self) -> None:
        self.say(self._last or f"stopped. What was recorded is in {self._place}; run this again and it goes on.")


def _steps(state: State) -> str:
    return pluralize(state.steps_done, "step")


def _status_text(state: State) -> str:
    if state.tasks:
        return f"stopped at {', '.join(sorted({task.step for task in state.tasks.values()})[:3])}"
    if state.timers:
        return f"is asleep until {_time_in_notice(min(state.timers.values()))}"
    if state.asks:
        return "waits for an answer"
    if state.waits:
        return "waits for a message"
    return "is running"


def _time_in_notice(ms: int | None) -> str:
    when = datetime.fromtimestamp((ms or 0) / 1000).astimezone()
    today = when.date() == datetime.now().astimezone().date()
    return f"{when:%H:%M:%S}" if today else f"{when:%Y-%m-%d %H:%M:%S}"


def _raise(held: Held) -> NoReturn:
    if held.code == "code.diverged":
        raise Diverged(held.message, location=held.location, recorded="", asked="")
    if held.code == "code.foreign_await":
        raise ForeignAwait(held.message)
    raise WeftError(held.message, code=held.code)
