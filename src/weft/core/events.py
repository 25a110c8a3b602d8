"""The events of a run. Each is immutable and stored in the log as one JSON object.

An event refers to an entry by the sequence number of the event that created it, so each location is written only once.
Times are milliseconds since 1970. ``Raw`` fields have the user's values as JSON, encoded on arrival; large values are
references to blobs. Released events never change. To extend the format, add an event, or add a field with a default.
"""

# ruff: noqa: PLC0414 - this module re-exports all events and their parts; import them from here

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.budget_events import BudgetRaised as BudgetRaised
from weft.core.budget_events import BudgetSet as BudgetSet
from weft.core.budget_events import BudgetWarned as BudgetWarned
from weft.core.budgets import BudgetLimits
from weft.core.event_parts import ABSENT as ABSENT
from weft.core.event_parts import DEFAULT_POLICY as DEFAULT_POLICY
from weft.core.event_parts import NULL as NULL
from weft.core.event_parts import Earlier as Earlier
from weft.core.event_parts import EdgeVerdict as EdgeVerdict
from weft.core.event_parts import Effect as Effect
from weft.core.event_parts import ForkedFrom as ForkedFrom
from weft.core.event_parts import LogEvent as LogEvent
from weft.core.event_parts import Parent as Parent
from weft.core.event_parts import Path as Path
from weft.core.event_parts import Policy as Policy
from weft.core.event_parts import Repetition as Repetition
from weft.core.event_parts import Style as Style
from weft.core.event_parts import Taken as Taken
from weft.core.event_parts import UndoPlan as UndoPlan
from weft.core.event_parts import Write as Write
from weft.core.event_parts import unreadable
from weft.core.fork_events import Effects as Effects
from weft.core.fork_events import EntriesDropped as EntriesDropped
from weft.core.fork_events import KnownResult as KnownResult
from weft.core.fork_events import PerformAsked as PerformAsked
from weft.core.fork_events import RestartedChild as RestartedChild
from weft.core.fork_events import ResultsKnown as ResultsKnown
from weft.core.fork_events import RunEdited as RunEdited
from weft.core.fork_events import RunForked as RunForked
from weft.core.fork_events import TaskReleased as TaskReleased
from weft.core.goal_events import AttributeSet as AttributeSet
from weft.core.goal_events import DeadlinePassed as DeadlinePassed
from weft.core.goal_events import DeadlineSet as DeadlineSet
from weft.core.goal_events import FactRef as FactRef
from weft.core.goal_events import FactsGiven as FactsGiven
from weft.core.goal_events import GoalChange as GoalChange
from weft.core.goal_events import GoalPlanned as GoalPlanned
from weft.core.goal_events import PatchedValue as PatchedValue
from weft.core.goal_events import RecalledStep as RecalledStep
from weft.core.goal_events import StepCompleted as StepCompleted
from weft.core.goal_events import StepFailedEvent as StepFailedEvent
from weft.core.goal_events import StepSkipped as StepSkipped
from weft.core.goal_events import StepStarted as StepStarted
from weft.core.goal_events import WorkAccepted as WorkAccepted
from weft.core.goal_events import WorkRecalled as WorkRecalled
from weft.core.goal_events import WorkResumed as WorkResumed
from weft.core.goal_events import WorkSkipped as WorkSkipped
from weft.core.graph_events import FailureRaised as FailureRaised
from weft.core.graph_events import LetterDiscarded as LetterDiscarded
from weft.core.graph_events import NodeFailed as NodeFailed
from weft.core.graph_events import NodeRouted as NodeRouted
from weft.core.ids import EntryId
from weft.core.patch_events import PatchAsked as PatchAsked
from weft.core.patch_events import PatchDropped as PatchDropped
from weft.core.patch_events import PatchReviewAsked as PatchReviewAsked
from weft.core.patch_events import RepeatedWork as RepeatedWork
from weft.core.patch_events import RunPatched as RunPatched
from weft.core.patch_events import SlotPatch as SlotPatch
from weft.core.patch_events import TokenPatch as TokenPatch
from weft.core.run_rules import RunRules
from weft.core.schedule_events import UNCHANGED as UNCHANGED
from weft.core.schedule_events import BackfillRequested as BackfillRequested
from weft.core.schedule_events import Dst as Dst
from weft.core.schedule_events import Overlap as Overlap
from weft.core.schedule_events import ScheduleCarried as ScheduleCarried
from weft.core.schedule_events import ScheduleDeclared as ScheduleDeclared
from weft.core.schedule_events import ScheduledRunEnded as ScheduledRunEnded
from weft.core.schedule_events import ScheduledRunFound as ScheduledRunFound
from weft.core.schedule_events import ScheduleFired as ScheduleFired
from weft.core.schedule_events import ScheduleMissed as ScheduleMissed
from weft.core.schedule_events import ScheduleQueued as ScheduleQueued
from weft.core.schedule_events import ScheduleSpec as ScheduleSpec
from weft.core.schedule_events import Why as Why
from weft.core.task_events import ResultSet as ResultSet
from weft.core.task_events import TaskFailed as TaskFailed
from weft.core.task_events import TaskLost as TaskLost
from weft.core.task_events import TaskScheduled as TaskScheduled
from weft.core.task_events import TaskSucceeded as TaskSucceeded
from weft.core.task_events import UndoScheduled as UndoScheduled
from weft.errors import Failure

