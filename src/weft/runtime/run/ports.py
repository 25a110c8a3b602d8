"""What a run in memory may use of its host, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from weft.core.effects import AnyEffect
from weft.core.ids import EntryId, HostId, RunUid, Seq
from weft.core.run.env import MissingInputs
from weft.core.run.state import State
from weft.ports.clock import Clock
from weft.ports.store import Mail, NewRun, Outcome, StoredEvent
from weft.ports.streams import NewChunk
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.programs import AnyProgram
from weft.runtime.run.draft import Draft
from weft.runtime.values import OpenedValues, ValueStore
from weft.runtime.worker.flight import Flight


class CountsStalls(Protocol):
    """Counts how often the loop of this host stood still."""

    stalls: int


class Fetching(Protocol):
    """Brings what a decision needs into memory, and then lets the run continue."""

    def fetch(self, actor: Any, missing: MissingInputs) -> None: ...

    def fetch_blobs(self, actor: Any, digests: set[str]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPorts:
    """The host as one run sees it. Callables that take an actor are given the one that calls."""

    host: HostId
    tolerant: bool
    """Divergence in arguments is only reported."""
    short_path: bool
    """Plain steps of code do without the tables."""
    clock: Clock
    heartbeat: CountsStalls
    new_id: Callable[[], str]
    values: ValueStore
    opened: OpenedValues
    program: Callable[[str, str], AnyProgram | None]
    """By workflow and version."""
    read_event: Callable[[RunUid, Seq], Awaitable[StoredEvent]]
    background: BackgroundTasks
    fetching: Fetching

    check_child: Callable[[State], None]
    """Refuse another child of this run. Raises LimitExceeded, RunCancelled."""
    on_child: Callable[[str, str], None]
    """A run below this root was started."""

    on_ready: Callable[[Any], None]
    """The run has something in its mailbox."""
    submit: Callable[[Any], None]
    """The run has something to commit."""
    apply_effect: Callable[[Any, AnyEffect], None]
    arm_again: Callable[[Any, EntryId], None]
    remember: Callable[[Any, Draft], None]
    """Keep the results of cached steps among what was just committed."""
    post_local: Callable[[Mail], None]
    adopt: Callable[[NewRun], None]
    publish: Callable[[Any, Draft], None]
    answered: Callable[[Flight], None]
    emit: Callable[[NewChunk], None]

    on_refused: Callable[[Any, Draft, Outcome], None]
    on_unknown: Callable[[Any, Draft, Exception, bool], None]
    set_aside: Callable[[Any, BaseException], Coroutine[Any, Any, None]]
    """Stop this run for a person."""
