"""Why no worker performs a task that has a row: the limit of its key or of its queue, and who is ahead of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.core.durations import format_ms
from weft.core.ids import Millis
from weft.core.run.state import OpenTask
from weft.observe.diagnosis import IdleTask
from weft.observe.limit_views import describe_standing
from weft.ports.memos import Memos
from weft.ports.tasks import STEP_LIMIT, QueueLimits, TaskOffer
from weft.runtime.held_models import MODEL_QUEUE, hold_of
from weft.runtime.service import RunService


async def idle_task(service: RunService, offer: TaskOffer) -> IdleTask:
    """Describe a task that waits in the shared queue. A tenant is not told which runs are ahead of it, or how many."""
    tasks = service.whole_store.tasks
    limits = (await tasks.declared()).get(offer.limit) if offer.limit else (await tasks.limits()).get(offer.queue)
    standing = ""
    if isinstance(limits, QueueLimits) and limits.stream:
        standing = "a host with Redis publishes it on a stream"
    if not service.tenant and limits is not None and (limits.concurrency is not None or limits.rate is not None):
        found = await tasks.standing(offer.uid, offer.task)
        if found is not None:
            standing = describe_standing(limits, found)
    return IdleTask(queue=offer.queue, limit=offer.limit.removeprefix(STEP_LIMIT), key=offer.key, standing=standing)


async def held_tasks(service: RunService, tasks: Mapping[int, OpenTask]) -> dict[int, IdleTask]:
    """Describe the model calls that wait because the provider asked to wait. Empty for a tenant, which sees no holds.

    A call that was under way when the hold began is not held.
    """
    memos: Memos | None = getattr(service.store, "memos", None)
    calls = {number: task for number, task in tasks.items() if task.policy.queue.startswith(MODEL_QUEUE)}
    now, found = Millis(service.clock.now_ms()), {}
    if memos is None:
        return {}
    for number, task in calls.items():
        hold = await hold_of(memos, task.policy.queue.removeprefix(MODEL_QUEUE), now)
        if hold is not None and hold.until is not None and max(task.since, task.due) >= hold.at:
            standing = f"the provider of the model asked to wait {format_ms(hold.until - now)} more"
            found[number] = IdleTask(queue=task.policy.queue, standing=standing, due=hold.until)
    return found


async def published(service: RunService, offers: Sequence[TaskOffer]) -> set[int]:
    """Return those of these tasks that are published on streams, for workers elsewhere."""
    tasks = service.whole_store.tasks
    limits = await tasks.limits() if offers else {}
    on_streams = [offer for offer in offers if offer.queue in limits and limits[offer.queue].stream]
    return {offer.task for offer in on_streams if await tasks.standing(offer.uid, offer.task) is None}
