"""One run in memory: a mailbox and a state. It processes one command at a time, in callbacks.

A run decides ahead of its commits, but a decision has no effect outside (no dispatch, answer or mail) before its append
is durable. When the outcome of an append is unknown, the run's memory is discarded and loaded again from the store.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.ids import EntryId, Epoch, Millis, RunId, RunUid, Seq
from weft.core.machine import Machine
from weft.core.run.covers import OpenCovers
from weft.core.run.env import Env, MissingInputs, PastEvent
from weft.errors import Refused, WeftError
from weft.ports import boundary as boundaries
from weft.ports.boundary import boundary
from weft.ports.store import BYTES_PER_APPEND_MAX, EVENTS_PER_APPEND_MAX, KeyRow, Mail, Outcome
from weft.ports.streams import NewChunk
from weft.runtime.catalogue import Callee
from weft.runtime.programs import new_driver
from weft.runtime.run import log_reading
from weft.runtime.run.append_extras import ASKING, INDEXED, add_snapshot, index_event, record_idle
from weft.runtime.run.covered_calls import add_moves, covered_effects
from weft.runtime.run.draft import Draft, PendingCommand, answer_commands, is_echo, take_unanswered, unanswered
from weft.runtime.run.driver import CodeDriver
from weft.runtime.run.hold import hold_other_arguments
from weft.runtime.run.outgoing import add_mail
from weft.runtime.run.ports import ACCEPTED, EXISTS, RunPorts, run_key
from weft.runtime.run.short_path import schedule_plain, take_plain
from weft.runtime.run.start import complete_start
from weft.runtime.run.write_through import answer_in_time, must_be_through
from weft.runtime.schema_check import check_schema
from weft.steps.raised import ends_host
from weft.steps.tracebacks import loggable_error

log = logging.getLogger("weft")

SNAPSHOT_BYTES_MIN = 64 * 1024
_DRAFT_BYTES_MAX = BYTES_PER_APPEND_MAX // 2
MAIL_SEEN_MAX = 20_000
DRAFTS_AHEAD_MAX = 1
"""A run with this many uncommitted drafts waits for the store."""
MOVES_PER_TURN = 500
"""How many decisions a run may make on its own before other runs get their turn."""
_IDLE_STATUSES = frozenset({"paused", "held", "rolling_back", "completed", "failed", "cancelled"})


class Actor:
    """One run that this host owns."""

    __slots__ = (
        "_facts",
        "_scheduled",
        "callee",
        "committed_seq",
        "covers",
        "cut_off",
        "drafts",
        "driver",
        "epoch",
        "fetched",
        "fetching",
        "id",
        "idle_since",
        "idle_until",
        "in_flight",
        "machine",
        "mail_seen",
        "mail_taken",
        "mailbox",
        "now_ms",
        "owner_died",
        "pending",
        "ports",
        "reading",
        "ready",
        "reloading",
        "restored",
        "snapshot_bytes",
        "stalls",
        "stalls_asked",
        "tail_bytes",
        "tolerant",
        "uid",
        "waits_for_commit",
    )

    def __init__(self, ports: RunPorts, uid: RunUid, id: RunId, epoch: Epoch, machine: Machine) -> None:
        self.ports = ports
        self.uid = uid
        self.id = id
        self.epoch = epoch
        self.machine = machine
        self.driver: CodeDriver | None = None
        self.covers: OpenCovers | None = None
        """The calls that spend from budgets, if the run has any."""
        self.mailbox: list[PendingCommand] = []  # an empty deque takes ten times the memory
        self.drafts: list[Draft] = []
        self.in_flight: Draft | None = None
        self.mail_taken = 0
        self.restored = False
        """The inbox was read, or the run began here."""
        self.mail_seen: dict[str, None] = {}
        self.committed_seq = Seq(0)
        # Read before the log is read or written: an answer of the store may have waited while this host was blocked.
        self.stalls = self.stalls_asked = ports.heartbeat.stalls
        self.tail_bytes = 0
        self.snapshot_bytes = 0
        self.ready = self.reloading = False
        self.fetched: dict[str, bytes | WeftError] = {}
        """Blobs and facts about runs that the next decision needs: they stay in memory until it is made."""
        self.fetching = False
        """The run cannot continue before something is fetched or a postponed slice runs."""
        self.owner_died = False
        """The previous owner is gone and the log does not record that yet: the tasks it performed are lost."""
        self.idle_until: Millis | None = None
        """The value in the row once all drafts that are being committed are durable."""
        self.callee: Callee | None = None
        """For a run that was started by name: the program with that name here."""
        self.cut_off = False
        """The run is about to start below a root that is cancelled."""
        self.pending = False
        """The row has a fault: the next append restores the run's status."""
        self.idle_since = ports.clock.monotonic()
        self.now_ms = Millis(0)
        self.tolerant = ports.tolerant
        self.waits_for_commit = False
        """The run has more to do, and waits for its own commits."""
        self.reading: log_reading.LogReading | None = None
        """The log is being read, or was read, for a decision that needs all of it."""
        self._scheduled = False
        self._facts: Env | None = None

    # --- the mailbox ----------------------------------------------------------------------------------------------

    def post(self, posted: PendingCommand) -> None:
        """Add a command to the mailbox. It is processed at the next turn of the loop."""
        if posted.mail_id:
            if posted.mail_id in self.mail_seen:
                return
            self._remember_mail(posted.mail_id)
        self.mailbox.append(posted)
        if not self._scheduled and self.ready:
            self._scheduled = True
            on_ready = self.ports.on_ready
            on_ready(self)

    def _remember_mail(self, mail_id: str) -> None:
        """Remember mail that was taken, because a concurrent read of the inbox may deliver it again."""
        self.mail_seen[mail_id] = None
        if len(self.mail_seen) > MAIL_SEEN_MAX:
            self.mail_seen = dict.fromkeys(list(self.mail_seen)[MAIL_SEEN_MAX // 2 :])

    def take_posted(self, inbox: Sequence[Mail]) -> list[PendingCommand]:
        """Empty the mailbox of a run that is being loaded. Returns what is not in the inbox that was read."""
        stored = {mail.id for mail in inbox}
        for mail_id in stored & self.mail_seen.keys():
            del self.mail_seen[mail_id]
        posted = [one for one in self.mailbox if not one.abandoned and one.mail_id not in stored]
        self.mailbox.clear()
        return posted

    def schedule(self) -> None:
        if not self._scheduled and self.ready:
            self._scheduled = True
            self.ports.on_ready(self)

    def turn(self) -> None:
        """Process the commands in the mailbox."""
        self._scheduled = False
        if not self.ready:
            return
        try:
            now, last = self.ports.clock.now_ms(), self.machine.state.at  # begin_turn
            self.now_ms = now if now > last else Millis(last)
            mailbox = self.mailbox
            while mailbox and (self.reading is None or not log_reading.awaits_mailed_patch(self)) and self.ready:
                posted = mailbox.pop(0)
                is_success = type(posted.command) is c.ReportTaskSucceeded
                if not (is_success and self.reading is None and self.ports.short_path and take_plain(self, posted)):
                    self._take_command(posted)
            self.end_turn()
        except BaseException as error:
            if ends_host(error):
                raise
            self.give_up(error)

    def give_up(self, error: BaseException) -> None:
        """Hold this run for a person after a bug in Weft. Other runs continue."""
        log.error("weft: an error inside Weft stopped %s; it is held", self.id, exc_info=loggable_error(error))
        self.ports.background.spawn(self.ports.set_aside(self, error))

    def begin_turn(self) -> None:
        """Set the time of a turn, which does not change during the turn and is never before the run's last event."""
        self.now_ms = Millis(max(self.ports.clock.now_ms(), self.machine.state.at))

    def end_turn(self) -> None:
        if self.reading is not None:
            log_reading.forget_log(self)
        if not self.machine.state.tasks:
            self._facts = None  # the run may now wait for long, and there may be many like it
        monotonic, submit = self.ports.clock.monotonic, self.ports.submit
        self.idle_since = monotonic()
        if self.drafts and self.in_flight is None:
            submit(self)

    def _take_command(self, posted: PendingCommand) -> None:
        if self._decide_and_record(posted):
            self.move()
        if self.drafts and not self.drafts[-1].events:
            self._answer_if_idle(self.drafts[-1])

    def accept_mail(self) -> bool:
        """Record the mail that was accepted before the code continues. Returns False if a patch waits for the log."""
        waiting = [posted for posted in self.mailbox if posted.mail_id]
        self.mailbox = [posted for posted in self.mailbox if not posted.mail_id]
        end: list[e.AnyEvent] = []
        for posted in waiting:
            self._decide_and_record(posted, end)
        if end:
            self._record_events(end)
        return self.reading is None or log_reading.no_patch_waits(self)

    def _decide_and_record(self, posted: PendingCommand, end: list[e.AnyEvent] | None = None) -> bool:
        """Record the events of a command. Returns whether there were any.

        A refused start ends the run; its ending is put into ``end``, because all mail must be recorded before it.
        """
        if posted.mail_id and self.machine.state.over:
            # The end is decided but not durable. This mail was accepted before it, so the append will be refused.
            return False
        if posted.key is not None and not posted.mail_id and is_echo(self._undurable_drafts(), posted, posted.key):
            return False
        if isinstance(posted.command, log_reading.WITH_INPUTS) and log_reading.wait_for_inputs(self, posted):
            return False
        draft = self.open_draft()
        if posted.mail_id:
            draft.taken += (posted.mail_id,)
            self.mail_taken += 1
            if posted.key is not None and self._is_under_way(posted.key):
                # The same command was given here and is not durable yet, so the store accepted the mail as new.
                draft.posted.append(posted)
                return False
        command = posted.command
        if isinstance(command, c.StartRun):
            command = complete_start(self, command, draft)
        try:
            if isinstance(command, c.RetryRun) and self.machine.state.over:
                # Two ends in one append would have the effects of both.
                raise Refused(f"{self.id} is ending right now.", hint="Try again when it is over.")
            events = self.machine.decide(command, self.env())
        except (WeftError, MissingInputs) as problem:
            error = log_reading.refusal_error(self.id, problem)
            if not isinstance(command, c.StartRun) or not posted.mail_id:
                draft.refused += ((posted, error),)
                draft.create = None  # a refused start creates no run
                return False
            # The run exists, and its parent or a caller may wait for it: it fails with the reason.
            refused = msgspec.structs.replace(command, refused=str(error), refused_as=error.code)
            events = self.machine.decide(refused, self.env())
        draft.posted.append(posted)
        if not events:
            if isinstance(command, c.FireTimer):
                self.ports.arm_again(self, command.entry)
            return False
        if posted.key is not None:
            draft.keys += (KeyRow(posted.key.key, posted.key.digest, Seq(self.machine.state.seq + 1)),)
        if end is not None and isinstance(events[-1], e.RunFailedEvent):
            end.append(events[-1])
            events = events[:-1]
        self._record_events(events)
        return True

    def _is_under_way(self, key: KeyRow) -> bool:
        return (key.key, key.digest) in [
            (row.key, row.digest) for draft in self._undurable_drafts() for row in draft.keys
        ]

    def _undurable_drafts(self) -> Sequence[Draft]:
        return self.drafts if self.in_flight is None else (self.in_flight, *self.drafts)

    def _answer_if_idle(self, draft: Draft) -> None:
        """Answer now if nothing was decided and no commit is in progress.

        Otherwise the answer waits until the decisions that it depends on are durable.
        """
        if draft.is_empty() and self.in_flight is None and self.drafts and self.drafts[0] is draft:
            self.drafts.clear()
            answer_in_time(self, draft)

    # --- deciding -------------------------------------------------------------------------------------------------

    def move(self) -> None:
        """Deliver new facts to the code, and record what must happen next."""
        state = self.machine.state
        if self.driver is None and state.started and not state.ended and state.status not in _IDLE_STATUSES:
            self._start_code()
        if self.driver is not None and state.status not in _IDLE_STATUSES:
            self.advance(self.driver)
        else:
            self.follow()

    def advance(self, driver: CodeDriver) -> None:
        """Deliver new facts to the code, and record what must happen next."""
        driver.advance()
        # If the run was held meanwhile, its code has been closed.
        if self.driver is driver:
            if driver.unfinished:
                self._move_later()
            if driver.missing_blobs:
                self.ports.fetching.fetch_blobs(self, driver.missing_blobs)
        if self.fetched or not self.machine.rests():
            seq = self.machine.state.seq
            self.follow()
            if self.machine.state.seq != seq and self.machine.state.fork is not None:
                self._move_later()  # the results of tasks that were held back are facts for the code

    def follow(self) -> None:
        """Record what must happen next without a command."""
        try:
            for _ in range(MOVES_PER_TURN):
                events = () if self.machine.rests() else self.machine.follow(self.env())
                if not events:
                    self.fetched.clear()
                    return
                self._record_events(events)
            self._move_later()
        except MissingInputs as missing:
            log_reading.fetch_missing(self, missing)

    def _move_later(self) -> None:
        """Continue in a later callback, so that other runs get their turn."""
        if not self.fetching:
            self.fetching = True
            self.ports.background.call_soon(self._next_slice)

    def _next_slice(self) -> None:
        if len(self.drafts) > DRAFTS_AHEAD_MAX:
            self.waits_for_commit = True  # until its decisions are durable
        else:
            self.on_fetched()

    def on_fetched(self) -> None:
        """Continue after missing inputs were fetched. Until then the run is not idle."""
        self.fetching = False
        self.proceed()

    def _start_code(self) -> None:
        driver = new_driver(self.machine, self.ports.program, self)
        if driver is not None:
            driver.loop.monotonic = self.ports.clock.monotonic
            self.driver = driver
        elif self.machine.style.has_code:
            self.ports.on_misplaced(self)  # a patch has brought it to a version that this host does not have

    def issue(self, command: c.Asked) -> None:
        """Decide a request of the code and record its events at once."""
        self._record_events(self.machine.decide(command, self.env()))

    try_schedule = schedule_plain

    def env(self) -> Env:
        facts = self._facts
        if facts is None:
            facts = self._facts = Env(
                now=self.now_ms,
                check=check_schema,
                blob=self.blob,
                run_exists=self.run_exists,
                keep=self.keep,
                log=lambda: self.reading.all() if self.reading is not None else None,
                replayed=lambda version: log_reading.replay_report(self, version),
                recall=self.ports.opened.recall,
                check_child=self.ports.check_child,
                check_result=self.ports.check_result,
                patches_max=self.ports.patches_max,
            )
        facts.now = self.now_ms
        return facts

    def now(self) -> int:
        return self.now_ms

    def is_new(self) -> bool:
        return not self.committed_seq

    def new_id(self) -> str:
        return self.ports.new_id()

    def emit(self, stream: str, raw: bytes, place: str, *, at_root: bool = False) -> None:
        """Emit output of the code. Replay emits the same chunk, which the store knows by its place and content."""
        root = self.machine.state.root if at_root else ""
        key = f"{self.uid}/{place}={values.digest(raw)}" if root else f"{place}={values.digest(raw)}"
        uid = RunUid(root) if root else self.uid
        self.open_draft().chunks += (NewChunk(uid=uid, stream=stream, key=key, body=raw, at=self.now_ms),)

    def drop_from(self, entry: EntryId) -> None:
        self.issue(c.DropEntries(entry))
        self.driver = None
        self._move_later()

    def hold_other_input(self, location: str, entry: EntryId, asked: bytes, where: str) -> None:
        background = self.ports.background
        background.call_soon(background.spawn, hold_other_arguments(self, location, entry, asked, where), self)

    def open_draft(self) -> Draft:
        """Return the draft that takes the next event."""
        drafts = self.drafts
        if drafts:
            last = drafts[-1]
            if len(last.events) + len(last.chunks) < EVENTS_PER_APPEND_MAX and last.size_bytes < _DRAFT_BYTES_MAX:
                return last
        drafts.append(Draft(uid=self.uid, epoch=self.epoch, seq=Seq(self.machine.state.seq)))
        return drafts[-1]

    def _record_events(self, events: Sequence[e.AnyEvent]) -> None:
        machine = self.machine
        state = machine.state
        now = self.now_ms
        before, asking = state.status, bool(state.asks or state.reviews)
        draft = self.open_draft()
        if self.reading is not None:
            self.reading.tail += [PastEvent(now, event) for event in events]
        if state.accounted and self.covers is None:
            self.covers = OpenCovers(state)
        for event in events:
            machine.evolve(event, at=now)
            effects, letters = machine.effects(event), machine.mail(event)
            draft.record(e.encode(event), now)
            if state.accounted:
                add_moves(self, draft, event, effects)
            if type(event) is e.TaskScheduled and event.early:
                for effect in effects:
                    self.ports.background.call_soon(self.ports.apply_effect, self, effect)
            else:
                draft.effects.extend(effects)
            for letter in letters:
                add_mail(self, draft, letter)
            if type(event) in INDEXED:
                index_event(self, draft, event)
        if asking is not bool(state.asks or state.reviews):
            draft.attributes = {**(draft.attributes or {}), ASKING: None if asking else True}
        if state.status != before or draft.create is not None or self.pending:
            draft.status = state.status
            self.pending = False
        if state.status == "held" and self.driver is not None:
            self.driver = None
        changed = bool(events) and type(events[-1]) in (e.ResultSet, e.RunPatched, e.RunRetried)
        if self.driver is not None and (changed or (state.ended and not self.driver.settled())):
            self.driver.close()  # its past or its version has changed, or the run ends without its code
            self.driver = None
        if changed and machine.style.has_code:
            self._move_later()  # the code begins again, also if this followed without a command

    def keep(self, raw: bytes, *, apart: bool = False) -> Raw:
        """Return a value of the code for the log. A large one, or one ``apart``, is a blob, put before the append."""
        sealed = None if apart else values.seal_inline(raw)
        if sealed is not None:
            return Raw(sealed)
        digest, ref = self.ports.values.hold(raw)
        self.open_draft().puts[digest] = raw
        return Raw(ref)

    def blob(self, digest: str) -> bytes | None:
        found = self.fetched.get(digest) or (self.reading.blobs.get(digest) if self.reading is not None else None)
        if isinstance(found, WeftError):
            raise found
        return found or self.ports.values.cached(digest) or self._undurable_blob(digest)

    def _undurable_blob(self, digest: str) -> bytes | None:
        """Return a blob of a draft that is not durable yet: it may have left the cache, and is not in the store."""
        return next((draft.puts[digest] for draft in self._undurable_drafts() if digest in draft.puts), None)

    def run_exists(self, run_id: str) -> bool | None:
        """Return whether there is a run with this id. None: this must be fetched first, for each decision anew."""
        found = self.fetched.pop(run_key(run_id), None)
        return None if found is None else found == EXISTS

    def proceed(self, *, after_mail: bool = False) -> None:
        """Let the run continue, because its inputs are in memory. With ``after_mail``, its mail is recorded first."""
        if not self.ready or (self.reading is not None and log_reading.awaits_mailed_patch(self)):
            return
        try:
            self.begin_turn()
            if not after_mail or self.accept_mail():
                self.move()
            self.end_turn()
        except BaseException as error:
            if ends_host(error):
                raise
            self.give_up(error)

    # --- committing -----------------------------------------------------------------------------------------------

    def take_draft(self) -> Draft | None:
        """Return the draft to commit next. Raises nothing, because the writer serves many runs."""
        try:
            while self.drafts and self.in_flight is None and self.ready:
                draft = self.drafts.pop(0)
                if not draft.events and draft.is_empty():
                    answer_in_time(self, draft)
                    continue
                tail_bytes = self.tail_bytes + draft.size_bytes
                if tail_bytes > SNAPSHOT_BYTES_MIN and tail_bytes > self.snapshot_bytes and not self.drafts:
                    add_snapshot(self, draft)
                if self.idle_until is not None or not self.machine.state.tasks:
                    record_idle(self, draft)
                if self.ports.hot is not None:
                    draft.through = must_be_through(self, draft)
                self.in_flight = draft
                self.stalls_asked = self.ports.heartbeat.stalls
                return draft
        except Exception as error:  # noqa: BLE001 - see give_up
            self.give_up(error)
        return None

    def committed(self, draft: Draft, outcome: Outcome) -> None:
        if self.in_flight is not draft:
            return
        if outcome is not ACCEPTED:
            self.ports.on_refused(self, draft, outcome)
            return
        self.in_flight = None
        self.stalls = self.stalls_asked
        try:
            self.on_committed(draft)
        except Exception as error:  # noqa: BLE001 - see give_up
            self.give_up(error)
        if self.drafts:
            self.ports.submit(self)
        if self.waits_for_commit and len(self.drafts) <= DRAFTS_AHEAD_MAX:
            self.waits_for_commit = False
            self.ports.background.call_soon(self._next_slice)

    def on_committed(self, draft: Draft) -> None:
        """Answer the commands of a durable append and apply its effects."""
        self.committed_seq = Seq(draft.seq + len(draft.events))
        self.owner_died = False
        self.tail_bytes += draft.size_bytes
        ports, dispatch, publish = self.ports, self.ports.dispatch, self.ports.publish
        if self.uid in ports.memos.expected:
            ports.memos.on_committed(self, draft)
        self.answer_commands(draft)
        for effect in draft.effects if not draft.ledger else covered_effects(self, draft):
            if boundaries.hook is not None:
                boundary("effect.before")
            if type(effect) is not PerformTask:
                ports.apply_effect(self, effect)
            elif self.is_open(effect):  # or a later decision, not durable yet, has cancelled this task
                dispatch(self, effect)
        for mail in draft.mail:
            ports.post_local(mail)
        for child in draft.children:
            ports.adopt(child)
        if draft.events:
            publish(self, draft)

    def unknown(self, draft: Draft, error: Exception, *, guilty: bool) -> None:
        if self.in_flight is draft:
            self.ports.on_unknown(self, draft, error, guilty)

    answer_commands = answer_commands

    # --- ending ---------------------------------------------------------------------------------------------------

    def is_open(self, effect: PerformTask) -> bool:
        """Return whether this delivery of a task is still needed."""
        state = self.machine.state
        task = state.tasks.get(effect.task)
        live = task is not None and task.attempt == effect.attempt and task.delivery == effect.delivery
        return live and state.status != "paused"

    def is_committed(self) -> bool:
        """Return whether all decisions are durable."""
        return not self.drafts and self.in_flight is None

    def is_idle(self) -> bool:
        """Return whether the run may leave memory: it has no commands, drafts, commit or fetch in progress."""
        lacks = self.fetching or self.reading is not None or (self.driver is not None and self.driver.missing_blobs)
        waits = self.mailbox or self.drafts or self.in_flight is not None or self._scheduled or lacks
        return self.ready and not waits

    def close(self) -> None:
        """Remove the code from memory."""
        self.ready, self._facts = False, None  # the facts refer to this run: breaks a reference cycle
        if self.driver is not None:
            self.driver.close()
            self.driver = None

    unanswered = unanswered
    take_unanswered = take_unanswered
