"""The task queue in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import Mail, TaskOffer
from weft.stores.memory.content import Content, Task, TaskKey


class MemoryTasks:
    """The task queue of a memory store. Dicts keep their order, so the first row is the oldest."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        for task in tasks:
            run = self._content.open.get(task.uid)
            if run is not None and run.epoch == task.epoch:
                self._content.tasks.setdefault(_key(task), Task(task))

    async def take(
        self, host: HostId, *, queues: Sequence[str], steps: Sequence[str], now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        taken: list[TaskOffer] = []
        for row in self._content.tasks.values():
            if len(taken) == limit:
                break
            offer = row.offer
            wanted = offer.queue in queues and offer.step in steps and offer.uid in self._content.open
            if row.host is None and wanted and offer.not_before <= now:
                row.host = host
                taken.append(offer)
        return taken

    async def held(self, hosts: Sequence[HostId], *, limit: int) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = self._content.tasks.values()
        return [(row.host, row.offer) for row in rows if row.host is not None and row.host in hosts][:limit]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [row.offer for row in self._content.tasks.values() if row.offer.uid == uid]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        if not self._is_held(host, task):
            return False
        del self._content.tasks[_key(task)]
        self._content.deliver(report)
        return True

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        unwanted = set(tasks)
        for key in [key for key in self._content.tasks if key[0] == uid and key[1] in unwanted]:
            del self._content.tasks[key]

    def _is_held(self, host: HostId, task: TaskOffer) -> bool:
        row = self._content.tasks.get(_key(task))
        return row is not None and row.host == host


def _key(task: TaskOffer) -> TaskKey:
    return task.uid, task.task, task.attempt, task.delivery
