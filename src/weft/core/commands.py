"""Requests to change a run. All of them enter through one service: ``decide``.

Two families share it. *Reports and requests* come from outside (a user, a worker, a clock, another run) and may have
travelled as mail, so they are JSON too. *Asks* come from the code of a run while it is pumped, and are decided in the
same append as the fact that woke it; an ask names its place by ``scope`` (readable, ending in a slash, empty at the
root), ``name`` and ``n``, its how-manieth use there.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT, DEFAULT_POLICY, NULL, Parent, Policy, Style, UndoPlan
from weft.core.ids import EntryId
from weft.errors import Failure, unreadable


class Command(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="do", tag=None):
    """The base of what comes from outside."""


class StartRun(Command, frozen=True, kw_only=True, tag="start_run"):
    run_id: str
    workflow: str
    input: Raw
    version: str = "1"
    style: Style | Literal[""] = "code"
    """Empty: whoever takes the run up resolves the name, and the version too if that is empty."""
    parent: Parent | None = None
    timeout_ms: int = 0
    attributes: dict[str, Any] = {}
    scheduled_at: int = 0
    defaults: Raw = ABSENT
    """Of a code workflow: the values of the parameters that the input leaves out. No part of a comparison of ids."""
    queue: str = ""
    """The queue of its steps that name none."""
    words: list[str] = []
    """Arguments that are text as it was typed: whoever takes the run up reads them by their declared types."""
    root: str = ""
    """The uid of the run at the root of its tree, if that is another one."""
    trace: str = ""
    """The W3C traceparent of whoever starts it."""
    refused: str = ""
    """Why this start cannot be: the run is made all the same, and fails, so that its parent hears of it."""
    refused_as: str = "run.id_taken"
    """The code of that failure."""


class ReportTaskSucceeded(Command, frozen=True, tag="report_task_succeeded"):
    task: EntryId
    attempt: int
    delivery: int
    output: Raw = NULL


class ReportTaskFailed(Command, frozen=True, tag="report_task_failed"):
    task: EntryId
    attempt: int
    delivery: int
    failure: Failure
    retryable: bool = True
    wait_ms: int = 0
    """Whoever failed asks not to be tried again before."""


class ReportTaskLost(Command, frozen=True, tag="report_task_lost"):
    task: EntryId
    attempt: int
    delivery: int


class FireTimer(Command, frozen=True, tag="fire_timer"):
    """The time of an entry has come (0: the run's own deadline)."""

    entry: EntryId


class DeliverMessage(Command, frozen=True, tag="deliver_message"):
    id: str
    name: str
    body: Raw = NULL
    sender: str = ""
    answer: bool = False
    """The sender waits for an answer."""


class DecideAsk(Command, frozen=True, tag="decide_ask"):
    """Answer an open question, named by its entry or by its location."""

    ask: int | str
    approved: bool
    by: str = ""
    reason: str = ""
    form: Raw = NULL
    groups: list[str] | None = None
    """Those that ``by`` belongs to; None: nobody checked who this is, so it is believed."""
    digest: str = ""
    """Of what was shown; empty: not known."""


class NoteTold(Command, frozen=True, tag="note_told"):
    """People outside were told of a question."""

    ask: int
    notice: str


class ReportChildEnded(Command, frozen=True, tag="report_child_ended"):
    child: EntryId
    status: str
    output: Raw = NULL
    failure: Failure | None = None


class CancelRun(Command, frozen=True, tag="cancel_run"):
    """``force``: the code is not asked. The run's children are told without it."""

    reason: str = ""
    force: bool = False


class PauseRun(Command, frozen=True, tag="pause_run"):
    pass


class ResumeRun(Command, frozen=True, tag="resume_run"):
    pass


class RetryRun(Command, frozen=True, tag="retry_run"):
    """Try a failed run again; ``start`` names a location from which on everything is performed anew."""

    start: str = ""


class RequeueLetter(Command, frozen=True, tag="requeue_letter"):
    """Let the token of a dead letter work again, with a fresh count of attempts."""

    token: str


class DiscardLetter(Command, frozen=True, tag="discard_letter"):
    token: str


# --- asks of the code --------------------------------------------------------------------------------------------


class Ask(msgspec.Struct, frozen=True):
    """The base of what the code asks for at a place."""

    scope: str
    name: str
    n: int


class ScheduleTask(Ask, frozen=True):
    step: str
    input: Raw
    digest: str
    policy: Policy = DEFAULT_POLICY
    undo: UndoPlan | None = None
    inline: bool = False
    early: bool = False


class SetTimer(Ask, frozen=True):
    due: int


class AwaitMessages(Ask, frozen=True):
    names: list[str]
    most: int = 1
    due: int = 0
    answer: bool = False
    """The code will answer what it takes; otherwise a sender who waits for an answer gets null at once."""


class AnswerMessage(Ask, frozen=True):
    message: str
    output: Raw


class OpenAsk(Ask, frozen=True):
    title: str
    form: dict[str, Any] | None = None
    about: Raw = NULL
    of: list[str] = []
    quorum: str | int = "any"
    due: int = 0
    on_timeout: str = "fail"
    escalate: list[str] = []
    four_eyes: bool = False
    remind_ms: int = 0


class StartChild(Ask, frozen=True):
    workflow: str
    version: str
    style: Style
    input: Raw
    digest: str
    run_id: str = ""
    due: int = 0
    awaited: bool = True
    timeout_ms: int = 0
    """The child's own; ``due`` is how long its parent waits."""
    plan: Raw = ABSENT


class RecordValue(Ask, frozen=True):
    of: Literal["now", "random", "uuid", "version", "map"]
    value: Raw


class SetAttributes(Ask, frozen=True):
    attributes: dict[str, Any]


class DecideRace(Ask, frozen=True):
    winner: str
    losers: list[str]


class TurnLoop(Ask, frozen=True):
    round: int
    state: Raw
    keep: int


class FinishLoop(Ask, frozen=True):
    rounds: int
    output: Raw


class RefuseMessage(msgspec.Struct, frozen=True):
    wait: EntryId
    id: str
    error: str


class CancelEntry(msgspec.Struct, frozen=True):
    entry: EntryId


class CompleteRun(msgspec.Struct, frozen=True):
    output: Raw = NULL


class FailRun(msgspec.Struct, frozen=True):
    failure: Failure


class EndCancelled(msgspec.Struct, frozen=True):
    """The code ended after it was told to stop, however it ended."""


class HoldRun(msgspec.Struct, frozen=True):
    code: str
    message: str
    location: str = ""


# --- goals -------------------------------------------------------------------------------------------------------


class StartGoal(StartRun, frozen=True, kw_only=True, tag="start_goal"):
    """Start a goal run: ``input`` is what is given, by fact; ``plan`` was made from these names.

    Without a plan the host makes it, for ``goals``, or for those that the workflow stands for.
    """

    plan: Raw = ABSENT
    goals: list[str] = []


class ReportWorkAccepted(Command, frozen=True, tag="report_work_accepted"):
    """Asynchronous work was taken by the far side, which will answer with ``AnswerWork``."""

    task: EntryId
    attempt: int
    delivery: int


class AnswerWork(Command, frozen=True, kw_only=True, tag="answer_work"):
    """The answer of asynchronous work; it names the task, not the hand-out. ``attempt`` 0: the latest."""

    task: EntryId
    output: Raw = NULL
    failure: Failure | None = None
    retryable: bool = False
    attempt: int = 0


class RecallWork(Command, frozen=True, kw_only=True, tag="recall_work"):
    """Answer a task with a committed success of an earlier run: ``run_id``, which ended it ``at`` that time."""

    task: EntryId
    attempt: int
    delivery: int
    output: Raw
    run_id: str
    at: int = 0


Mailed = (
    StartRun
    | ReportTaskSucceeded
    | ReportTaskFailed
    | ReportTaskLost
    | FireTimer
    | DeliverMessage
    | DecideAsk
    | NoteTold
    | ReportChildEnded
    | CancelRun
    | PauseRun
    | ResumeRun
    | RetryRun
    | RequeueLetter
    | DiscardLetter
    | StartGoal
    | ReportWorkAccepted
    | AnswerWork
    | RecallWork
)
Asked = (
    ScheduleTask
    | SetTimer
    | AwaitMessages
    | AnswerMessage
    | OpenAsk
    | StartChild
    | RecordValue
    | SetAttributes
    | DecideRace
    | TurnLoop
    | FinishLoop
    | RefuseMessage
    | CancelEntry
    | CompleteRun
    | FailRun
    | EndCancelled
    | HoldRun
)
AnyCommand = Mailed | Asked

encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[Mailed] = msgspec.json.Decoder(Mailed)


def decode(body: bytes) -> Mailed:
    """A command out of an inbox. Raises Corrupt: it is none, or of a kind that this version does not know."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise unreadable("A piece of mail", error) from error
