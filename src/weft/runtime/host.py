"""The composition root: builds the parts of a host, starts them and stops them in order.

``load → decide → append → effects``: an actor per run decides, the committer appends in groups, and the dispatcher
applies the effects of durable events. Nothing in the runtime imports this module.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from weft.core.ids import EntryId, HostId, RunUid
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.built_in import BuiltIn
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import StoreClock
from weft.runtime.commit_feed import CommitFeed
from weft.runtime.delivery import CommandDelivery
from weft.runtime.dispatcher import Dispatcher
from weft.runtime.duties.ends import EndsDuty
from weft.runtime.duties.heartbeat import Heartbeat
from weft.runtime.duties.mail import MailDuty
from weft.runtime.duties.release import ReleaseDuty
from weft.runtime.duties.retention import RetentionDuty
from weft.runtime.duties.scheduler import MAIL, RUNS, TASKS, Scheduler, Wakeups, seconds_until
from weft.runtime.duties.table import Parts, duties
from weft.runtime.duties.tasks import TasksDuty
from weft.runtime.fetch import Fetcher, read_event
from weft.runtime.host_steps import publish_steps
from weft.runtime.lanes import Lanes
from weft.runtime.library import Library
from weft.runtime.limit_windows import LimitWindows
from weft.runtime.local import LocalRuns, LocalWork
from weft.runtime.loop_share import Callers, NewChildren, Turns
from weft.runtime.memo_lookup import MemoLookup
from weft.runtime.ownership.admission import RunAdmission
from weft.runtime.ownership.begin import RunStarter
from weft.runtime.ownership.claim import Claims
from weft.runtime.ownership.confirm import TaskGuard
from weft.runtime.ownership.faults import FaultyRuns
from weft.runtime.ownership.first_start import FirstStarts
from weft.runtime.ownership.load import Loader
from weft.runtime.ownership.release import Releaser
from weft.runtime.ownership.reload import Reloader
from weft.runtime.policy import CurrentPolicy
from weft.runtime.programs import Machines
from weft.runtime.retries import StoreRetries
from weft.runtime.run.actor import Actor
from weft.runtime.run.ports import RunPorts
from weft.runtime.runs import RunTable
from weft.runtime.schedules import declare_all
from weft.runtime.service import RunService
from weft.runtime.shared import SharedTasks
from weft.runtime.start_rules import publish_rules
from weft.runtime.status import HostStatus
from weft.runtime.step_keeper import StepKeeper
from weft.runtime.step_logs import StepLogWriter
from weft.runtime.streams import StreamWriter
from weft.runtime.surroundings import Surroundings
from weft.runtime.task_policy import TaskPolicy
from weft.runtime.throttled_log import ThrottledLog
from weft.runtime.timers import Timers
from weft.runtime.tool_settings import ToolStores
from weft.runtime.trees import Trees
from weft.runtime.values import OpenedValues, ValueStore, blob_cache
from weft.runtime.worker.flight import Flight, Report
from weft.runtime.worker.given_results import check_result
from weft.runtime.worker.step_worker import StepWorker
from weft.runtime.worker_streams.loops import WorkerStreams
from weft.runtime.worker_streams.parts import StreamParts

log = logging.getLogger("weft")


class Host:
    """One host: an async context manager. Entering it starts the parts, leaving it stops them in order."""

    def __init__(self, given: Surroundings, catalogue: HostCatalogue, service: RunService) -> None:
        """``service`` can reach the runs of this host from now on."""
        self.store = given.store
        self.clock = StoreClock(given.clock, given.store)
        self.ids, self.id = given.ids, HostId(given.ids.new())
        settings = self.settings = given.settings
        self.catalogue = catalogue
        self._executor = given.executor
        self.runs = RunTable(given.store.directory, given.settings.resident_max, self._on_removed)
        self.status = HostStatus(given.on_failure)
        throttled = self.throttled_log = ThrottledLog()
        self.retry_until_available = StoreRetries(self.status, throttled).retry_until_available
        self.background = BackgroundTasks(self.status, self.runs.is_current)
        blobs = given.store.blobs
        self.values = ValueStore(
            put=lambda raw: self.retry_until_available(partial(blobs.put, raw)),
            get=lambda digest: self.retry_until_available(partial(blobs.get, digest)),
            cache=blob_cache(given.settings.blob_cache_bytes),
        )
        self.opened = OpenedValues(given.settings.recent_bytes)
        self.streams = StreamWriter(given.store.streams, self.background, self.retry_until_available)
        self.lanes = Lanes(given.store, self.id, self.status.fail, throttled, self.streams, short=settings.short_path)
        self.committer, self.queue = self.lanes.committer, self.lanes.queue
        self.step_logs = self._step_logs()
        self.policy = CurrentPolicy(given.store.policies, catalogue.policy())
        self.task_policy = TaskPolicy(self.policy, given.store.directory)
        self.timers = Timers(self.clock, self._on_due, look_seconds=given.settings.look_seconds)
        self.worker = self._build_worker(given)
        self.built_in = BuiltIn(
            catalogue,
            self.clock,
            self.values,
            given.store,
            ToolStores(given.store.log, given.store.definitions, self.clock, given.settings.tools),
        )
        self.turns, self.callers = Turns(self.clock, self.background), Callers(self.clock)
        self.steps = self._step_keeper()
        self.library = self._build_library()
        self.memos = MemoLookup(given.store.memos, self.values, self.clock, self.background, self.runs.is_current)
        self.wakeups = Wakeups()
        self.heartbeat = Heartbeat(
            given.store.hosts, self.id, self.clock, self.worker, settings=given.settings, failed=self.status.fail
        )
        self.shared = self._shared_tasks()
        self.worker_streams = self._worker_streams(StreamParts.of(given, self.clock, self.values, throttled))
        self.faults = FaultyRuns(self.runs, given.store.log, self.worker, self.retry_until_available)
        self.trees = Trees(
            self.runs, given.store.directory, self.background, self.retry_until_available, given.settings
        )
        self.trees.permits, self.trees.is_agent = self.task_policy.check_child, catalogue.is_agent
        self.new_children = self._new_children()
        self._new_machine = Machines(catalogue.program).new
        self._about, self._service = given.about, service
        self.commits = CommitFeed(self.lanes.hot)
        self.delivery = self._build_delivery()
        self.loader = self._build_loader()
        self.reloader = self._build_reloader()
        self.claims = self._build_claims()
        self.effects = self._build_dispatcher()
        self.releaser = self._build_releaser()
        self.mail_duty = self._mail_duty()
        self.duties = self._build_scheduler()
        self.fetcher = self._build_fetcher()
        self.ports = self._run_ports()
        if self.lanes.hot is not None:
            self.lanes.hot.on_lost = self.reloader.on_lost
        self.starter = RunStarter(self.runs, self.ports, self._new_machine)
        self._connect_service(service)

    def _connect_service(self, service: RunService) -> None:
        """Let the service use the runs and the work of this host."""
        service.status, service.commits = self.status, self.commits
        service.local, service.work = self._local_runs(), self._local_work()
        service.steps, service.streams, service.policy = self.steps, self.streams, self.policy
        service.retry_until_available = self.retry_until_available

    def _local_runs(self) -> LocalRuns:
        return LocalRuns(
            self.id,
            self.runs,
            catalogue=self.catalogue,
            publish=self.library.publish_definitions,
            status=self.status,
            starter=self.starter,
            delivery=self.delivery,
            claims=self.claims,
            background=self.background,
            in_thread=self._executor.in_thread,
            callers=self.callers,
        )

    def _local_work(self) -> LocalWork:
        return LocalWork(
            self.runs,
            self.worker,
            self.committer,
            self.wakeups,
            claims=self.claims,
            catalogue=self.catalogue,
            directory=self.store.directory,
            clock=self.clock,
            performed_again=self.loader.performed_again,
            step_logs=self.step_logs,
            shared=self.shared,
            stream_counts=self.worker_streams.counts,
        )

    def _build_worker(self, given: Surroundings) -> StepWorker:
        worker = StepWorker(
            self.catalogue,
            given.executor,
            self.clock,
            slots=given.settings.slots,
            held=given.settings.steps_held,
            report=self._on_report,
            load=self.values.load,
            keep=self.values.keep,
            streams=self.streams,
            step_logs=self.step_logs,
        )
        worker.failed = self.status.fail
        worker.wrap_body = given.wrap_body
        worker.traces = given.traces
        worker.policy = self.task_policy
        return worker

    def _step_logs(self) -> StepLogWriter | None:
        limits = self.settings.step_logs
        if limits is None:
            return None
        retry = self.retry_until_available
        return StepLogWriter(self.store.step_logs, self.id, self.clock, self.background, retry, limits=limits)

    def _build_library(self) -> Library:
        return Library(
            self.catalogue,
            self.store.definitions,
            self.clock,
            self.retry_until_available,
            scan_seconds=self.settings.scan_seconds,
            steps_learned=lambda: self.steps.learned,
        )

    def _shared_tasks(self) -> SharedTasks:
        return SharedTasks(
            self.store,
            self.id,
            self.clock,
            self.ids,
            catalogue=self.catalogue,
            built_in=self.built_in,
            runs=self.runs,
            worker=self.worker,
            heartbeat=self.heartbeat,
            wakeups=self.wakeups,
            background=self.background,
            retry=self.retry_until_available,
            reload=lambda actor: self.reloader.reload(actor, actor.in_flight, None),
            load=self.values.load,
            spill_seconds=self.settings.spill_seconds,
        )

    def _worker_streams(self, parts: StreamParts) -> WorkerStreams:
        return WorkerStreams(parts, self.id, self.settings, queues=self.shared.stream_queues, wakeups=self.wakeups)

    def _run_admission(self) -> RunAdmission:
        return RunAdmission(
            self.store, self.id, self.shared.limits, self.clock, values=self.values, retry=self.retry_until_available
        )

    def _build_loader(self) -> Loader:
        return Loader(
            self.store,
            self.id,
            self.runs,
            new_machine=self._new_machine,
            new_actor=lambda *args: Actor(self.ports, *args),
            learn_version=self.library.learn_version,
            resolve=self.library.resolve,
            values=self.values,
            worker=self.worker,
            shared=self.shared,
            trees=self.trees,
            delivery=self.delivery,
            background=self.background,
            faults=self.faults,
            admission=self._run_admission(),
            retry=self.retry_until_available,
            first_starts=FirstStarts(self.store.starts, self.catalogue, self.values, self.retry_until_available),
            on_loaded=lambda: self.mail_duty.on_loaded(),  # noqa: PLW0108 - it is built later
        )

    def _build_reloader(self) -> Reloader:
        return Reloader(
            self.store,
            self.id,
            self.runs,
            self.loader,
            status=self.status,
            worker=self.worker,
            timers=self.timers,
            delivery=self.delivery,
            background=self.background,
            wakeups=self.wakeups,
            throttled_log=self.throttled_log,
            faults=self.faults,
            retry=self.retry_until_available,
            adopt=self.new_children.adopt,
            begin=lambda start, uid: self.starter.begin(start, uid),  # noqa: PLW0108 - it is built later
            trouble=self.committer.trouble,
        )

    def _build_claims(self) -> Claims:
        return Claims(
            self.store,
            self.id,
            self.runs,
            self.loader,
            catalogue=self.catalogue,
            clock=self.clock,
            status=self.status,
            shared=self.shared,
            turns=self.turns,
            new_children=self.new_children,
            background=self.background,
            retry=self.retry_until_available,
            reload=self.reloader.reload,
        )

    def _build_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self.runs,
            catalogue=self.catalogue,
            built_in=self.built_in,
            clock=self.clock,
            timers=self.timers,
            worker=self.worker,
            shared=self.shared,
            memos=self.memos,
            trees=self.trees,
            delivery=self.delivery,
            background=self.background,
            wakeups=self.wakeups,
            read_mail=lambda actor: self.retry_until_available(partial(self.loader.read_mail, actor)),
            policy=self.task_policy,
        )

    def _build_releaser(self) -> Releaser:
        return Releaser(
            self.runs,
            self.store.log,
            status=self.status,
            worker=self.worker,
            shared=self.shared,
            timers=self.timers,
            delivery=self.delivery,
            background=self.background,
            reload=lambda actor, outcome: self.reloader.reload(actor, None, outcome),
            read_mail=lambda actor: self.retry_until_available(partial(self.loader.read_mail, actor)),
            on_released=self.claims.note_wake,
        )

    def _mail_duty(self) -> MailDuty:
        return MailDuty(
            self.runs,
            self.store.inboxes,
            self.id,
            self.wakeups,
            catalogue=self.catalogue,
            clock=self.clock,
            turns=self.turns,
            new_children=self.new_children,
            claims=self.claims,
            loader=self.loader,
        )

    def _new_children(self) -> NewChildren:
        return NewChildren(
            self.id,
            self.runs,
            self.status,
            self.background,
            self.wakeups,
            turns=Turns(self.clock, self.background, self.callers.pause),
            uncommitted=self.lanes.waiting,
            load=lambda uid: self.loader.load(uid),  # noqa: PLW0108 - it is built later
        )

    def _build_delivery(self) -> CommandDelivery:
        return CommandDelivery(
            self.runs,
            self.store.log,
            self.clock,
            self.ids,
            retry=self.retry_until_available,
            answered=self.worker.answered,
            wake=partial(self.wakeups.wake, MAIL, RUNS),
            mailbox_max=self.settings.mailbox_max,
            background=self.background,
        )

    def _step_keeper(self) -> StepKeeper:
        stored = StoredCatalogue(self.store.definitions, self.clock, self._executor.in_thread, self.callers.give_way)
        return StepKeeper(
            self.catalogue,
            stored,
            self._executor,
            self.background,
            built_in=self.built_in,
            retry=self.retry_until_available,
        )

    def _build_scheduler(self) -> Scheduler:
        release = ReleaseDuty(
            self.runs,
            self.releaser,
            self.clock,
            self.wakeups,
            idle_seconds=self.settings.idle_seconds,
            wanted=lambda: self.claims.backlog + len(self.new_children.waiting),
        )
        parts = Parts(
            mail=self.mail_duty,
            ends=EndsDuty(self.runs, self.store.directory),
            release=release,
            tasks=TasksDuty(self.shared, self._run_admission(), self.wakeups),
            renew_tasks=self.shared.renew,
            reconcile=self.claims.reconcile,
            learn_graphs=self.library.refresh,
            learn_steps=self.steps.refresh,
            find_dead=self.claims.find_dead,
            claim_ready=self.claims.claim_ready,
            is_run_due=self.claims.is_run_due,
            is_turn_due=self.shared.is_turn_due,
            retention=RetentionDuty(self.store, self.clock, self.id, self.background, self.settings.retention),
            check_health=self.steps.begin_round,
            learn_policy=self.policy.refresh,
            publish_tasks=self.worker_streams.wake,
        )
        return Scheduler(
            duties(parts, self.settings),
            self.wakeups,
            look=self.mail_duty.look,
            pause=self._seconds_to_next_round,
            monotonic=self.clock.monotonic,
            throttled_log=self.throttled_log,
            failed=self.status.fail,
        )

    def _seconds_to_next_round(self) -> float:
        """Return the seconds until the next round of duties: the next poll, or when a run or a key of a rate is due."""
        times = (self.claims.wake_at, self.shared.turn_at)
        return seconds_until(times, self.clock.now_ms(), self.settings.poll_seconds)

    def _build_fetcher(self) -> Fetcher:
        return Fetcher(
            self.values,
            self._executor,
            self.background,
            self.runs,
            self.faults.set_aside,
            log=self.store.log,
            learn_version=self.library.learn_version,
            directory=self.store.directory,
            retry=self.retry_until_available,
        )

    def _run_ports(self) -> RunPorts:
        return RunPorts(
            host=self.id,
            tolerant=self.settings.tolerant,
            short_path=self.settings.short_path,
            clock=self.clock,
            heartbeat=self.heartbeat,
            new_id=self.ids.new,
            values=self.values,
            opened=self.opened,
            program=self.catalogue.program,
            planned_step=self.catalogue.planned_step,
            hooks=self.catalogue.hooks(),
            hot=self.lanes.hot,
            read_event=partial(read_event, self.store.log, self.retry_until_available),
            background=self.background,
            fetching=self.fetcher,
            check_child=self.trees.check,
            check_result=partial(check_result, self.catalogue),
            patches_max=self.settings.patch_limits.patches,
            on_child=self.trees.opened,
            on_ready=self.queue.add,
            on_misplaced=lambda actor: self.runs.misplaced.add(actor.uid),
            submit=self.queue.submit,
            apply_effect=self.effects.apply_effect,
            dispatch=self.effects.dispatch,
            arm_again=self.effects.arm_again,
            memos=self.memos,
            post_local=self.delivery.post_local,
            deliver=self.delivery.send_soon,
            windows=LimitWindows(self.policy, self.clock).of,
            adopt=self.new_children.adopt,
            publish=self.commits.publish,
            answered=self.worker.answered,
            emit=self.streams.emit_if_room,
            on_refused=self.reloader.on_refused,
            on_unknown=self.reloader.on_unknown,
            set_aside=self.faults.set_aside,
        )

    def _on_due(self, uid: RunUid, entry: EntryId) -> None:
        self.effects.on_due(uid, entry)

    def _on_report(self, flight: Flight, report: Report) -> None:
        """Deliver the report of a step. The run of a lone step continues at once; others share their commits."""
        flights = self.worker.flights
        if len(flights) == 1 and flight.running is not None and len(flights.get(flight.uid, ())) == 1:
            self.queue.at_once(flight.running, self.effects.on_report, flight, report)
        else:
            self.effects.on_report(flight, report)

    def _on_removed(self, uid: RunUid) -> None:
        self.shared.forget(uid)
        self.memos.forget(uid)

    # --- life -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> None:
        try:
            await self.start()
        except BaseException:
            await self.kill()
            raise

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.stop()
        except BaseException:
            await self.kill()
            raise

    async def start(self) -> None:
        """Join the store, claim runs without an owner, and start all duties."""
        lease_ms = int(self.settings.lease_seconds * 1000)
        await self.store.hosts.join(self.id, lease_ms=lease_ms, about=self._about)
        self.background.start()
        self.queue.start()
        self.streams.start()
        if self.step_logs is not None:
            self.step_logs.start()
        self.status.running = True
        self.heartbeat.start()
        if self.settings.heartbeat_thread:
            self.worker.guard = TaskGuard(
                self.heartbeat,
                self.runs,
                self.store.directory,
                self.id,
                worker=self.worker,
                shared=self.shared,
                retry=self.retry_until_available,
            )
        self.lanes.start()
        await self.library.publish_definitions()
        await self.steps.start()
        own, now = self.catalogue.own_steps(), self.clock.now_ms()
        await self.retry_until_available(partial(publish_steps, self.store.definitions, own, now))
        await self.retry_until_available(self.library.refresh)
        await self.retry_until_available(self.policy.refresh)
        await self.shared.refresh()
        names = [name for name, version in self.catalogue.programs() if not version]
        await self.retry_until_available(partial(publish_rules, self.store.starts, names, self.catalogue.start_rules()))
        if self.shared.limits.any:
            self.wakeups.wake(TASKS)  # a place may have become free when no host was there
        # Declared before anything is claimed, so that an overdue schedule fires by its present definition.
        await self.retry_until_available(partial(declare_all, self._service, self.catalogue.schedules()))
        await self.claims.scan()
        self.worker_streams.start(self.status.fail)
        self.duties.start()

    async def stop(self) -> None:
        """Drain, then hand over: running steps may finish, idle runs are released, other hosts continue the rest."""
        if not self.status.running:
            return
        self.status.closing = True
        await self.shared.stop_taking(self.settings.drain_seconds)
        self.worker.closed = True
        await self.duties.stop()
        if left := await self.worker.drain(self.settings.drain_seconds):
            log.warning(
                "weft: %d steps were still running after the drain timeout; the next host will retry them", left
            )
        # Runs that never become idle are stopped; the next host repeats their uncommitted decisions.
        await asyncio.wait([self.background.spawn(self.settle(), may_fail=True)], timeout=self.settings.drain_seconds)
        await self.streams.drain(self.settings.drain_seconds)
        if self.step_logs is not None:
            await self.step_logs.drain(self.settings.drain_seconds)
        await self.releaser.release(list(self.runs.actors.values()))
        await self.kill()
        await self.shared.remove_unwanted()
        await self.store.hosts.leave(self.id)

    async def settle(self) -> None:
        """Wait until all decisions are committed and places given back, at most for the drain timeout."""
        ends = self.clock.monotonic() + self.settings.drain_seconds
        while self.status.failure is None and (self.runs.has_work() or self.shared.has_rows_to_remove()):
            if self.clock.monotonic() > ends:
                log.warning("weft: not everything could be committed in time; the next host will decide it again")
                return
            await asyncio.sleep(0.001)

    async def kill(self) -> None:
        """Stop at once: write nothing more, and drop all runs from memory."""
        self.status.running = False
        self.timers.close()
        self.worker.abandon()
        await self.duties.stop()
        await self.worker_streams.stop()
        await self.heartbeat.stop()
        self.background.cancel()
        await self.lanes.stop()
        await self.built_in.close()
        self.runs.clear()
        await self.worker.finish_stopped()
