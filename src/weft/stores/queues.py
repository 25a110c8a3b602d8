"""Which tasks are handed out, when queues have priorities and limits. Pure; Postgres says the same in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ports.store import Limits

NONE = Limits()

Free = Callable[[Sequence[str], int], Sequence[int]]
"""Numbers of tasks of these queues that are free and due, oldest first, at most so many."""
Room = Callable[[str, Limits], int]
"""How many more tasks of a queue with limits may be in hands now."""


def pick(queues: Sequence[str], limits: Mapping[str, Limits], most: int, free: Free, room: Room) -> Sequence[int]:
    """Tasks to hand out: of queues of higher priority first, then the oldest, no more than limits allow."""
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


def room(limits: Limits, *, in_hands: int, handed_out: int) -> int:
    """How many more a queue allows: ``in_hands`` now, ``handed_out`` within the stretch of its rate."""
    rooms = []
    if limits.concurrency is not None:
        rooms.append(limits.concurrency - in_hands)
    if limits.rate is not None:
        rooms.append(limits.rate - handed_out)
    return max(0, min(rooms))
