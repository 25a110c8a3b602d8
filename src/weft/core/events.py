"""What happened to a run: immutable facts, one JSON object each in its log.

Every event names what it changes by the number of the entry (the sequence number of the event that made it), so that a
location is written once. Times are milliseconds since 1970. ``Raw`` fields are JSON as the user's values were encoded
when they came in; large ones are references to blobs. A released event never changes; a new need is a new event or a
new field with a default.
"""

# ruff: noqa: PLC0414 - the parts belong to the words of events, and are asked for here

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.goal_events import AttributeSet as AttributeSet
from weft.core.goal_events import DeadlinePassed as DeadlinePassed
from weft.core.goal_events import DeadlineSet as DeadlineSet
from weft.core.goal_events import FactRef as FactRef
from weft.core.goal_events import FactsGiven as FactsGiven
from weft.core.goal_events import GoalPlanned as GoalPlanned
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
from weft.core.parts import ABSENT as ABSENT
from weft.core.parts import DEFAULT_POLICY as DEFAULT_POLICY
from weft.core.parts import NULL as NULL
from weft.core.parts import EdgeVerdict as EdgeVerdict
from weft.core.parts import Effect as Effect
from weft.core.parts import LogEvent as LogEvent
from weft.core.parts import Parent as Parent
from weft.core.parts import Path as Path
from weft.core.parts import Policy as Policy
from weft.core.parts import Style as Style
from weft.core.parts import Taken as Taken
from weft.core.parts import UndoPlan as UndoPlan
from weft.core.parts import Write as Write
from weft.core.task_events import TaskFailed as TaskFailed
from weft.core.task_events import TaskLost as TaskLost
from weft.core.task_events import TaskScheduled as TaskScheduled
from weft.core.task_events import TaskSucceeded as TaskSucceeded
from weft.core.task_events import UndoScheduled as UndoScheduled
from weft.errors import Failure, unreadable

FORMAT = 1
"""The newest event format this code writes and reads; the run row names the highest one in its log."""


# --- the life of a run -------------------------------------------------------------------------------------------


class RunStarted(LogEvent, frozen=True, kw_only=True, tag="run_started"):
    """``line``: the first uid of a line of forks. Ids of tokens, frames and work items derive from it, so that the log
    folds under another uid; keys, child uids and references to blobs derive from the run's own.
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
    """The values, at the start, of the parameters that the input leaves out."""
    queue: str = ""
    """The queue of its steps that name none."""
    root: str = ""
    """The uid of the run at the root of its tree, if that is another one."""
    trace: str = ""
    """The W3C traceparent of whoever started it."""


class RunCompleted(LogEvent, frozen=True, kw_only=True, tag="run_completed"):
    """``not_undone``: work of dropped branches whose undo failed."""

    output: Raw = NULL
    not_undone: list[str] = []


class RunFailedEvent(LogEvent, frozen=True, kw_only=True, tag="run_failed"):
    failure: Failure
    not_undone: list[str] = []
    never_begun: bool = False
    """Its start was refused: no code of it ever ran."""


class RunCancelledEvent(LogEvent, frozen=True, kw_only=True, tag="run_cancelled"):
    reason: str = ""
    not_undone: list[str] = []
    never_begun: bool = False
    """No code of it ever ran."""


class CancelRequested(LogEvent, frozen=True, kw_only=True, tag="cancel_requested"):
    """The code is told at this place in the order of facts."""

    reason: str = ""


class RunTimedOut(LogEvent, frozen=True, kw_only=True, tag="run_timed_out"):
    """The run's own deadline passed; the code is told like at a cancel, and the run will fail."""


class RunEnding(LogEvent, frozen=True, kw_only=True, tag="run_ending"):
    """The code is over, and what it left (undos, children to stop) must end before the run does.

    ``output``: it returned this, and the run completes when all that was dropped has been undone.
    """

    failure: Failure | None = None
    output: Raw = ABSENT


class RunPaused(LogEvent, frozen=True, kw_only=True, tag="run_paused"):
    pass


class RunResumed(LogEvent, frozen=True, kw_only=True, tag="run_resumed"):
    """A paused or held run goes on."""


class RunHeld(LogEvent, frozen=True, kw_only=True, tag="run_held"):
    """The run stops for a person: nothing is undone, nothing is lost."""

    code: str
    message: str
    location: str = ""


class RunRetried(LogEvent, frozen=True, kw_only=True, tag="run_retried"):
    """A failed run is tried again: entries of code that are ``dropped`` and performed anew, ``tokens`` of a graph
    that work again, or ``steps`` of a goal run that are open again.
    """

    dropped: list[int] = []
    tokens: list[str] = []
    steps: list[str] = []


