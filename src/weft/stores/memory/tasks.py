"""The task queue in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from weft.core.ids import HostId, Millis, RunUid
from weft.ports.store import NEVER, Mail
from weft.ports.tasks import (
    RUN_TASK,
    STANDING_RUNS,
    STEP_LIMIT,
    STREAM,
    Exchanged,
    KeyLimit,
    LimitedKey,
    QueueLimits,
    QueueRow,
    TaskOffer,
    TaskStanding,
)
from weft.stores.judge import is_current
from weft.stores.key_turns import Key, KeyAdmission, give_turns
from weft.stores.memory.content import MemoryContent, OfferedTask, task_key
from weft.stores.memory.keys import MemoryKeys, admit_run, admit_runs, limited_keys
from weft.stores.queues import UNLIMITED, RankedTask, WantedTasks, take_tasks, tasks_allowed


class MemoryTasks:
    """The task queue of a memory store. Dicts keep their order, so the first row is the oldest."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def offer(self, tasks: Sequence[TaskOffer]) -> None:
        for task in tasks:
            if self._insert_task(task) is not None and task.limit:
                self._content.ready_keys.setdefault(Key(task.limit, task.key), Millis(0))

    def _insert_task(self, task: TaskOffer) -> OfferedTask | None:
        """Insert the row of a task; None if there is one, or if its run is in another epoch."""
        content, place = self._content, task_key(task)
        run = content.runs.get(task.uid)
        if run is None or run.owner is None or not is_current(run, task.epoch) or place in content.tasks:
            return None
        row = content.tasks[place] = OfferedTask(task)
        return row

    async def take(
        self, host: HostId, *, queues: Sequence[str] | None, steps: Sequence[str] | None, now: Millis, limit: int
    ) -> Sequence[TaskOffer]:
        waiting = _MemoryWaiting(self._content, host, steps, now)
        names = list(dict.fromkeys(row.offer.queue for row in waiting.rows)) if queues is None else list(queues)
        wanted = WantedTasks(names, None if queues is None else names, limit, host == STREAM)
        taken = take_tasks(waiting, wanted, self._content.limits, now)
        return [waiting.rows[number].offer for number in sorted(taken)]

    async def taken_by(
        self, hosts: Sequence[HostId], *, limit: int, with_body: bool = True
    ) -> Sequence[tuple[HostId, TaskOffer]]:
        rows = (*self._content.tasks.values(), *self._content.unwanted)
        taken = [(row.host, row.offer) for row in rows if row.host is not None and row.host in hosts][:limit]
        return taken if with_body else [(host, msgspec.structs.replace(offer, body=b"")) for host, offer in taken]

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return [row.offer for row in self._content.tasks.values() if row.offer.uid == uid and _is_task(row)]

    async def settle(self, host: HostId, task: TaskOffer, report: Mail) -> bool:
        if not self._content.finish_task(host, task_key(task)):
            return False
        self._content.deliver(report)
        return True

    async def finish(self, host: HostId, tasks: Sequence[TaskOffer]) -> None:
        for task in tasks:
            self._content.finish_task(host, task_key(task))

    async def exchange(
        self, host: HostId, finished: Sequence[TaskOffer], offered: Sequence[TaskOffer], *, now: Millis, most: int
    ) -> Exchanged:
        content = self._content
        await self.finish(host, finished)
        rows = [*content.tasks.values(), *content.unwanted]
        admission = KeyAdmission(MemoryKeys(content, rows, lambda _: True, lambda _: True, now), now)
        taken, has_plain = [], False
        for place, task in enumerate(offered):
            row = self._insert_task(task)
            may_begin = place < most and task.not_before <= now and _is_plain(content.limits.get(task.queue))
            if row is None or not task.limit:
                has_plain = has_plain or row is not None
            elif admission.admit(Key(task.limit, task.key), may_begin=may_begin):
                row.host = host
                taken.append(task)
            else:
                content.ready_keys.setdefault(Key(task.limit, task.key), Millis(0))
        admission.end()
        touched = {Key(task.limit, task.key) for task in (*finished, *offered) if task.limit}
        is_ready = has_plain or any(content.ready_keys.get(key, NEVER) <= now for key in touched)
        return Exchanged(taken, is_ready)

    async def withdraw(self, uid: RunUid, tasks: Sequence[int]) -> None:
        unwanted = set(tasks)
        for key in [key for key in self._content.tasks if key[0] == uid and key[1] in unwanted]:
            self._content.withdraw_task(key)

    async def limit(self, queue: str, limits: QueueLimits | None) -> None:
        if limits is None:
            self._content.limits.pop(queue, None)
        else:
            self._content.limits[queue] = limits

    async def limits(self) -> Mapping[str, QueueLimits]:
        return dict(self._content.limits)

    async def queues(self) -> Sequence[QueueRow]:
        rows = [row for row in (*self._content.tasks.values(), *self._content.unwanted) if _is_task(row)]
        known = {row.offer.queue for row in rows} | self._content.limits.keys()
        return [
            QueueRow(
                queue=queue,
                waiting=sum(1 for row in rows if row.offer.queue == queue and row.host is None),
                running=sum(1 for row in rows if row.offer.queue == queue and row.host is not None),
                limits=self._content.limits.get(queue, UNLIMITED),
                since=min((row.since for row in rows if row.offer.queue == queue and row.host is None), default=None),
            )
            for queue in sorted(known)
        ]

    async def declare(self, limits: Mapping[str, KeyLimit | None]) -> None:
        content = self._content
        for name, limit in limits.items():
            if limit is None:
                content.key_limits.pop(name, None)
            else:
                content.key_limits[name] = limit
        for row in content.tasks.values():
            if row.host is None and row.offer.limit in limits:
                content.ready_keys[Key(row.offer.limit, row.offer.key)] = Millis(0)

    async def declared(self) -> Mapping[str, KeyLimit]:
        return dict(self._content.key_limits)

    async def admit(self, host: HostId, run: TaskOffer, now: Millis) -> bool:
        return admit_run(self._content, host, run, now)

    async def admit_waiting(self, now: Millis, *, limit: int) -> int:
        return admit_runs(self._content, now, limit)

    async def next_turn(self, now: Millis) -> Millis | None:
        return min((at for at in self._content.ready_keys.values() if at > now), default=None)

    async def standing(self, uid: RunUid, task: int) -> TaskStanding | None:
        content = self._content
        rows = [*content.tasks.values(), *content.unwanted]
        own = next((row for row in rows if (row.offer.uid, row.offer.task) == (uid, task) and row.host is None), None)
        if own is None:
            return None
        offer = own.offer
        alike = [
            row
            for row in rows
            if (row.offer.limit, row.offer.key) == (offer.limit, offer.key)
            and (offer.limit or (row.offer.queue == offer.queue and _is_task(row)))
        ]
        running = [row for row in alike if row.host is not None]
        waiting = [row for row in alike if row.host is None]
        ahead = waiting[: waiting.index(own)]
        runs = [str(content.runs[row.offer.uid].id) for row in (*running, *ahead)[:STANDING_RUNS]]
        return TaskStanding(running=len(running), ahead=len(ahead), runs=runs)

    async def limited_keys(self, *, limit: int) -> Sequence[LimitedKey]:
        return limited_keys(self._content)[:limit]


