"""The whole log of a run in memory, for the rare decisions that need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from weft.core import values
from weft.core.commands import AnyCommand, PatchRun, RetryRun, SetResult
from weft.core.ids import Seq
from weft.core.machine import Machine
from weft.core.run.env import Env, MissingInputs, PastEvent
from weft.errors import NotFound, WeftError
from weft.runtime.run.draft import PendingCommand

WITH_INPUTS = (PatchRun, RetryRun, SetResult)
"""The commands that may have to wait for their inputs."""


class LogReading:
    """The events up to ``seq``, read from the store, and those that the run has recorded since."""

    __slots__ = ("blobs", "events", "replaying", "reports", "seq", "tail", "unknown", "waiting")

    def __init__(self, seq: Seq) -> None:
        self.seq = seq
        self.events: list[PastEvent] | None = None
        """None until they are read."""
        self.tail: list[PastEvent] = []
        self.waiting: list[PendingCommand] = []
        """The commands that wait for the log, or for other inputs."""
        self.blobs: dict[str, bytes | WeftError] = {}
        """Blobs that a waiting command needs, or why they cannot be read."""
        self.unknown: set[str] = set()
        """Versions that a waiting command names and that are not in the store."""
        self.replaying = False
        """The log is being replayed. The run stands still meanwhile."""
        self.reports: dict[str, tuple[int, bytes]] = {}
        """What replays found, by version, and up to which event."""

    def all(self) -> Sequence[PastEvent] | None:
        """Return all events up to now, or None if they are still being read."""
        return None if self.events is None else [*self.events, *self.tail]


class ReadingRun(Protocol):
    """A run that may wait for its log."""

    machine: Machine
    mailbox: list[PendingCommand]
    ports: Any
    reading: LogReading | None
    fetching: bool

    def env(self) -> Env: ...

    def schedule(self) -> None: ...

    def proceed(self, *, after_mail: bool = False) -> None: ...


def needs_log(machine: Machine, command: AnyCommand) -> bool:
    """Return whether a command is decided with the whole log of a run: some patches, and a way back."""
    return isinstance(command, PatchRun | RetryRun) and machine.style.needs_log(command)


def _needs_inputs(machine: Machine, command: AnyCommand) -> bool:
    """Return whether a command may need the log, or a large result that a person gives."""
    return needs_log(machine, command) or (isinstance(command, SetResult) and values.is_ref(bytes(command.output)))


def read_log(run: ReadingRun) -> LogReading:
    """Begin to read the log, unless that has begun. The run continues when it is read."""
    if run.reading is None:
        run.reading = LogReading(Seq(run.machine.state.seq))
        run.ports.fetching.read_log(run, run.reading)
    return run.reading


def fetch_missing(run: ReadingRun, missing: MissingInputs) -> None:
    """Fetch what the next decision of a run needs. A patch that waits is judged before the run goes on."""
    if missing.log:
        read_log(run)
    elif missing.replays:
        assert run.reading is not None, "the log is read first"
        run.reading.replaying = True
        run.ports.fetching.replay(run, run.reading, missing.replays)
    elif not run.fetching:
        run.fetching = True
        run.ports.fetching.fetch(run, missing)


def wait_for_inputs(run: ReadingRun, posted: PendingCommand) -> bool:
    """Return whether a command must wait until its inputs are read. Unless it is mail, the run continues meanwhile.

    The log of a code run has been replayed before, and the run must not go on since.
    """
    if not _needs_inputs(run.machine, posted.command):
        return False
    reading = read_log(run)
    if reading.events is not None:
        missing = _missing_inputs(run, reading, posted.command)
        if missing is None:
            return False
        run.ports.fetching.read_inputs(run, reading, missing)
    reading.waiting.append(posted)
    return True


def awaits_mailed_patch(run: ReadingRun) -> bool:
    """Return whether the run must wait for a patch that came as mail, or while its log is replayed for a patch.

    If it went on and ended first, its end would be refused because of this mail, again and again.
    """
    reading = run.reading
    return reading is not None and (reading.replaying or any(posted.mail_id for posted in reading.waiting))


def _missing_inputs(run: ReadingRun, reading: LogReading, command: AnyCommand) -> MissingInputs | None:
    """Return the blobs, scripts and versions that a command still needs."""
    try:
        run.machine.decide(command, run.env())
    except MissingInputs as missing:
        new = [version for version in missing.versions if version not in reading.unknown]
        return missing if missing.blobs or missing.questions or new else None
    except WeftError:
        return None  # the decision says so
    return None


def refusal_error(run_id: str, problem: WeftError | MissingInputs) -> WeftError:
    """Return why a command is refused: the error, or that it names a version that is not in the store."""
    if isinstance(problem, WeftError):
        return problem
    if not problem.versions:
        raise problem
    names = ", ".join(problem.versions)
    return NotFound(f"{run_id} cannot follow {names}: this version is not in the store.", hint="Send the patch again.")


def on_log_read(run: ReadingRun) -> None:
    """Decide the commands that waited for the log."""
    if run.reading is not None:
        run.mailbox[:0] = run.reading.waiting
        run.reading.waiting.clear()
        run.schedule()
        run.proceed(after_mail=True)


def replay_report(run: ReadingRun, version: str) -> bytes | None:
    """Return what the replay of the log up to now found; None if it has to be replayed first."""
    seq, found = run.reading.reports.get(version, (-1, None)) if run.reading is not None else (-1, None)
    return found if seq == run.machine.state.seq else None


def no_patch_waits(run: ReadingRun) -> bool:
    """Return whether no patch waits for the log. Then the log is forgotten."""
    forget_log(run)
    return run.reading is None or not run.reading.waiting


def forget_log(run: ReadingRun) -> None:
    """Forget the log unless another command needs it, or a patch that is to be judged again."""
    reading = run.reading
    if reading is None or reading.events is None or reading.waiting or run.machine.tries():
        return
    if not any(_needs_inputs(run.machine, posted.command) for posted in run.mailbox):
        run.reading = None
