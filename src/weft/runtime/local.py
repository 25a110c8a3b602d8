"""The host of this process, as the service, the server and the command line see it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.ids import HostId
from weft.ports.clock import Clock, Ids
from weft.ports.store import Store
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.commit import GroupWriter
from weft.runtime.commit_feed import CommitFeed
from weft.runtime.delivery import CommandDelivery
from weft.runtime.duties.scheduler import Wakeups
from weft.runtime.library import Library
from weft.runtime.ownership.begin import RunStarter
from weft.runtime.ownership.claim import Claims
from weft.runtime.ownership.load import Loader
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.runs import RunTable
from weft.runtime.settings import Settings
from weft.runtime.status import HostStatus
from weft.runtime.step_keeper import StepKeeper
from weft.runtime.streams import StreamWriter
from weft.runtime.worker.step_worker import StepWorker
from weft.steps.base import Executor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalHost:
    """Parts of a running host. Nothing here starts or stops them."""

    id: HostId
    store: Store
    clock: Clock
    ids: Ids
    settings: Settings
    executor: Executor
    status: HostStatus
    catalogue: HostCatalogue
    library: Library
    steps: StepKeeper

    runs: RunTable
    starter: RunStarter
    delivery: CommandDelivery
    claims: Claims
    loader: Loader
    worker: StepWorker
    commits: CommitFeed
    committer: GroupWriter
    streams: StreamWriter
    wakeups: Wakeups
    background: BackgroundTasks
    retry_until_available: RetryUntilAvailable
