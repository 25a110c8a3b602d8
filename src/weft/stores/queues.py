"""Choose the tasks to hand out when queues have priorities and limits. Pure; Postgres has the same rules in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ports.store import QueueLimits

NONE = QueueLimits()

Free = Callable[[Sequence[str], int], Sequence[int]]
"""Returns numbers of free, due tasks of these queues, oldest first, at most this many."""
Room = Callable[[str, QueueLimits], int]
"""Returns how many more tasks of a queue its limits allow now."""


def pick(queues: Sequence[str], limits: Mapping[str, QueueLimits], most: int, free: Free, room: Room) -> Sequence[int]:
    """Choose tasks to hand out: higher priority first, then older first, within the limits."""
    taken: list[int] = []
    of = {queue: limits.get(queue, NONE) for queue in queues}
    for priority in sorted({one.priority for one in of.values()}, reverse=True):
        left = most - len(taken)
        level = [queue for queue, one in of.items() if one.priority == priority]
        picked = list(free([queue for queue in level if not of[queue].bound], left))
        for queue in level:
            if of[queue].bound:
                picked += free([queue], min(left, room(queue, of[queue])))
        taken += sorted(picked)[:left]
        if len(taken) >= most:
            break
    return taken


def room(limits: QueueLimits, *, in_hands: int, handed_out: int) -> int:
    """Return how many more tasks the limits allow; ``handed_out`` counts those of the period of the rate."""
    rooms = []
    if limits.concurrency is not None:
        rooms.append(limits.concurrency - in_hands)
    if limits.rate is not None:
        rooms.append(limits.rate - handed_out)
    return max(0, min(rooms))
