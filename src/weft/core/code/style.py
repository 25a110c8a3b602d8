"""The style of code runs: entries by location, and facts in the order of the log.

The driver looks up each *ask* of the code by its location. Only an ask that is not recorded yet becomes a command. When
an entry ends (by a result, a timer, a message or a child), its number is appended to ``facts``. The code receives the
facts in exactly this order, both live and on replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core.code import asks, edits, endings, patch
from weft.core.code.locations import readable_path
from weft.core.code.retry import decide_retry, decide_set_ended
from weft.core.code.state import CodeIndex, CodeState, Entry
from weft.core.ids import CANCEL, EntryId
from weft.core.run import asked_patches, lifecycle, undo
from weft.core.run.children import start_for_child
from weft.core.run.decide import DECIDE
from weft.core.run.effects import EFFECTS
from weft.core.run.env import Env
from weft.core.run.evolve import with_style_rows
from weft.core.run.fork import never_reached
from weft.core.run.mail import MAIL
from weft.core.run.state import Status, Undo
from weft.core.run.statuses import not_in_graph
from weft.core.run.style import DecideRows, EffectRows, Ended, EvolveRows, JudgedPatch, MailRows
from weft.errors import Failure

_encode = msgspec.json.Encoder().encode
TIMED_OUT = "wait.timed_out"
_INSTANT_KINDS = ("now", "random", "uuid", "version", "map", "set", "answer")
"""The kinds of entries that are done as soon as they are recorded. They are not facts."""
_KINDS: dict[type, str] = {
    e.TaskScheduled: "step",
    e.TimerSet: "sleep",
    e.MessageAwaited: "receive",
    e.AskOpened: "ask",
    e.ChildStarted: "child",
}


class CodeStyle:
    """The entries of one code run."""

    __slots__ = ("index", "state", "still")

    name = "code"
    has_code = True
    retried_from: ClassVar[frozenset[Status]] = frozenset({"failed", "held", "paused"})
    repeats_undone = True
    unanswered = ""
    mail: ClassVar[MailRows] = MAIL
    effects: ClassVar[EffectRows] = {
        **EFFECTS,
        e.RunPatched: lambda run, event: (*asked_patches.disarm(run, event), *run.outstanding()),
    }
    consequences = None
    follow = None

    def __init__(self, state: CodeState) -> None:
        self.state = state
        self.index = CodeIndex(state)
        self.still = (0, 0)
        """A range of events, after the first number and up to the second, that only concern waiting patches."""

    # --- called by the kernel -------------------------------------------------------------------------------------

    def begin(self, command: c.StartRun, env: Env) -> Sequence[e.AnyEvent]:
        """Start the run. The driver then calls the code."""
        return lifecycle.decide_start(self.state, command, env.now)

    def locate(self, number: int) -> str:
        entry = self.state.entries.get(number)
        return entry.key if entry is not None else ""

    def question(self, name: int | str) -> int | None:
        number = name if isinstance(name, int) else self.index.keys.get(name)
        entry = self.state.entries.get(number) if number is not None else None
        return number if entry is not None and (entry.kind == "ask" or number in self.state.asks) else None

    def set_ended(self, command: c.SetResult) -> Sequence[e.AnyEvent]:
        return decide_set_ended(self.state, self.index, command)

    def result_error(self, number: int, output: Raw, env: Env) -> str | None:
        return None

    def needs_log(self, command: c.PatchRun | c.RetryRun) -> bool:
        return False

    def retry(self, command: c.RetryRun, env: Env) -> Sequence[e.AnyEvent]:
        return decide_retry(self.state, self.index, command)

    def judge_patch(self, command: c.PatchRun, env: Env) -> JudgedPatch:
        return patch.judge_patch(self.state, self.still, command)

    @property
    def review(self) -> Sequence[str]:
        return self.state.review

    def no_work_at(self, place: str) -> str:
        state = self.state
        steps = [*(entry.key for entry in state.entries.values() if entry.kind in ("step", "child")), *state.earlier]
        names = [step.rpartition("/")[2].partition("#")[0] for step in steps]  # other code may come there another way
        return never_reached(place, c.EditRun(steps=steps, more=names))

    def step_at(self, place: str) -> str:
        return place.rpartition("/")[2].partition("#")[0]

    def named_places(self) -> Sequence[str]:
        return ()

    def is_all_at(self, place: str) -> bool:
        raise not_in_graph(self.state, place)

    def cancel_open(self) -> Sequence[e.AnyEvent]:
        return lifecycle.cancel_open(self.state)

    def undo(self, done: Undo, env: Env) -> Sequence[e.AnyEvent]:
        return (undo.schedule_undo(done),)

    def join_undo(self, dropped: list[Undo]) -> None:
        undo.join_stack(self.state, dropped)

    def start_for_child(self, event: e.ChildStarted) -> c.StartRun:
        return start_for_child(self.state, event)

    # --- changes of entries ---------------------------------------------------------------------------------------

    def opened(self, event: Any) -> None:
        """Create the entry that the code waits for."""
        kind = _KINDS[type(event)]
        entry = self._open(event, kind)
        if kind == "step":
            entry.digest = event.digest
            entry.optional = event.policy.effect == "pure" or event.early
            entry.once = event.step if event.policy.effect == "irreversible" else ""
            self._forget_earlier(entry, event.again)
        elif kind == "receive":
            entry.due = event.due
        elif kind == "child":
            entry.digest = event.digest
            entry.child = event.run_id
            if event.refused is not None:
                self._fail(entry, event.refused)

    def _forget_earlier(self, entry: Entry, again: e.Repetition | None) -> None:
        """Forget the work that an entry repeats. A result that was kept for another place is no longer there."""
        earlier = self.state.earlier
        earlier.pop(entry.key, None)
        if again is not None and again.kept and again.place in earlier:
            del earlier[again.place]
            moved = self.index.find(again.place)
            if moved is not None:
                self._drop(moved.id)

    def settled(self, ended: Ended) -> None:
        """Store the result of an entry and append it to the facts for the code."""
        entry = self.state.entries.get(ended.number)
        if ended.how == "stopped":
            self._mark_cancelled(entry, ended.number)
            return
        if entry is None or (entry.status != "open" and not self._has_succeeded_late(entry, ended)):
            return
        if ended.how == "late":
            message = f"{entry.key} did not come in time"
            self._fail(entry, Failure(type="TimedOut", message=message, code=TIMED_OUT))
        elif ended.failure is not None:
            if ended.how == "child":
                # Keep the child's status: its own failure may look like a timeout of the wait in this run.
                entry.output = Raw(_encode(ended.status))
            self._fail(entry, ended.failure)
        else:
            entry.status = "done"
            entry.output = Raw(_encode(ended.messages)) if ended.how == "messages" else ended.output
            if ended.task is None:
                entry.once = ""  # nobody performed it
            self.state.facts.append(ended.number)

    def _has_succeeded_late(self, entry: Entry, ended: Ended) -> bool:
        """Return whether a task succeeded after the code had ended. A retry can use its result."""
        return entry.status == "cancelled" and ended.how == "task" and self.state.ended and ended.failure is None

    def retry_later(self, number: int, due: int) -> None:
        """Do nothing, because the entry stays open until the next attempt ends."""

    def _mark_cancelled(self, entry: Entry | None, number: int) -> None:
        state = self.state
        if entry is not None and entry.status == "open":
            entry.status = "cancelled"
        task = state.tasks.get(number)
        if task is not None and task.draining and entry is not None:
            task.place = entry.key
        if task is not None and task.draining and not (state.timed_out or state.ended) and state.cancelled is None:
            undo.add_reversal(state, [number], ())  # if the cancelled task completes anyway, it is undone

    # --- entries --------------------------------------------------------------------------------------------------

    def _open(self, event: Any, kind: str) -> Entry:
        """Create an entry at the event's place and register new names."""
        state, index = self.state, self.index
        if event.add:
            index.register(event.add)
        entry = Entry(id=EntryId(state.seq), key=readable_path(event.at, state.names), kind=kind)
        if state.earlier and (kept := index.find(entry.key)) is not None:
            self._drop(kept.id)  # its result is for another input
        state.entries[state.seq] = entry
        index.add(entry)
        return entry

    def _settle(self, entry: Entry, output: Raw) -> None:
        if entry.status == "open":
            entry.status = "done"
            entry.output = output
            self.state.facts.append(entry.id)

    def _fail(self, entry: Entry, failure: Failure) -> None:
        entry.status = "failed"
        entry.failure = failure
        self.state.facts.append(entry.id)

    def _drop_scope(self, prefix: str) -> None:
        state = self.state
        for number in self.index.drop(prefix):
            if state.earlier and number in state.entries:
                state.earlier.pop(state.entries[number].key, None)
            self._drop(number)
        if state.dropped > 256 and state.dropped * 2 > len(state.facts):
            state.facts = [fact for fact in state.facts if fact == CANCEL or fact in state.entries]
            state.dropped = 0

    def _drop(self, number: int) -> None:
        """Remove an entry from the state. Its undo and a cancelled child stay in the state."""
        state, index = self.state, self.index
        entry = state.entries.pop(number, None)
        if entry is None:
            return
        index.forget(entry)
        task = state.tasks.get(number)
        if task is not None and not task.draining:
            del state.tasks[number]
        state.timers.pop(number, None)
        state.waits.pop(number, None)
        state.asks.pop(number, None)
        state.dropped += entry.status in ("done", "failed") and entry.kind not in _INSTANT_KINDS

    # --- events ---------------------------------------------------------------------------------------------------

    def _add_cancel_fact(self, event: e.CancelRequested | e.RunTimedOut) -> None:
        self.state.facts.append(CANCEL)

    def _evolve_retried(self, event: e.RunRetried) -> None:
        self._drop_to_repeat(event.dropped, min(event.dropped, default=self.state.seq))

    def _evolve_result_set(self, event: e.ResultSet) -> None:
        """Replace the result of an entry that has ended. An open one ends by the next event."""
        entry = self.state.entries.get(event.entry)
        if entry is None or not (bytes(event.output) or event.failure is not None):
            return
        self._drop_to_repeat(event.dropped, entry.id)
        entry.status = "done" if event.failure is None else "failed"
        entry.output, entry.failure = event.output or e.NULL, event.failure
        entry.optional = True
        if entry.id not in self.state.facts and entry.kind not in _INSTANT_KINDS:
            self.state.facts.append(entry.id)
        self.state.undone = [place for place in self.state.undone if place != entry.key]

    def _drop_to_repeat(self, dropped: Sequence[int], first: int) -> None:
        """Remove entries that the code will ask for again, because the result of entry ``first`` may change."""
        state = self.state
        for number in dropped:
            entry = state.entries.get(number)
            if entry is not None and entry.kind == "child":
                state.reborn[entry.key] = state.reborn.get(entry.key, 0) + 1
            self._drop(number)
        # With a new result of a dropped entry, the code may skip entries that were recorded after it.
        for number, entry in state.entries.items():
            if number > first:
                entry.optional = True
        is_cancelled = state.cancelled is not None
        state.facts = [fact for fact in state.facts if fact in state.entries or (fact == CANCEL and is_cancelled)]
        state.dropped = 0
        state.steps_done = sum(1 for entry in state.entries.values() if entry.kind == "step" and entry.status == "done")

    def _evolve_forked(self, event: e.RunForked) -> None:
        for child in event.children:
            if child.entry in self.state.entries:
                self.state.entries[child.entry].child = child.run_id

    def _evolve_edited(self, event: e.RunEdited) -> None:
        edits.evolve_edited(self.index, event)

    def _evolve_patched(self, event: e.RunPatched) -> None:
        patch.evolve_patch(self.state, event)

    def _patch_noted(self, _: Any) -> None:
        """Note an event that is only about a patch that waits. What a replay found before it still holds."""
        first, last = self.still
        seq = self.state.seq
        self.still = (first if last == seq - 1 else seq - 1, seq)

    def _evolve_answered(self, event: e.AskAnswered) -> None:
        if event.ask in self.state.asked:
            self._patch_noted(event)

    def _evolve_dropped(self, event: e.EntriesDropped) -> None:
        state = self.state
        for number in event.dropped:
            entry = state.entries.get(number)
            if entry is not None and entry.kind == "child":
                state.reborn[entry.key] = state.reborn.get(entry.key, 0) + 1
            self._drop(number)
        state.facts = [fact for fact in state.facts if fact == CANCEL or fact in state.entries]
        state.dropped = 0
        state.steps_done = sum(1 for entry in state.entries.values() if entry.kind == "step" and entry.status == "done")

    def _evolve_attributes_set(self, event: e.AttributesSet) -> None:
        self._open(event, "set").status = "done"
        for name, value in event.attributes.items():
            if value is None:
                self.state.attributes.pop(name, None)
            else:
                self.state.attributes[name] = value

    def _evolve_message_refused(self, event: e.MessageRefused) -> None:
        entry = self.state.entries.get(event.wait)
        if entry is not None:
            entry.round = 1

    def _evolve_message_answered(self, event: e.MessageAnswered) -> None:
        if event.at:
            self._open(event, "answer").status = "done"

    def _evolve_value_recorded(self, event: e.ValueRecorded) -> None:
        entry = self._open(event, event.of)
        self.state.is_agent = self.state.is_agent or event.of == "spec"
        entry.status = "done"
        entry.output = event.value

    def _evolve_race_decided(self, event: e.RaceDecided) -> None:
        entry = self._open(event, "race")
        self._settle(entry, Raw(_encode(event.winner)))
        losers = tuple(f"{entry.key}/{loser}/" for loser in event.losers)
        self._undo_losers(losers)
        for prefix in losers:
            self._drop_scope(prefix)

    def _undo_losers(self, prefixes: tuple[str, ...]) -> None:
        """Undo the work of the losers of a race, once their running tasks have ended."""
        tasks = self.state.tasks
        numbers = [number for prefix in prefixes for number in self.index.below(prefix)]
        if numbers:
            draining = [number for number in numbers if number in tasks and tasks[number].draining]
            undo.drop_work(self.state, draining, lambda done: done.location.startswith(prefixes), since=min(numbers))

    def _loop_entry(self, event: e.LoopTurned | e.LoopFinished) -> Entry:
        if not event.add:
            number = self.index.keys.get(readable_path(event.at, self.state.names))
            if number is not None:
                return self.state.entries[number]
        return self._open(event, "loop")

    def _evolve_loop_turned(self, event: e.LoopTurned) -> None:
        entry = self._loop_entry(event)
        entry.round = event.round
        entry.output = event.state
        oldest = event.round - event.keep - 1
        if oldest >= 0:
            self._drop_scope(f"{entry.key}/~{oldest}/")

    def _evolve_loop_finished(self, event: e.LoopFinished) -> None:
        entry = self._loop_entry(event)
        self._drop_scope(f"{entry.key}/")
        entry.round = event.rounds
        self._settle(entry, event.output)

    evolve: ClassVar[EvolveRows] = with_style_rows(
        {
            e.CancelRequested: _add_cancel_fact,
            e.RunTimedOut: _add_cancel_fact,
            e.RunRetried: _evolve_retried,
            e.RunForked: _evolve_forked,
            e.RunEdited: _evolve_edited,
            e.RunPatched: _evolve_patched,
            e.PatchAsked: _patch_noted,
            e.PatchReviewAsked: _patch_noted,
            e.PatchDropped: _patch_noted,
            e.AskAnswered: _evolve_answered,
            e.EntriesDropped: _evolve_dropped,
            e.ResultSet: _evolve_result_set,
            e.AttributesSet: _evolve_attributes_set,
            e.MessageRefused: _evolve_message_refused,
            e.MessageAnswered: _evolve_message_answered,
            e.ValueRecorded: _evolve_value_recorded,
            e.RaceDecided: _evolve_race_decided,
            e.LoopTurned: _evolve_loop_turned,
            e.LoopFinished: _evolve_loop_finished,
        }
    )

    decide: ClassVar[DecideRows] = {
        **DECIDE,
        **dict.fromkeys(asks.ASKS, asks.decide_code_ask),
        c.RefuseMessage: endings.decide_refuse_message,
        c.CancelEntry: endings.decide_cancel_entry,
        c.CompleteRun: endings.decide_complete,
        c.FailRun: endings.decide_fail,
        c.EndCancelled: endings.decide_end_cancelled,
        c.EditRun: edits.decide_edit,
        c.DropEntries: edits.decide_drop,
    }


EVENTS: frozenset[type] = frozenset(CodeStyle.evolve) - {e.WorkAccepted}
"""All events that the log of a code run can contain."""
FORK_EVENTS: frozenset[type] = frozenset(
    {e.RunForked, e.ResultsKnown, e.RunEdited, e.EntriesDropped, e.TaskReleased, e.PerformAsked}
)
"""The events that only a fork has."""
ASKED_EVENTS: frozenset[type] = frozenset({e.PatchAsked, e.PatchReviewAsked, e.PatchDropped})
"""The events of a patch that waits or is reviewed."""
