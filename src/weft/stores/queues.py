"""Choose the tasks to hand out when queues have priorities and limits. Pure; Postgres has the same rules in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ports.store import QueueLimits

UNLIMITED = QueueLimits()

Free = Callable[[Sequence[str], int], Sequence[int]]
"""Returns the numbers of free tasks that are due in these queues, oldest first, up to a maximum."""
Room = Callable[[str, QueueLimits], int]
"""Returns how many more tasks of a queue its limits allow now."""


def pick_tasks(
    queues: Sequence[str], limits: Mapping[str, QueueLimits], most: int, free: Free, room: Room
) -> Sequence[int]:
    """Choose tasks to hand out: higher priority first, then older first, within the limits."""
    picked: list[int] = []
    limits_of = {queue: limits.get(queue, UNLIMITED) for queue in queues}
    for priority in sorted({one.priority for one in limits_of.values()}, reverse=True):
        left = most - len(picked)
        level = [queue for queue, one in limits_of.items() if one.priority == priority]
        candidates = list(free([queue for queue in level if not limits_of[queue].is_limited], left))
        for queue in level:
            if limits_of[queue].is_limited:
                candidates += free([queue], min(left, room(queue, limits_of[queue])))
        picked += sorted(candidates)[:left]
        if len(picked) >= most:
            break
    return picked


def room(limits: QueueLimits, *, running: int, handed_out: int) -> int:
    """Return how many more tasks the limits allow. ``handed_out`` counts the tasks of the last ``limits.per_ms``."""
    rooms = []
    if limits.concurrency is not None:
        rooms.append(limits.concurrency - running)
    if limits.rate is not None:
        rooms.append(limits.rate - handed_out)
    return max(0, min(rooms))
