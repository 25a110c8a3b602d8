"""Deliberate bugs, one function each: those that other engines had, and those that this one had."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tests.sim.code_patches import CODE_PATCHES
from tests.sim.requests import REQUESTS
from tests.sim.workflows import Cast
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.style import CodeStyle
from weft.core.effects import PerformTask
from weft.core.ids import Epoch, Seq
from weft.core.run import lifecycle, tasks, timers, undo
from weft.ports.store import Outcome, StoredEvent
from weft.runtime import dispatcher
from weft.runtime.ownership import load, release
from weft.runtime.run import actor, private_loop
from weft.runtime.run.append_extras import index_event
from weft.runtime.run.draft import PendingCommand
from weft.runtime.worker import step_worker
from weft.stores.judge import judge_append
from weft.stores.memory import log
from weft.stores.memory.content import MemoryContent

Mutant = Callable[[], contextlib.AbstractContextManager[None]]
MUTANTS: dict[str, Mutant] = {}
PLAYED_BY: dict[str, Cast] = {}
"""Whose worlds must catch a bug, where it is not code."""


def mutant(make: Callable[[], Iterator[None]]) -> Mutant:
    """Register a bug under the name of its function."""
    planted = contextlib.contextmanager(make)
    MUTANTS[make.__name__] = planted
    return planted


@contextlib.contextmanager
def swap(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Put something in the place of an attribute, for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def reports_come_twice() -> Iterator[None]:
    """No bug: a worker may report a result again. The worlds are the same, and so is every promise."""
    reported = dispatcher.Dispatcher.on_report

    def twice(self: dispatcher.Dispatcher, flight: Any, report: Any) -> None:
        reported(self, flight, report)
        if flight.offer is None:
            self._background.call_soon(reported, self, flight, report)

    with swap(dispatcher.Dispatcher, "on_report", twice):
        yield


# --- commit ------------------------------------------------------------------------------------------------------


@mutant
def blind_retry_after_an_unknown_commit() -> Iterator[None]:
    """The commit did not answer, so it is written once more, at the end of the log as it is now."""

    def unknown(self: actor.Actor, draft: Any, error: Exception, *, guilty: bool) -> None:
        content: MemoryContent = self.ports.read_event.__self__.store.inner.content  # type: ignore[attr-defined]
        run = content.runs.get(self.uid)
        draft.seq = run.seq if run is not None else 0
        draft.create = None if run is not None else draft.create
        draft.events = [
            StoredEvent(Seq(draft.seq + i), event.at, event.body) for i, event in enumerate(draft.events, 1)
        ]
        self.in_flight = None
        self.drafts.insert(0, draft)
        self.ports.submit(self)

    with swap(actor.Actor, "unknown", unknown):
        yield


@mutant
def missing_epoch_check_in_the_store() -> Iterator[None]:
    judge = judge_append

    def careless(run: Any, append: Any, host: Any, keys: Any) -> Outcome:
        if run is not None and append.reopen is None:
            append = msgspec.structs.replace(append, epoch=run.epoch)
            host = run.owner
        return judge(run, append, host, keys)

    with swap(log, "judge_append", careless):
        yield


@mutant
def terminal_append_without_the_mail_count() -> Iterator[None]:
    judge = judge_append

    def careless(run: Any, append: Any, host: Any, keys: Any) -> Outcome:
        outcome = judge(run, append, host, keys)
        return Outcome.ACCEPTED if outcome is Outcome.MAIL_WAITING else outcome

    with swap(log, "judge_append", careless):
        yield


@mutant
def effect_before_commit() -> Iterator[None]:
    record = actor.Actor._record_events

    def hasty(self: actor.Actor, events: Any) -> None:
        record(self, events)
        for draft in self.drafts:
            for effect in [effect for effect in draft.effects if isinstance(effect, PerformTask)]:
                self.ports.apply_effect(self, effect)

    with swap(actor.Actor, "_record_events", hasty):
        yield


@mutant
def answer_before_commit() -> Iterator[None]:
    decide = actor.Actor._decide_and_record

    def hasty(self: actor.Actor, posted: PendingCommand) -> bool:
        decided = decide(self, posted)
        if posted.reply is not None and not any(posted is p for d in self.drafts for p, _ in d.refused):
            posted.reply(None)
        return decided

    with swap(actor.Actor, "_decide_and_record", hasty):
        yield


@mutant
def unanswered_commands_are_dropped_at_a_reload() -> Iterator[None]:
    with swap(actor.Actor, "take_unanswered", lambda self: []):
        yield


# --- ownership ---------------------------------------------------------------------------------------------------


@mutant
def claim_without_a_new_epoch() -> Iterator[None]:
    """Ownership by who seems alive, not by number."""
    claim = log.MemoryLog.claim

    async def by_clock(self: Any, uids: Any, host: Any, *, expected: Any) -> Any:
        rows = await claim(self, uids, host, expected=expected)
        for row in rows:
            self._content.runs[row.uid].epoch = row.epoch - 1
        return [msgspec.structs.replace(row, epoch=Epoch(row.epoch - 1)) for row in rows]

    with swap(log.MemoryLog, "claim", by_clock):
        yield


@mutant
def recovery_without_task_lost() -> Iterator[None]:
    with swap(load.Loader, "_lost_tasks", lambda self, actor: []):
        yield


@mutant
def work_in_flight_is_handed_out_again() -> Iterator[None]:
    hand_out = step_worker.StepWorker.perform

    def careless(self: step_worker.StepWorker, flight: Any) -> None:
        self.flights.get(flight.uid, {}).pop(flight.effect.task, None)
        hand_out(self, flight)

    with swap(step_worker.StepWorker, "perform", careless):
        yield


@mutant
def a_result_is_forgotten_before_it_is_committed() -> Iterator[None]:
    reported = dispatcher.Dispatcher.on_report

    def forgetful(self: dispatcher.Dispatcher, flight: Any, report: Any) -> None:
        self._worker.answered(flight)
        reported(self, flight, report)

    with swap(dispatcher.Dispatcher, "on_report", forgetful):
        yield


# --- tasks -------------------------------------------------------------------------------------------------------


@mutant
def undo_oldest_first() -> Iterator[None]:
    follow = lifecycle.follow_end

    def backwards(run: Any, env: Any) -> Any:
        state = run.state
        if state.undo and len(state.undo) > 1 and not state.tasks:
            state.undo.insert(0, state.undo.pop())
        return follow(run, env)

    with swap(lifecycle, "follow_end", backwards):
        yield


@mutant
def a_cancelled_task_is_not_waited_for() -> Iterator[None]:
    def dropped(state: Any, event: Any, place: str) -> bool:
        child = state.children.get(event.entry)
        if child is not None:
            child.cancelled = True
            return False
        tables = (state.tasks, state.timers, state.waits, state.asks)
        return any(table.pop(event.entry, None) is not None for table in tables)

    with swap(lifecycle, "evolve_cancelled_entry", dropped):
        yield


@mutant
def a_second_success_is_accepted() -> Iterator[None]:
    """The fence of results is down, in worlds whose results come twice: the log takes the second one too."""
    decide, evolve = tasks.decide_succeeded, tasks.evolve_succeeded
    ended: dict[tuple[str, int], Any] = {}

    def trusting(state: Any, report: Any) -> Any:
        if report.task not in state.tasks and (state.uid, report.task) in ended and not state.over:
            return (e.TaskSucceeded(task=report.task, output=report.output, attempt=report.attempt),)
        return decide(state, report)

    def again(run: Any, event: Any) -> Any:
        state = run.state
        if event.task not in state.tasks:
            state.tasks[event.task] = ended[state.uid, event.task]
        ended[state.uid, event.task] = state.tasks[event.task]
        return evolve(run, event)

    with reports_come_twice(), swap(tasks, "decide_succeeded", trusting), swap(tasks, "evolve_succeeded", again):
        yield


# --- mail and time -----------------------------------------------------------------------------------------------


@mutant
def an_answer_is_not_found_by_its_request() -> Iterator[None]:
    index = index_event

    def forgetful(run: Any, draft: Any, event: Any) -> None:
        if not isinstance(event, e.MessageAnswered):
            index(run, draft, event)

    with swap(actor, "index_event", forgetful):
        yield


PLAYED_BY["an_answer_is_not_found_by_its_request"] = REQUESTS


@mutant
def mail_by_high_water_mark() -> Iterator[None]:
    """Anything that is not newer than the newest seen is taken for a duplicate."""
    post = actor.Actor.post

    def by_mark(self: actor.Actor, posted: PendingCommand) -> None:
        if posted.mail_id and any(seen >= posted.mail_id for seen in self.mail_seen):
            return
        post(self, posted)

    with swap(actor.Actor, "post", by_mark):
        yield


@mutant
def mail_is_taken_whenever_it_is_read() -> Iterator[None]:
    with swap(actor.Actor, "_remember_mail", lambda self, mail_id: None):
        yield


@mutant
def a_key_that_came_by_mail_is_forgotten() -> Iterator[None]:
    with swap(load, "posted_mail", lambda mail: PendingCommand(c.decode(mail.body), mail_id=mail.id)):
        yield


@mutant
def timer_before_the_inbox() -> Iterator[None]:
    async def at_once(self: dispatcher.Dispatcher, actor: Any, entry: Any) -> None:
        actor.post(PendingCommand(c.FireTimer(entry)))

    with swap(dispatcher.Dispatcher, "_fire_after_mail", at_once):
        yield


@mutant
def an_early_timer_is_believed() -> Iterator[None]:
    """The clock was set back while the inbox was read, after the timer had been found due."""
    decide = timers.decide_timer

    def believing(state: Any, command: Any, env: Any) -> Any:
        return decide(state, command, msgspec.structs.replace(env, now=1 << 60))

    with swap(timers, "decide_timer", believing):
        yield


PLAYED_BY["an_early_timer_is_believed"] = REQUESTS


@mutant
def rest_without_a_time_to_wake() -> Iterator[None]:
    with swap(release.Releaser, "_wake_at", lambda self, actor: None):
        yield


@mutant
def a_run_completes_before_its_losers_are_undone() -> Iterator[None]:
    with swap(undo, "has_dropped", lambda state: False), swap(lifecycle, "has_dropped", lambda state: False):
        yield


# --- code --------------------------------------------------------------------------------------------------------


@mutant
def set_order_in_the_loop_of_the_code() -> Iterator[None]:
    def by_address(self: Any) -> int:
        return id(self) >> 4

    with swap(private_loop.ScopedTask, "__hash__", by_address):
        yield


@mutant
def facts_in_the_order_of_entries() -> Iterator[None]:
    """Replay tells the code what it recorded in the order in which it asked, not in which it heard."""
    restore = load.Loader._restore_actor

    def sorted_facts(self: Any, actor: Any, loaded: Any, *, died: bool, refusal: Any) -> None:
        restore(self, actor, loaded, died=died, refusal=refusal)
        actor.machine.state.facts.sort()

    with swap(load.Loader, "_restore_actor", sorted_facts):
        yield


# --- patches of code ---------------------------------------------------------------------------------------------


@mutant
def a_patch_is_applied_though_the_run_has_gone_on() -> Iterator[None]:
    """The log was replayed before its last events came, which do not fit the version."""
    judged = CodeStyle.judge_patch

    def believed(self: CodeStyle, command: Any, env: Any) -> Any:
        return msgspec.structs.replace(judged(self, command, env), is_outdated=False)

    with swap(CodeStyle, "judge_patch", believed):
        yield


@mutant
def a_host_keeps_a_run_whose_version_it_does_not_have() -> Iterator[None]:
    wake_at = release.Releaser._wake_at

    def keep(self: Any, actor: Any) -> Any:
        self._runs.misplaced.discard(actor.uid)
        return wake_at(self, actor)

    with swap(release.Releaser, "_wake_at", keep):
        yield


for _name in (
    "a_patch_is_applied_though_the_run_has_gone_on",
    "a_host_keeps_a_run_whose_version_it_does_not_have",
):
    PLAYED_BY[_name] = CODE_PATCHES