FORMAT = 1
"""The newest event format that this code reads and writes. The row of a run stores the highest one in its log."""


# --- the life of a run -------------------------------------------------------------------------------------------


class RunStarted(LogEvent, frozen=True, kw_only=True, tag="run_started"):
    """The first event of a run.

    ``line`` is the uid of the first run in a line of forks. Ids of tokens, frames and work items derive from it, so a
    fork with another uid can replay the same log. Keys, child uids and references to blobs derive from the run's own
    uid.
    """

    run_id: str
    line: str = ""
    workflow: str
    input: Raw
    version: str = "1"
    style: Style = "code"
    parent: Parent | None = None
    due: int = 0
    attributes: dict[str, Any] = {}
    scheduled_at: int = 0
    defaults: Raw = ABSENT
    """The default values, at the start, of parameters missing from the input."""
    queue: str = ""
    """The queue for steps that do not name one."""
    root: str = ""
    """The uid of the run at the root of the tree, if that is another run."""
    trace: str = ""
    """The W3C traceparent of the caller that started the run."""
    schedule: str = ""
    """The uid of the schedule that started the run. It is told when the run ends."""
    tag: str = ""
    """The tag by which the start named the version, such as ``live`` or ``live~1``."""
    review: list[str] = []
    """Who must agree to every patch of the run, as its code or goal declares. A graph says it in its document."""
    priority: int = 0
    """Of runs and steps that wait, those with a higher priority come first."""
    budgets: list[str] = []
    """The uids of the runs above whose budgets this run spends from, topmost first."""
    currency: str = ""
    """The currency of the money that these budgets limit, if one does."""
    rules: RunRules | None = None
    """Rules for this run alone, if its start gave some."""
    forked_from: ForkedFrom | None = None
    """The original, if the run is a fork. The events up to number ``forked_from.seq`` are those of the original."""


class RunCompleted(LogEvent, frozen=True, kw_only=True, tag="run_completed"):
    """The run completed. ``not_undone`` lists the dropped work whose undo failed."""

    output: Raw = NULL
    not_undone: list[str] = []


class RunFailedEvent(LogEvent, frozen=True, kw_only=True, tag="run_failed"):
    failure: Failure
    not_undone: list[str] = []
    never_begun: bool = False
    """The start was refused, so none of the code ran."""


class RunCancelledEvent(LogEvent, frozen=True, kw_only=True, tag="run_cancelled"):
    reason: str = ""
    not_undone: list[str] = []
    never_begun: bool = False
    """The run was cancelled before any of its code ran."""


class CancelRequested(LogEvent, frozen=True, kw_only=True, tag="cancel_requested"):
    """A cancel was requested. The code sees it at this point in the order of facts."""

    reason: str = ""
    by: str = ""


class RunTimedOut(LogEvent, frozen=True, kw_only=True, tag="run_timed_out"):
    """The run's own deadline passed. The code is interrupted as by a cancel, and the run will fail."""


class RunEnding(LogEvent, frozen=True, kw_only=True, tag="run_ending"):
    """The code has ended. Pending undos and cancelled children must end before the run does.

    If ``output`` is set, the code returned it, and the run completes once all dropped work has been undone.
    """

    failure: Failure | None = None
    output: Raw = ABSENT


class RunPaused(LogEvent, frozen=True, kw_only=True, tag="run_paused"):
    reason: str = ""
    """Why, if somebody said so, or if the run was not paused by hand."""
    by: str = ""


class RunResumed(LogEvent, frozen=True, kw_only=True, tag="run_resumed"):
    """A paused or held run continues."""

    reason: str = ""
    by: str = ""


class RunHeld(LogEvent, frozen=True, kw_only=True, tag="run_held"):
    """The run stopped until a person acts. Nothing was undone and nothing is lost."""

    code: str
    message: str
    location: str = ""