class _MemoryWaiting:
    """The tasks that wait, for one call of ``take``."""

    def __init__(self, content: MemoryContent, host: HostId, steps: Sequence[str] | None, now: Millis) -> None:
        self.rows = [*content.tasks.values(), *content.unwanted]
        self._content = content
        self._host = host
        self._steps = steps
        self._now = now

    def free(self, queues: Sequence[str], most: int) -> Sequence[RankedTask]:
        found = (
            (-self._content.runs[row.offer.uid].new.priority, number)
            for number, row in enumerate(self.rows)
            if not row.offer.limit and row.offer.queue in queues and self._may_take(row)
        )
        return sorted(found)[:most]

    def _may_take(self, row: OfferedTask) -> bool:
        offer = row.offer
        return (
            row.host is None
            and (self._steps is None or offer.step in self._steps)
            and offer.not_before <= self._now
            and offer.uid in self._content.open
        )

    def room(self, queue: str, limits: QueueLimits) -> int:
        content = self._content
        running = sum(1 for row in content.tasks.values() if row.host is not None and row.offer.queue == queue)
        recent = [at for at in content.handed_out.get(queue, ()) if at > self._now - limits.per_ms]
        content.handed_out[queue] = recent
        return tasks_allowed(limits, running=running, handed_out=len(recent))

    def hand_out(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            row = self.rows[number]
            row.host = self._host
            if self._content.limits.get(row.offer.queue, UNLIMITED).rate is not None:
                self._content.handed_out.setdefault(row.offer.queue, []).append(self._now)

    def hand_out_keyed(self, only: Sequence[str] | None, never: Sequence[str], most: int) -> Sequence[int]:
        if not self._content.ready_keys:
            return ()

        def may_take(row: OfferedTask) -> bool:
            queue = row.offer.queue
            return self._may_take(row) and (only is None or queue in only) and queue not in never

        names = None if self._steps is None else {f"{STEP_LIMIT}{step}" for step in self._steps}

        def may_serve(limit: str) -> bool:
            return limit.startswith(STEP_LIMIT) if names is None else limit in names

        table = MemoryKeys(self._content, self.rows, may_take, may_serve, self._now)
        give_turns(table, most, self._now)
        self.hand_out(table.taken)
        return table.taken


def _is_plain(limits: QueueLimits | None) -> bool:
    return limits is None or limits.is_plain


def _is_task(row: OfferedTask) -> bool:
    return row.offer.task != RUN_TASK
