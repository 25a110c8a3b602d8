"""Replay the log of a code run in isolation, against any version of its code.

Nothing is claimed, written or performed. The code runs on a private loop of its own, with the same driver as a hosted
run, so it stops here exactly where it would stop there. What it asks for beyond the log is recorded only in the copy of
the state, and never dispatched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.code.machine import CodeMachine
from weft.core.code.state import Entry
from weft.core.ids import EntryId, Seq
from weft.core.run.env import Env
from weft.errors import Diverged, Failure, WeftError
from weft.runtime.run.divergence import map_item, other_arguments
from weft.runtime.run.driver import CodeDriver, Program
from weft.runtime.run.driver_actor import DriverActor
from weft.runtime.schema_check import check_schema
from weft.steps.misfits import Misfit

ASKS_MAX = 1_000
"""Code that asks for so much beyond the log without waiting is not followed further: it has passed the log."""

ReplayVerdict = Literal["fits", "diverges", "raises", "value"]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a replay: whether the code still fits the log, and else where it does not."""

    verdict: ReplayVerdict
    """``value``: a recorded value no longer has the type of today. ``raises``: the code fails before it gets there."""
    location: str = ""
    recorded: str = ""
    asked: str = ""
    message: str = ""
    """The error, with what helps."""
    unvisited: Sequence[str] = ()
    """Recorded entries that the code no longer comes to. This alone stops no run."""


class ReplayedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run to replay: its state, folded from its whole log, and how to read more of it."""

    machine: CodeMachine
    blob: Callable[[str], Awaitable[bytes]]
    """Return a blob."""
    event: Callable[[Seq], Awaitable[bytes]]
    """Return an event of the log."""
    now: int


async def replay(run: ReplayedRun, program: Program, *, tolerant: bool = False) -> Replayed:
    """Replay a run against a program. Its state is used up by this."""
    machine = run.machine
    state = machine.state
    if not state.started or state.ended:
        return Replayed(verdict="fits")  # the code has not begun, or is over
    if state.status in ("paused", "held"):
        machine.evolve(e.RunResumed(), at=state.at)
    actor = ReplayActor(run, tolerant=tolerant)
    driver = ReplayDriver(machine, program, actor)
    driver.loop.monotonic = time.monotonic
    try:
        while True:
            await _in_callback(driver.advance)
            if driver.missing_blobs:
                await actor.fetch(driver.missing_blobs)
            elif not driver.unfinished or actor.asks > ASKS_MAX:
                return await _replay_outcome(driver, actor)
    finally:
        await _in_callback(driver.close)


async def _in_callback(call: Callable[[], None]) -> None:
    """Call a function in a callback of the loop: a private loop must not be pumped inside a task."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            done.set_exception(error)
        else:
            done.set_result(None)

    loop.call_soon(run)
    await done


async def _replay_outcome(driver: ReplayDriver, actor: ReplayActor) -> Replayed:
    unvisited = driver.unvisited_entries()
    failure = actor.failure
    if failure is not None:
        message = f"{failure.type}: {failure.message}"
        return Replayed(verdict="raises", location=failure.where, message=message, unvisited=unvisited)
    error = driver.stopped
    if driver.other_input is not None and isinstance(error, Diverged):
        entry, asked = driver.other_input
        stored = await actor.run.event(Seq(entry))
        where = map_item(actor.run.machine, error.location)
        error = other_arguments(driver.machine.state.run_id, error.location, stored, asked, where)
    if error is None:
        return Replayed(verdict="fits", unvisited=unvisited)
    if not isinstance(error, Diverged):
        return Replayed(verdict="raises", message=str(error), unvisited=unvisited)
    return Replayed(
        verdict="value" if driver.is_misfit else "diverges",
        location=error.location,
        recorded=error.recorded,
        asked=error.asked,
        message=str(error),
        unvisited=unvisited,
    )


class ReplayDriver(CodeDriver):
    """A driver that keeps why it stopped, as data, instead of holding the run."""

    def __init__(self, machine: CodeMachine, program: Program, outside: DriverActor) -> None:
        super().__init__(machine, program, outside)
        self.stopped: WeftError | None = None
        self.is_misfit = False
        """It stopped because of a recorded value that no longer has the right type."""
        self.other_input: tuple[EntryId, bytes] | None = None

    def refuse_type(self, entry: Entry, misfit: Misfit) -> None:
        self.is_misfit = True
        super().refuse_type(entry, misfit)

    def _hold_run(self, error: WeftError) -> None:
        self._finished = True
        self.stopped, self.other_input = error, self._other_input
        # The code could not even be called with the recorded input.
        self.is_misfit = self.is_misfit or (self._main is None and isinstance(error, Diverged))
        self.close()

    def _report_unreached(self) -> None:
        """Log nothing: the run does not end here."""

    def unvisited_entries(self) -> list[str]:
        """Return the recorded entries that the code did not come to."""
        entries = self.machine.state.entries
        return [
            entry.key for number, entry in self._unreached.entries.items() if number in entries and not entry.optional
        ]


class ReplayActor:
    """Stands in for the actor of a hosted run: it keeps everything in memory and lets nothing out."""

    def __init__(self, run: ReplayedRun, *, tolerant: bool) -> None:
        self.run = run
        self.tolerant = tolerant
        self.committed_seq = Seq(run.machine.state.seq)
        self.failure: Failure | None = None
        """How the code failed, if it did."""
        self.asks = 0
        """How much the code asked for beyond the log."""
        self._blobs: dict[str, bytes] = {}
        self._now = max(run.now, run.machine.state.at)

    def issue(self, command: c.Asked) -> None:
        self.asks += 1
        if isinstance(command, c.FailRun):
            # A run whose deadline has passed is to fail.
            self.failure = command.failure if not self.run.machine.state.timed_out else None
        elif not isinstance(command, (c.CompleteRun, c.EndCancelled)):
            machine = self.run.machine
            for event in machine.decide(command, Env(now=self._now, check=check_schema, keep=self.keep)):
                machine.evolve(event, at=self._now)

    def drop_from(self, entry: EntryId) -> None:
        """Do nothing: what a fork would drop is reported as the place where it stopped."""

    def try_schedule(self, ask: c.ScheduleTask) -> Entry | None:
        """Return None, so that every step is issued."""
        return None

    def keep(self, raw: bytes, *, apart: bool = False) -> Raw:
        return Raw(values.seal(raw))

    def blob(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)

    async def fetch(self, digests: set[str]) -> None:
        """Read blobs into memory."""
        for digest in sorted(digests):
            self._blobs[digest] = await self.run.blob(digest)
        digests.clear()

    def now(self) -> int:
        return self._now

    def is_new(self) -> bool:
        return False

    def new_id(self) -> str:
        return f"{self.asks:032x}"

    def emit(self, stream: str, raw: bytes, place: str, *, at_root: bool = False) -> None:
        """Drop the output."""

    def hold_other_input(self, location: str, entry: EntryId, asked: bytes, where: str) -> None:
        raise AssertionError("an isolated driver keeps why it stopped")
