"""Load the inputs of a run's next decision into memory: blobs, results of scripts, and whether runs exist."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec

from weft.core import events as e
from weft.core.code.patch import ReplayReport
from weft.core.commands import PatchRun
from weft.core.ids import RunId, RunUid, Seq
from weft.core.run.env import MissingInputs, PastEvent
from weft.core.run.patch_plan import PatchRefusal
from weft.core.run.revisions import versions_in
from weft.errors import Corrupt, NotFound, WeftError
from weft.ports.store import Directory, RunLog, StoredEvent
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.language import LANGUAGE
from weft.runtime.programs import code_program, has_versions
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.actor import Actor
from weft.runtime.run.log_reading import LogReading, on_log_read
from weft.runtime.run.ports import EXISTS, run_key
from weft.runtime.run.replay_report import LogInMemory, ReplayTarget, make_replay_report
from weft.runtime.runs import RunTable
from weft.runtime.values import ValueStore
from weft.steps.task import Executor

EVENTS_PER_PAGE = 2_000
WRITING_SECONDS = 0.002


class Fetcher:
    """Fetches inputs in the background, and then lets the run continue."""

    def __init__(
        self,
        values: ValueStore,
        executor: Executor,
        background: BackgroundTasks,
        runs: RunTable,
        set_aside: Callable[[Actor, BaseException], Awaitable[None]],
        *,
        directory: Directory,
        log: RunLog,
        learn_version: Callable[[str, str], Awaitable[None]],
        retry: RetryUntilAvailable,
    ) -> None:
        self._values = values
        self._executor = executor
        self._background = background
        self._runs = runs
        self._set_aside = set_aside
        self._directory = directory
        self._log = log
        self._learn_version = learn_version
        self._retry_until_available = retry

    async def run_id(self, uid: RunUid) -> str:
        """Return the id of a run; its uid if there is no such run any more."""
        row = await self._retry_until_available(partial(self._directory.row, uid))
        return row.id if row is not None else uid

    def fetch_blobs(self, actor: Actor, digests: set[str]) -> None:
        """Fetch blobs that the code's next fact needs."""
        self._background.spawn(self._fetch_for_code(actor, digests), actor)

    def fetch(self, actor: Actor, missing: MissingInputs) -> None:
        """Fetch the missing inputs of a decision."""
        self._background.spawn(self._fetch_missing(actor, missing), actor)

    def read_log(self, actor: Actor, reading: LogReading) -> None:
        """Read the log of a run, and the versions that it and the waiting commands name."""
        self._background.spawn(self._read_log(actor, reading), actor)

    def read_inputs(self, actor: Actor, reading: LogReading, missing: MissingInputs) -> None:
        """Fetch what the waiting commands need besides the log."""
        self._background.spawn(self._read_inputs(actor, reading, missing), actor)

    def replay(self, actor: Actor, reading: LogReading, versions: Sequence[str]) -> None:
        """Replay the log of a code run against versions that a waiting patch names."""
        self._background.spawn(self._replay_against(actor, reading, versions), actor)

    async def _replay_against(self, actor: Actor, reading: LogReading, versions: Sequence[str]) -> None:
        state, log = actor.machine.state, reading.all() or ()
        run = LogInMemory(actor.uid, log, actor.now_ms, partial(self._blob_of, actor))
        for version in versions:
            target = ReplayTarget(state.run_id, state.workflow, version)
            program = code_program(actor.ports.program(state.workflow, version))
            try:
                report = await make_replay_report(run, target, program)
            except (Corrupt, NotFound) as error:
                report = ReplayReport(seq=len(log), refusals=[PatchRefusal(error.code, error.message)])
            reading.reports[version] = (len(log), msgspec.json.encode(report))
        reading.replaying = False
        asyncio.get_running_loop().call_soon(self._on_read, actor, reading)

    async def _blob_of(self, actor: Actor, digest: str) -> bytes:
        """Return a blob of a run. It may not be durable yet."""
        return actor.blob(digest) or await self._values.blob(digest)

    async def _read_inputs(self, actor: Actor, reading: LogReading, missing: MissingInputs) -> None:
        await self._load_blobs(missing, reading.blobs)
        await self._learn_versions(actor, reading, missing.versions)
        asyncio.get_running_loop().call_soon(self._on_read, actor, reading)

    async def _learn_versions(self, actor: Actor, reading: LogReading, versions: Iterable[str]) -> None:
        for version in versions:
            try:
                await self._learn_version(actor.machine.state.workflow, version)
            except NotFound:
                reading.unknown.add(version)  # the decision says that it is missing

    async def _load_blobs(self, missing: MissingInputs, blobs: dict[str, bytes | WeftError]) -> None:
        for digest in missing.blobs:
            try:
                blobs[digest] = await self._values.blob(digest)
            except (Corrupt, NotFound) as error:
                blobs[digest] = error  # a document may name a missing blob: the run decides what to do
        for question in missing.questions:
            await self._executor.in_thread(partial(LANGUAGE.answer, question))

    async def _read_log(self, actor: Actor, reading: LogReading) -> None:
        found: list[PastEvent] = []
        while len(found) < reading.seq:
            after = Seq(len(found))
            limit = min(EVENTS_PER_PAGE, reading.seq - after)
            page = await self._retry_until_available(partial(self._log.events, actor.uid, after=after, limit=limit))
            if not self._runs.is_current(actor) or actor.reading is not reading:
                return
            found += [PastEvent(stored.at, e.decode(stored.body)) for stored in page]
            if len(page) < limit:
                await asyncio.sleep(WRITING_SECONDS)  # its last events are still being written
        if has_versions(actor.machine):
            asked = [patch.event.version for patch in actor.machine.state.asked.values()]
            named = [posted.command.version for posted in reading.waiting if isinstance(posted.command, PatchRun)]
            followed = versions_in(past.event for past in [*found, *reading.tail])
            versions = dict.fromkeys([*followed, *filter(None, [*asked, *named])])
            await self._learn_versions(actor, reading, versions)
        reading.events = found
        asyncio.get_running_loop().call_soon(self._on_read, actor, reading)

    def _on_read(self, actor: Actor, reading: LogReading) -> None:
        if self._runs.is_current(actor) and actor.reading is reading and not actor.reloading:
            on_log_read(actor)

    async def _fetch_for_code(self, actor: Actor, digests: set[str]) -> None:
        try:
            for digest in sorted(digests):
                await self._values.blob(digest)
        except (Corrupt, NotFound) as error:
            if self._runs.is_current(actor):
                await self._set_aside(actor, error)
            return
        driver = actor.driver
        if driver is not None and actor.ready:
            driver.missing_blobs.clear()
            actor.fetching = True
            asyncio.get_running_loop().call_soon(actor.on_fetched)

    async def _fetch_missing(self, actor: Actor, missing: MissingInputs) -> None:
        await self._load_blobs(missing, actor.fetched)
        for run_id in missing.runs:
            row = await self._retry_until_available(partial(self._directory.find, RunId(run_id)))
            actor.fetched[run_key(run_id)] = b"" if row is None else EXISTS
        asyncio.get_running_loop().call_soon(actor.on_fetched)


async def read_event(log: RunLog, retry: RetryUntilAvailable, uid: RunUid, seq: Seq) -> StoredEvent:
    """Return one event of a run."""
    (stored,) = await retry(lambda: log.events(uid, after=Seq(seq - 1), limit=1))
    return stored
