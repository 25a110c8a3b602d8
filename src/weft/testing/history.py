"""Use recorded runs as regression tests: replay their exported events with the current code, without performing steps.

The format is one JSON object: ``weft`` ("events/1"), ``run`` (its id), ``uid``, ``workflow``, ``version``, ``events``
(each with ``seq``, ``at`` and ``event``, as stored) and ``blobs`` (digest to content) for the values that the events
only refer to.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw

from weft.authoring.app import App
from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.code.locations import location_key
from weft.core.code.machine import CodeMachine
from weft.core.ids import EntryId, Seq
from weft.errors import Diverged, Evicted, UnknownWorkflow, UsageError, WeftError
from weft.ports.store import StoredEvent
from weft.runtime.bundles.recorded import read_recorded, replay_recorded
from weft.runtime.bundles.service import BundleService
from weft.runtime.call_format import format_call
from weft.runtime.programs import is_published
from weft.runtime.run.driver import CodeDriver, Program
from weft.runtime.service import RunService
from weft.testing.world import SimRun


def export_events(run: SimRun[Any]) -> dict[str, Any]:
    """Return the events of a run in a world, in the form that ``replay`` reads. ``json.dump`` writes them to a file."""
    return run.world.perform(lambda: history_of(run.world.app.service, run.id))


async def history_of(service: RunService, run_id: str) -> dict[str, Any]:
    """Return the events of a run as ``replay`` reads them."""
    return await BundleService(service).export_events(run_id)


def replay(app: App, path: str | Path) -> None:
    """Replay the runs in a file with the app's current code, performing nothing. Raises Diverged where they differ.

    The file is a bundle, or one run as JSON (``weft export``). Also raises UsageError if it is neither, Corrupt if the
    bundle is damaged, UnknownWorkflow if the app does not have a workflow. Runs of graphs and goals have no code, so
    their logs are only folded.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    for run in read_recorded(data, str(path)):
        if is_published(run.style) or run.left_out:
            asyncio.run(replay_recorded(run, app.registered.find_program))
            continue
        program = app.registered.find_program(run.workflow, run.version)
        if program is None:
            raise UnknownWorkflow(f'No workflow "{run.workflow}" of version {run.version} is registered.')
        replay_log(program, run.uid, run.events, run.blobs)


def replay_log(program: Program, uid: str, stored: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> None:
    """Replay a log with the code. Raises Diverged if the code then requests anything that is not recorded."""
    machine = CodeMachine.fresh(uid)
    for event in stored:
        fact = e.decode(event.body)
        machine.evolve(fact, at=event.at)
        if isinstance(fact, e.RunFailedEvent | e.RunCancelledEvent) and fact.never_begun:
            return
    listener = _HistoryActor(machine, stored, blobs)
    driver = CodeDriver(machine, program, listener)
    driver.advance()
    stopped = driver._stop  # noqa: SLF001 - the error that stopped the driver
    driver.close()
    listener.check(stopped)


class _HistoryActor:
    """Replaces the actor of the run. It records the commands of the code instead of carrying them out."""

    tolerant = False

    def __init__(self, machine: CodeMachine, stored: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> None:
        self._machine = machine
        self._stored = stored
        self.committed_seq = Seq(len(stored))
        self._blobs = blobs
        self._beyond: Diverged | None = None
        self._ending: c.CompleteRun | c.FailRun | c.EndCancelled | c.HoldRun | None = None

    def drop_from(self, entry: EntryId) -> None:
        raise AssertionError("a fork drops entries only before its own work is durable")

    def issue(self, command: c.Asked) -> None:
        if isinstance(command, c.CompleteRun | c.FailRun | c.EndCancelled | c.HoldRun):
            self._ending = command
            return
        if self._beyond is None:
            self._beyond = self._diverged(self._place(command), "nothing", type(command).__name__)
        raise Evicted

    def try_schedule(self, ask: c.ScheduleTask) -> None:
        """Leave every step to ``issue``."""

    def keep(self, raw: bytes, *, apart: bool = False) -> Raw:
        sealed = values.seal(raw)
        if len(sealed) <= values.INLINE_BYTES_MAX:
            return Raw(sealed)
        return Raw(values.blob_ref(hashlib.sha256(raw).hexdigest(), len(raw)))

    def blob(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)

    def is_new(self) -> bool:
        return len(self._stored) <= 2

    def now(self) -> int:
        return self._machine.state.at

    def new_id(self) -> str:
        return "0" * 32

    def emit(self, stream: str, raw: bytes, place: str, *, at_root: bool = False) -> None:
        """Ignore output, which is not compared."""

    def hold_other_input(self, location: str, entry: EntryId, asked: bytes, where: str) -> None:
        recorded = getattr(e.decode(self._stored[entry - 1].body), "input", e.NULL)
        self._beyond = self._diverged(location, format_call("", bytes(recorded)), format_call("", asked))

    def check(self, stopped: WeftError | None) -> None:
        """Check that the code requested nothing new and ended as recorded. Raises Diverged."""
        state = self._machine.state
        if stopped is not None:
            raise self._beyond or stopped
        if state.status in ("paused", "held"):
            return  # the code had not processed the last events, so nothing is recorded to compare with
        if self._beyond is not None:
            raise self._beyond
        recorded, replayed = self._recorded_end(), self._replayed_end()
        if recorded != replayed:
            raise self._diverged("its end", recorded, replayed)

    def _recorded_end(self) -> str:
        state = self._machine.state
        if state.status == "completed" or state.returned:
            return f"the result {bytes(state.output).decode()}"
        if state.cancelled is not None and state.ended:
            return "its cancellation"
        if state.failure is not None:
            return f"the failure {state.failure.type}: {state.failure.message}"
        return "that it continues"

    def _replayed_end(self) -> str:
        match self._ending:
            case c.CompleteRun(output=output):
                return f"the result {bytes(output).decode()}"
            case c.FailRun(failure=failure):
                return f"the failure {failure.type}: {failure.message}"
            case c.EndCancelled():
                return "its cancellation"
            case c.HoldRun(message=message) if self._machine.state.over:
                return f"to stop: {message}"
        return "that it continues"

    def _place(self, command: c.Asked) -> str:
        if isinstance(command, c.Ask):
            return location_key(command.scope, command.name, command.n)
        number = getattr(command, "entry", getattr(command, "wait", 0))
        entry = self._machine.state.entries.get(number)
        return entry.key if entry is not None else ""

    def _diverged(self, location: str, recorded: str, asked: str) -> Diverged:
        return Diverged(
            f"{self._machine.state.run_id}: at `{location}` it has recorded {recorded}, the code now asks for {asked}.",
            location=location,
            recorded=recorded,
            asked=asked,
        )
