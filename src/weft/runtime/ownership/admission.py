"""Let runs begin only within the limit of their workflow. A run over the limit stays pending, without an owner."""

from __future__ import annotations

from functools import partial

import msgspec

from weft.core import commands as c
from weft.core.ids import HostId
from weft.errors import BadValue
from weft.ports.clock import Clock
from weft.ports.new_run import START_MAIL
from weft.ports.store import RunRow, Store
from weft.ports.tasks import RUN_TASK, WORKFLOW_LIMIT, TaskOffer
from weft.runtime.host_limits import HostLimits
from weft.runtime.key_limits import limit_key
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.values import ValueStore

ADMITTED_PER_ROUND = 100


class RunAdmission:
    """Asks the store whether runs may begin."""

    def __init__(
        self,
        store: Store,
        host: HostId,
        limits: HostLimits,
        clock: Clock,
        *,
        values: ValueStore,
        retry: RetryUntilAvailable,
    ) -> None:
        self._log = store.log
        self._tasks = store.tasks
        self._host = host
        self._limits = limits
        self._clock = clock
        self._values = values
        self._retry_until_available = retry
        self._may_wait = True
        """Whether runs may wait although no workflow has a limit: it was removed, perhaps before this host started."""

    def is_limited(self, workflow: str) -> bool:
        """Return whether runs of a workflow must be admitted."""
        return self._limits.any and self._limits.of_workflow(workflow) is not None

    async def admit(self, row: RunRow) -> bool:
        """Return whether a run that this host owns may begin. Otherwise the run has no owner any more.

        Raises BadValue if its key cannot be found.
        """
        limit = self._limits.of_workflow(row.workflow)
        start = await self._start_of(row)
        if limit is None or start is None:
            return True
        offer = TaskOffer(
            uid=row.uid,
            task=RUN_TASK,
            attempt=0,
            delivery=0,
            step=row.workflow,
            queue="",
            body=b"",
            epoch=row.epoch,
            limit=f"{WORKFLOW_LIMIT}{row.workflow}",
            key=limit_key(row.workflow, limit, await self._values.load(bytes(start.input))),
        )
        now = self._clock.now_ms()
        return await self._retry_until_available(partial(self._tasks.admit, self._host, offer, now))

    async def _start_of(self, row: RunRow) -> c.StartRun | None:
        inbox = await self._retry_until_available(partial(self._log.inbox, row.uid))
        starts = (c.decode(mail.body) for mail in inbox if mail.id == START_MAIL)
        return next((start for start in starts if isinstance(start, c.StartRun)), None)

    async def admit_waiting(self) -> int:
        """Let runs begin that wait for the limits of their workflows. Returns how many."""
        if not (self._limits.for_runs or self._may_wait):
            return 0
        admitted = await self._tasks.admit_waiting(self._clock.now_ms(), limit=ADMITTED_PER_ROUND)
        self._may_wait = self._limits.for_runs or admitted > 0
        return admitted


def refuse_start(start: c.StartRun, error: BadValue) -> c.StartRun:
    """Return a start that fails in its first event."""
    return msgspec.structs.replace(start, refused=error.message, refused_as=error.code)
