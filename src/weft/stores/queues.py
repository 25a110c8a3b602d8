"""Choose the tasks to hand out when queues have priorities and limits. Pure; Postgres has the same rules in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.ports.tasks import QueueLimits

UNLIMITED = QueueLimits()
RankedTask = tuple[int, int]
"""The negated priority of a task's run, and the number of the task: those that sort first are handed out first."""


class WaitingTasks(Protocol):
    """The tasks that wait in a store, inside one transaction. Tasks have numbers; a lower number is older."""

    def free(self, queues: Sequence[str], most: int) -> Sequence[RankedTask]:
        """Return free tasks without a limit per key that are due in these queues: the first ``most``, or more."""
        ...

    def room(self, queue: str, limits: QueueLimits) -> int:
        """Return how many more tasks of a queue its limits allow now."""
        ...

    def hand_out(self, numbers: Sequence[int]) -> None:
        """Give these tasks to the host that asks."""
        ...

    def hand_out_keyed(self, only: Sequence[str] | None, never: Sequence[str], most: int) -> Sequence[int]:
        """Give the host tasks that have limits per key, within these limits. Returns their numbers.

        ``only``: the queues that they may be in (None for all). ``never``: the queues that they must not be in.
        """
        ...


class WantedTasks(msgspec.Struct, frozen=True):
    """What a host asks for."""

    queues: Sequence[str]
    """The queues that may have tasks without a limit per key."""
    keyed_queues: Sequence[str] | None
    """The queues for tasks with a limit per key; None for all."""
    most: int
    is_stream: bool = False
    """Whether they are published on streams: then only queues that are streams count, otherwise only the others."""


def take_tasks(waiting: WaitingTasks, wanted: WantedTasks, limits: Mapping[str, QueueLimits], turn: int) -> list[int]:
    """Hand out tasks: higher priority first, then older first, within the limits. Returns their numbers.

    Tasks with and without limits per key share what the host asks for. If it asks for one task, an even or odd ``turn``
    decides which of them comes first.
    """
    taken: list[int] = []
    for priority in sorted({0, *(one.priority for one in limits.values())}, reverse=True):
        left = wanted.most - len(taken)
        taken += _take_keyed(waiting, wanted, limits, priority, (left + turn % 2) // 2)
        taken += _take_plain(waiting, wanted, limits, priority, wanted.most - len(taken))
        taken += _take_keyed(waiting, wanted, limits, priority, wanted.most - len(taken))
        if len(taken) >= wanted.most:
            break
    return taken


def _take_plain(
    waiting: WaitingTasks, wanted: WantedTasks, limits: Mapping[str, QueueLimits], priority: int, most: int
) -> Sequence[int]:
    level = [
        queue
        for queue in wanted.queues
        if limits.get(queue, UNLIMITED).priority == priority and limits.get(queue, UNLIMITED).stream == wanted.is_stream
    ]
    if not level or most <= 0:
        return ()
    candidates = list(waiting.free([queue for queue in level if not limits.get(queue, UNLIMITED).is_limited], most))
    for queue in level:
        if limits.get(queue, UNLIMITED).is_limited:
            room_left = min(most, waiting.room(queue, limits[queue]))
            candidates += sorted(waiting.free([queue], room_left))[:room_left]
    picked = [number for _, number in sorted(candidates)[:most]]
    waiting.hand_out(picked)
    return picked


def _take_keyed(
    waiting: WaitingTasks, wanted: WantedTasks, limits: Mapping[str, QueueLimits], priority: int, most: int
) -> Sequence[int]:
    names = wanted.keyed_queues
    others = [queue for queue, one in limits.items() if one.is_limited or one.priority != priority]
    if priority == 0:
        only = names
    else:
        only = [queue for queue in limits if queue not in others and (names is None or queue in names)]
    taken: list[int] = []
    if most > 0 and not wanted.is_stream and (only is None or only):
        taken += waiting.hand_out_keyed(only, others, most)
    for queue, one in limits.items():
        if not one.is_limited or one.stream != wanted.is_stream:
            continue
        if one.priority == priority and (names is None or queue in names):
            left = min(most - len(taken), waiting.room(queue, one)) if most > len(taken) else 0
            taken += waiting.hand_out_keyed([queue], (), left) if left > 0 else ()
    return taken


def tasks_allowed(limits: QueueLimits, *, running: int, handed_out: int) -> int:
    """Return how many more tasks the limits allow. ``handed_out`` counts the tasks of the last ``limits.per_ms``."""
    rooms = []
    if limits.at_once is not None:
        rooms.append(limits.at_once - running)
    if limits.rate is not None:
        rooms.append(limits.rate - handed_out)
    return max(0, min(rooms))
