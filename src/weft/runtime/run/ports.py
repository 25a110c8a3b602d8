"""The parts of the host that a run in memory may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Raw

from weft.core.effects import AnyEffect, PerformTask
from weft.core.goal.definitions import StepDef
from weft.core.ids import EntryId, HostId, RunUid, Seq
from weft.core.ledger import BudgetWindow
from weft.core.run.env import MissingInputs
from weft.core.run.state import State
from weft.ports.clock import Clock
from weft.ports.hot import HotRuns
from weft.ports.new_run import NewRun
from weft.ports.store import Mail, Outcome, StoredEvent
from weft.ports.streams import NewChunk
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.hooks import HookTable
from weft.runtime.programs import AnyProgram
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.run.log_reading import LogReading
from weft.runtime.values import OpenedValues, ValueStore
from weft.runtime.worker.flight import Flight

ACCEPTED = Outcome.ACCEPTED
"""The outcome of nearly every append. Looking up the member of an enum each time would be slow."""
EXISTS = b"true"
"""Among the fetched inputs of a decision: there is a run with this id."""


def run_key(run_id: str) -> str:
    """Return the name of the fetched input that says whether a run exists. Blobs have their digests for names."""
    return f"run/{run_id}"


class CountsStalls(Protocol):
    """Counts how often the loop of this host was blocked."""

    stalls: int


class Fetching(Protocol):
    """Fetches the inputs of a decision into memory, and then lets the run continue."""

    def fetch(self, actor: Any, missing: MissingInputs) -> None: ...

    def fetch_blobs(self, actor: Any, digests: set[str]) -> None: ...

    def read_log(self, actor: Any, reading: LogReading) -> None: ...

    def read_inputs(self, actor: Any, reading: LogReading, missing: MissingInputs) -> None: ...

    def replay(self, actor: Any, reading: LogReading, versions: Sequence[str]) -> None: ...

    async def run_id(self, uid: RunUid) -> str:
        """Return the id of a run; its uid if there is no such run any more."""
        ...


class StoresMemos(Protocol):
    """Stores the results of cached steps."""

    @property
    def expected(self) -> Container[RunUid]:
        """The runs that have such steps in flight."""
        ...

    def on_committed(self, actor: Any, draft: Draft) -> None:
        """Store the results in a draft of such a run that was just committed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPorts:
    """The host as one run sees it. A run passes itself to callables that take an actor.

    Those that every step needs are read into a local variable and then called, because Python looks for a method of
    the class first where an attribute is called directly, which costs as much as a small function.
    """

    host: HostId
    tolerant: bool
    """Whether a divergence in arguments is only logged."""
    short_path: bool
    """Whether plain steps of code bypass the decide and evolve tables."""
    clock: Clock
    heartbeat: CountsStalls
    new_id: Callable[[], str]
    values: ValueStore
    opened: OpenedValues
    program: Callable[[str, str], AnyProgram | None]
    """Returns the program of a workflow and version, if there is one."""
    planned_step: Callable[[str], StepDef | None]
    """Returns a step that goals are planned with. Nodes of graphs may name it too."""
    hooks: HookTable
    """The hooks that are told of events."""
    hot: HotRuns | None
    """The runs whose appends may be acknowledged before they are in the durable store, if the store has such."""
    read_event: Callable[[RunUid, Seq], Awaitable[StoredEvent]]
    background: BackgroundTasks
    fetching: Fetching

    check_child: Callable[[State, str, Raw], None]
    """Check whether this run may start a child run. Raises LimitExceeded, RunCancelled, NotAllowed."""
    check_result: Callable[[str, bytes], None]
    """Check a result that a person gives, as JSON, against the type of its step. Raises BadValue."""
    patches_max: int
    """How many patches a run can have."""
    on_child: Callable[[str, str], None]
    """Record that a run below this root was started."""

    on_ready: Callable[[Any], None]
    """Give the run a turn, because its mailbox has commands."""
    on_misplaced: Callable[[Any], None]
    """Let the run leave this host, which does not have its version."""
    submit: Callable[[Any], None]
    """Commit the drafts of the run."""
    apply_effect: Callable[[Any, AnyEffect], None]
    dispatch: Callable[[Any, PerformTask], None]
    """Apply the most frequent effect: give a task to a worker."""
    arm_again: Callable[[Any, EntryId], None]
    memos: StoresMemos
    post_local: Callable[[Mail], None]
    deliver: Callable[[RunUid, PendingCommand], None]
    """Give a command to another run, wherever it is."""
    adopt: Callable[[NewRun], None]
    publish: Callable[[Any, Draft], None]
    answered: Callable[[Flight], None]
    emit: Callable[[NewChunk], None]

    windows: Callable[[State, PerformTask | None], Sequence[BudgetWindow]]
    """Returns the windows of time that a call of a run spends from, by the limits of the policy."""
    on_refused: Callable[[Any, Draft, Outcome], None]
    on_unknown: Callable[[Any, Draft, Exception, bool], None]
    set_aside: Callable[[Any, BaseException], Coroutine[Any, Any, None]]
    """Hold this run for a person."""
