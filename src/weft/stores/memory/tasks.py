"""The task queue in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import Mail, QueueLimits, QueueRow, TaskOffer
from weft.stores.judge import is_current
from weft.stores.memory.content import MemoryContent, OfferedTask, TaskKey
from weft.stores.queues import UNLIMITED, pick_tasks, room


class MemoryTasks:
    """The task queue of a memory store. Dicts keep their order, so the first row is the oldest."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        for task in tasks:
            run = self._content.runs.get(task.uid)
            if run is not None and run.owner is not None and is_current(run, task.epoch):
                self._content.tasks.setdefault(_key(task), OfferedTask(task))

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        rows = list(self._content.tasks.values())
        if queues is None:
            queues = list(dict.fromkeys(row.offer.queue for row in rows))

        def free(names: Sequence[str], most: int) -> Sequence[int]:
            found = (
                number
                for number, row in enumerate(rows)
                if row.host is None
                and row.offer.queue in names
                and row.offer.step in steps
                and row.offer.not_before <= now
                and row.offer.uid in self._content.open
            )
            return list(islice(found, most))

        def queue_room(queue: str, limits: QueueLimits) -> int:
            return self._room(queue, limits, now)

        picked = pick_tasks(queues, self._content.limits, limit, free, queue_room)
        for number in picked:
            row = rows[number]
            row.host = host
            if self._content.limits.get(row.offer.queue, UNLIMITED).rate is not None:
                self._content.handed_out.setdefault(row.offer.queue, []).append(now)
        return [rows[number].offer for number in sorted(picked)]

    def _room(self, queue: str, limits: QueueLimits, now: Millis) -> int:
        running = sum(1 for row in self._content.tasks.values() if row.host is not None and row.offer.queue == queue)
        recent = [at for at in self._content.handed_out.get(queue, ()) if at > now - limits.per_ms]
        self._content.handed_out[queue] = recent
        return room(limits, running=running, handed_out=len(recent))

    async def taken_by(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = self._content.tasks.values()
        return [(row.host, row.offer) for row in rows if row.host is not None and row.host in hosts][:limit]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [row.offer for row in self._content.tasks.values() if row.offer.uid == uid]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        if not self._has_taken(host, task):
            return False
        del self._content.tasks[_key(task)]
        self._content.deliver(report)
        return True

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        unwanted = set(tasks)
        for key in [key for key in self._content.tasks if key[0] == uid and key[1] in unwanted]:
            del self._content.tasks[key]

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        if limits is None:
            self._content.limits.pop(queue, None)
        else:
            self._content.limits[queue] = limits

    async def limits(self) -> Mapping[str, QueueLimits]:
        return dict(self._content.limits)

    async def queues(self) -> Sequence[QueueRow]:
        known = {row.offer.queue for row in self._content.tasks.values()} | self._content.limits.keys()
        rows = self._content.tasks.values()
        return [
            QueueRow(
                queue=queue,
                waiting=sum(1 for row in rows if row.offer.queue == queue and row.host is None),
                running=sum(1 for row in rows if row.offer.queue == queue and row.host is not None),
                limits=self._content.limits.get(queue, UNLIMITED),
            )
            for queue in sorted(known)
        ]

    def _has_taken(self, host: HostId, task: TaskOffer) -> bool:
        row = self._content.tasks.get(_key(task))
        return row is not None and row.host == host


def _key(task: TaskOffer) -> TaskKey:
    return task.uid, task.task, task.attempt, task.delivery
