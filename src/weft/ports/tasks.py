"""Tasks for other processes, the limits of their queues, and the limits of steps and workflows per key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Epoch, HostId, Millis, RunUid

STEP_LIMIT = "step/"
"""The beginning of the name of a step's limit; the rest is the name of the step."""
WORKFLOW_LIMIT = "workflow/"
"""The beginning of the name of a workflow's limit."""
ADMITTED = HostId("-")
"""Stands for a host in the row of a run that was admitted. It sorts before the names of hosts.

The row belongs to the run, whichever host has the run.
"""
STREAM = HostId("stream")
"""Stands for a host in the row of a task that was published on a Redis stream, for workers in any language.

It never joins the store and is never dead: whoever publishes the tasks also notices that they are lost.
"""
STREAM_TASKS_MAX = 10_000
"""How many tasks of a queue are published at the same time. The rest wait as rows."""
RUN_TASK = 0
"""The number of the row with which a run waits for the limit of its workflow. Tasks have numbers from 1."""


class TaskOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A task that another process may perform: (run, task, attempt, delivery) is its identity."""

    uid: RunUid
    task: int
    attempt: int
    delivery: int
    step: str
    queue: str
    body: bytes
    """Everything that a worker needs, as JSON."""
    epoch: Epoch
    """The epoch of the run when the task was offered. The row is inserted only if the epoch is still the same."""
    not_before: Millis = Millis(0)
    limit: str = ""
    """The name of the limit against which the task counts; empty if there is none."""
    key: str = ""
    """The key under which the task counts."""
    unwanted: bool = False
    """Whether the task was withdrawn after a host had taken it. The row still counts until the host has stopped it."""


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue over all hosts. None means no limit."""

    concurrency: int | None = None
    """How many tasks may be taken at the same time."""
    rate: int | None = None
    """How many tasks may be handed out in any period of ``per_ms``."""
    per_ms: int = 1_000
    priority: int = 0
    """Tasks of a queue with a higher priority are handed out first."""
    stream: bool = False
    """Whether workers on a Redis stream perform its tasks. Then only ``STREAM`` takes them."""

    @property
    def is_limited(self) -> bool:
        """Return whether the queue has a limit, so that its tasks must be counted."""
        return self.at_once is not None or self.rate is not None

    @property
    def at_once(self) -> int | None:
        """Return how many tasks may be taken at the same time. A stream always has a limit."""
        if not self.stream:
            return self.concurrency
        return STREAM_TASKS_MAX if self.concurrency is None else min(self.concurrency, STREAM_TASKS_MAX)

    @property
    def is_plain(self) -> bool:
        """Return whether the queue has neither limits nor a priority, and is no stream."""
        return not self.is_limited and not self.priority


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as people see it: how many tasks wait, and how many are taken."""

    queue: str
    waiting: int
    running: int
    limits: QueueLimits
    since: Millis | None = None
    """Since when the oldest of the waiting tasks has waited; None if none waits."""


class KeyLimit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limit of a step or workflow over all hosts. It holds for each key separately. None means no limit."""

    concurrency: int | None = None
    """How many tasks or runs of a key may be under way at the same time."""
    rate: int | None = None
    """How many tasks or runs of a key may begin in any period of ``per_ms``."""
    per_ms: int = 1_000
    key: str = ""
    """The key as a CEL expression over the input. If it is empty, there is one key for all."""
    by_code: bool = False
    """Whether the key is a function in the code of the hosts."""
    defaults: Mapping[str, object] = {}
    """The defaults of parameters, which the key may read."""


class LimitedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a limit as people see it."""

    limit: str
    key: str
    waiting: int
    running: int
    since: Millis | None = None
    """Since when the oldest of those that wait has waited; None if none waits."""


class TaskStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task that waits stands: among those of its key or, without a limit per key, among those of its queue."""

    running: int
    """How many are under way."""
    ahead: int
    """How many wait and were offered before it."""
    runs: Sequence[str] = ()
    """The ids of some of the runs that have those: first of those under way, then of those ahead."""


STANDING_RUNS = 3
"""How many runs a standing names."""


class Exchanged(msgspec.Struct, frozen=True):
    """What came of an exchange of tasks."""

    taken: Sequence[TaskOffer] = ()
    """The offered tasks that the host has now."""
    is_ready: bool = False
    """Whether tasks wait that somebody may be able to take now. Those that wait for a rate are no reason to ask."""


class KeyLimits(Protocol):
    """The limits of steps and workflows. They are judged in the transaction that hands out a task or admits a run.

    A row that is taken is the permit itself: when it is removed, for whatever reason, its place is free. A task that is
    withdrawn, or whose run ends, keeps its place until the host that has taken it has stopped it. Keys for which
    somebody waits have turns, so that a key with many tasks does not delay a key with few.
    """

    async def declare(self, limits: Mapping[str, KeyLimit | None]) -> None:
        """Set the limits with these names, from now on and for all hosts. None removes a limit."""
        ...

    async def declared(self) -> Mapping[str, KeyLimit]:
        """Return all limits by name."""
        ...

    async def finish(self, host: HostId, tasks: Sequence[TaskOffer]) -> None:
        """Remove rows that this host has taken: it has given the results to their runs itself, or has stopped them."""
        ...

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        """``finish`` and ``offer`` in one transaction, and take what was offered if it may begin at once.

        Taken are those of the first ``most`` offered tasks that have a limit per key, for which it has room, and for
        whose key nobody waits. Tasks in queues that have limits or a priority of their own are not taken.
        """
        ...

    async def admit(self, host: HostId, run: TaskOffer, now: Millis) -> bool:
        """Let a run begin that ``host`` owns and that has no events. Returns whether it may.

        Otherwise the run has lost its owner when this returns, and waits until ``admit_waiting`` lets it begin. Returns
        False also if the run is not in the epoch of the offer.
        """
        ...

    async def admit_waiting(self, now: Millis, *, limit: int) -> int:
        """Let runs begin that wait for the limits of their workflows, as many as those allow. Returns how many.

        Any host may claim them then.
        """
        ...

    async def next_turn(self, now: Millis) -> Millis | None:
        """Return the earliest time after now at which a rate lets a task or run begin that waits for it."""
        ...

    async def standing(self, uid: RunUid, task: int) -> TaskStanding | None:
        """Return where a task stands that waits; None if it does not wait."""
        ...

    async def limited_keys(self, *, limit: int) -> Sequence[LimitedKey]:
        """Return the keys that have tasks or runs: those with the most waiting first, then by name."""
        ...