class RunRetried(LogEvent, frozen=True, kw_only=True, tag="run_retried"):
    """A failed run is retried.

    In a code run the ``dropped`` entries are performed again, in a graph run the ``tokens`` continue, and in a goal run
    the ``steps`` are open again.
    """

    dropped: list[int] = []
    tokens: list[str] = []
    steps: list[str] = []
    earlier: dict[str, Earlier] = {}
    """The work that is repeated, by location. In graph runs each token remembers its own work."""
    approved: list[str] = []
    """Places whose irreversible work may be performed again without asking, each once."""
    forced: list[EntryId] = []
    """Irreversible tasks that were in flight. Their outcome is unknown."""
    reason: str = ""
    by: str = ""


class RunMoved(LogEvent, frozen=True, kw_only=True, tag="run_moved"):
    """The run was moved to another store, and nothing goes on with it here. What is open stays open, for that store."""

    digest: str
    """The digest of the bundle that it was moved with."""
    to: str = ""
    """Where it went, if somebody said so."""
    reason: str = ""
    by: str = ""


class RunAdopted(LogEvent, frozen=True, kw_only=True, tag="run_adopted"):
    """The run was moved here, and goes on with the status and everything open that it had before."""

    digest: str
    by: str = ""


class AttributesSet(LogEvent, frozen=True, kw_only=True, tag="attributes_set"):
    at: Path
    attributes: dict[str, Any]
    add: list[str] = []


# --- waiting -----------------------------------------------------------------------------------------------------


class TimerSet(LogEvent, frozen=True, kw_only=True, tag="timer_set"):
    due: int
    join: str = ""
    """The join that has this deadline."""
    at: Path = []
    node: str = ""
    token: str = ""
    add: list[str] = []


class TimerFired(LogEvent, frozen=True, kw_only=True, tag="timer_fired"):
    timer: EntryId


class MessageReceived(LogEvent, frozen=True, kw_only=True, tag="message_received"):
    """A message is recorded. It belongs to the run from now on, even if the code does not wait for it yet."""

    id: str
    name: str
    body: Raw = NULL
    sender: str = ""
    answer: bool = False
    """The sender waits for an answer."""


class MessageAwaited(LogEvent, frozen=True, kw_only=True, tag="message_awaited"):
    names: list[str]
    at: Path = []
    node: str = ""
    token: str = ""
    most: int = 1
    due: int = 0
    add: list[str] = []
    answer: bool = False
    """Whether the code or node that waits will answer the messages it takes."""


class MessagesTaken(LogEvent, frozen=True, kw_only=True, tag="messages_taken"):
    wait: EntryId
    ids: list[str]


class MessageRefused(LogEvent, frozen=True, kw_only=True, tag="message_refused"):
    """A message did not match the expected type. The wait continues."""

    wait: EntryId
    id: str
    error: str
    token: str = ""


class MessageAnswered(LogEvent, frozen=True, kw_only=True, tag="message_answered"):
    """The answer to a message whose sender waits for one. If ``error`` is set, the message was refused."""

    message: str
    output: Raw = NULL
    error: str = ""
    at: Path = []
    add: list[str] = []
    repeated: bool = False
    """The sender no longer waits, because the message was answered before or needed no answer."""


class WaitTimedOut(LogEvent, frozen=True, kw_only=True, tag="wait_timed_out"):
    """A wait for a message, a person or a child timed out. ``child`` is the uid of the child run to stop."""

    wait: EntryId
    child: str = ""


class AskOpened(LogEvent, frozen=True, kw_only=True, tag="ask_opened"):
    title: str
    at: Path = []
    node: str = ""
    token: str = ""
    item: int = 0
    form: dict[str, Any] | None = None
    about: Raw = NULL
    of: list[str] = []
    quorum: str | int = "any"
    due: int = 0
    on_timeout: str = "fail"
    escalate: list[str] = []
    """Who is asked after ``due``, if ``on_timeout`` is "escalate"."""
    add: list[str] = []
    four_eyes: bool = False
    """Whether the person who started the run is excluded from answering."""
    remind_ms: int = 0
    """The interval between reminders, or 0 for none."""
    input: Raw = NULL
    """The value into which the answer is merged, if the node requests that."""


class AskEscalated(LogEvent, frozen=True, kw_only=True, tag="ask_escalated"):
    """Nobody answered in time. The people in ``of`` are asked too, without a time limit."""

    ask: EntryId
    of: list[str]


class AskReminded(LogEvent, frozen=True, kw_only=True, tag="ask_reminded"):
    """A reminder is due for a question that is still open."""

    ask: EntryId


class AskTold(LogEvent, frozen=True, kw_only=True, tag="ask_told"):
    """People were notified of a question. ``notice`` is the kind of notification."""

    ask: EntryId
    notice: str