class AttributesSet(LogEvent, frozen=True, kw_only=True, tag="attributes_set"):
    at: Path
    attributes: dict[str, Any]
    add: list[str] = []


# --- waiting -----------------------------------------------------------------------------------------------------


class TimerSet(LogEvent, frozen=True, kw_only=True, tag="timer_set"):
    due: int
    join: str = ""
    """The join whose deadline it is."""
    at: Path = []
    node: str = ""
    token: str = ""
    add: list[str] = []


class TimerFired(LogEvent, frozen=True, kw_only=True, tag="timer_fired"):
    timer: EntryId


class MessageReceived(LogEvent, frozen=True, kw_only=True, tag="message_received"):
    """The log has it; it is the run's from here on, whether or not the code waits for it yet."""

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
    """Whoever waits will answer what it takes."""


class MessagesTaken(LogEvent, frozen=True, kw_only=True, tag="messages_taken"):
    wait: EntryId
    ids: list[str]


class MessageRefused(LogEvent, frozen=True, kw_only=True, tag="message_refused"):
    """It did not fit the type awaited; the wait goes on."""

    wait: EntryId
    id: str
    error: str
    token: str = ""


class MessageAnswered(LogEvent, frozen=True, kw_only=True, tag="message_answered"):
    """The answer to a message whose sender waits for one. ``error``: why it was refused instead."""

    message: str
    output: Raw = NULL
    error: str = ""
    at: Path = []
    add: list[str] = []
    repeated: bool = False
    """Nobody waits for it: the message was answered before, or was sent without asking for an answer."""


class WaitTimedOut(LogEvent, frozen=True, kw_only=True, tag="wait_timed_out"):
    """A wait for a message, a person or a child passed its time. ``child``: the run that is told to stop."""

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
    """Who is asked when the time is over, where ``on_timeout`` says so."""
    add: list[str] = []
    four_eyes: bool = False
    """Whoever started the run may not decide."""
    remind_ms: int = 0
    """How often people are reminded; 0: never."""
    input: Raw = NULL
    """What the answer will be merged into, where the node says so."""


class AskEscalated(LogEvent, frozen=True, kw_only=True, tag="ask_escalated"):
    """Nobody answered in time: others are asked too, without a limit."""

    ask: EntryId
    of: list[str]


class AskReminded(LogEvent, frozen=True, kw_only=True, tag="ask_reminded"):
    """It is still open, and it is time to say so again."""

    ask: EntryId


class AskTold(LogEvent, frozen=True, kw_only=True, tag="ask_told"):
    """People outside were told of a question: what exactly is in ``notice``."""

    ask: EntryId
    notice: str


class AskAnswered(LogEvent, frozen=True, kw_only=True, tag="ask_answered"):
    """One person's answer. ``decided``: with it the question is settled."""

    ask: EntryId
    approved: bool
    by: str = ""
    reason: str = ""
    form: Raw = NULL
    decided: bool = True
    of: list[str] = []
    """Those among the people asked for whom this one answered."""
    digest: str = ""
    """Of what was shown to whoever answered, if that is known."""


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
    """Of a goal run: the plan that it follows."""
    add: list[str] = []
    refused: Failure | None = None
    """Why no run was made for it. Known to code only: a node or a step fails by an event of its own."""


class ChildEnded(LogEvent, frozen=True, kw_only=True, tag="child_ended"):
    child: EntryId
    status: str
    output: Raw = NULL
    failure: Failure | None = None


# --- what code alone records -------------------------------------------------------------------------------------


class ValueRecorded(LogEvent, frozen=True, kw_only=True, tag="value_recorded"):
    """A value that the code may not compute twice: a time, a random number, an id, a version, how many a map has."""

    at: Path
    of: Literal["now", "random", "uuid", "version", "map"]
    value: Raw
    add: list[str] = []


class RaceDecided(LogEvent, frozen=True, kw_only=True, tag="race_decided"):
    """The losers are cancelled and what they had recorded leaves the state."""

    at: Path
    winner: str
    losers: list[str]
    add: list[str] = []


class LoopTurned(LogEvent, frozen=True, kw_only=True, tag="loop_turned"):
    """Round ``round`` begins with ``state``; older rounds than ``keep`` leave the state."""

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
    """The code no longer waits for it: a loser, a cancelled asyncio task. ``child``: the run that is told to stop."""

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
    | AttributesSet
    | TaskScheduled
    | TaskSucceeded
    | TaskFailed
    | TaskLost
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
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)

encode = _encoder.encode


def decode(body: bytes) -> AnyEvent:
    """An event out of a log. Raises Corrupt: it is none, or of a kind that this version does not know."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise unreadable("An event", error) from error