class AskAnswered(LogEvent, frozen=True, kw_only=True, tag="ask_answered"):
    """One person answered. ``decided`` says whether this answer settles the question."""

    ask: EntryId
    approved: bool
    by: str = ""
    reason: str = ""
    form: Raw = NULL
    decided: bool = True
    of: list[str] = []
    """The names and groups in the question that this person answered for."""
    digest: str = ""
    """The digest of the question as it was shown to this person, if known."""


# --- other runs --------------------------------------------------------------------------------------------------


class ChildStarted(LogEvent, frozen=True, kw_only=True, tag="child_started"):
    workflow: str
    version: str
    run_id: str
    uid: str
    input: Raw
    at: Path = []
    node: str = ""
    token: str = ""
    item: int = 0
    digest: str = ""
    style: Style = "code"
    due: int = 0
    timeout_ms: int = 0
    awaited: bool = True
    plan: Raw = ABSENT
    """The plan of the child, if it is a goal run."""
    add: list[str] = []
    budget: BudgetLimits | None = None
    """The budget that the child gets, besides those above it."""
    refused: Failure | None = None
    """Why no run was created. Only in code runs; a graph node or goal step fails with its own event instead."""


class ChildEnded(LogEvent, frozen=True, kw_only=True, tag="child_ended"):
    child: EntryId
    status: str
    output: Raw = NULL
    failure: Failure | None = None


# --- events of code runs only ------------------------------------------------------------------------------------


class ValueRecorded(LogEvent, frozen=True, kw_only=True, tag="value_recorded"):
    """A value that replay must not compute again.

    A time, a random number, an id, a version, or the size of a map. Of an agent: what decides about it (``spec``),
    what the policy said about a call, and a result that is too large for the conversation.
    """

    at: Path
    of: Literal["now", "random", "uuid", "version", "map", "spec", "policy", "result"]
    value: Raw
    add: list[str] = []


class RaceDecided(LogEvent, frozen=True, kw_only=True, tag="race_decided"):
    """A race has a winner. The losers are cancelled, and their entries are removed from the state."""

    at: Path
    winner: str
    losers: list[str]
    add: list[str] = []


class LoopTurned(LogEvent, frozen=True, kw_only=True, tag="loop_turned"):
    """Round ``round`` begins with ``state``. The state keeps the previous ``keep`` rounds."""

    at: Path
    round: int
    state: Raw
    keep: int = 20
    add: list[str] = []


class LoopFinished(LogEvent, frozen=True, kw_only=True, tag="loop_finished"):
    at: Path
    rounds: int
    output: Raw = NULL
    add: list[str] = []


class EntryCancelled(LogEvent, frozen=True, kw_only=True, tag="entry_cancelled"):
    """The code no longer waits for an entry, because it lost a race or its asyncio task was cancelled.

    ``child`` is the uid of the child run to stop.
    """

    entry: EntryId
    child: str = ""


AnyEvent = (
    RunStarted
    | RunCompleted
    | RunFailedEvent
    | RunCancelledEvent
    | CancelRequested
    | RunTimedOut
    | RunEnding
    | RunPaused
    | RunResumed
    | RunHeld
    | RunRetried
    | RunPatched
    | RunMoved
    | RunAdopted
    | PatchAsked
    | PatchReviewAsked
    | PatchDropped
    | AttributesSet
    | BudgetSet
    | BudgetRaised
    | BudgetWarned
    | TaskScheduled
    | TaskSucceeded
    | TaskFailed
    | TaskLost
    | ResultSet
    | UndoScheduled
    | TimerSet
    | TimerFired
    | MessageReceived
    | MessageAwaited
    | MessagesTaken
    | MessageRefused
    | MessageAnswered
    | WaitTimedOut
    | AskOpened
    | AskEscalated
    | AskReminded
    | AskTold
    | AskAnswered
    | ChildStarted
    | ChildEnded
    | ValueRecorded
    | RaceDecided
    | LoopTurned
    | LoopFinished
    | EntryCancelled
    | NodeRouted
    | NodeFailed
    | FailureRaised
    | LetterDiscarded
    | GoalPlanned
    | FactsGiven
    | StepStarted
    | WorkSkipped
    | WorkResumed
    | WorkAccepted
    | WorkRecalled
    | StepCompleted
    | StepFailedEvent
    | StepSkipped
    | DeadlineSet
    | DeadlinePassed
    | ScheduleDeclared
    | ScheduleFired
    | ScheduleQueued
    | ScheduleMissed
    | ScheduledRunFound
    | ScheduledRunEnded
    | BackfillRequested
    | ScheduleCarried
    | RunForked
    | ResultsKnown
    | RunEdited
    | EntriesDropped
    | TaskReleased
    | PerformAsked
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)

encode = _encoder.encode


def decode(body: bytes) -> AnyEvent:
    """Decode an event from a log. Raises Corrupt if it is not an event that this version knows."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise unreadable("An event", error) from error
