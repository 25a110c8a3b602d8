"""The commands of a run, which ``decide`` turns into events.

There are two families. *Reports and requests* come from outside the run: from a user, a worker, a timer or another run.
They can be sent as mail, so they can be encoded as JSON. *Asks* come from the code of a run while it executes. Their
events are appended together with the fact that resumed the code. An ask names its place by ``scope`` (readable, ending
in a slash, empty at the root), ``name`` and ``n`` (this is the n-th use of the name in that scope).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.budgets import Amounts, BudgetLimits, Cover
from weft.core.event_parts import unreadable
from weft.core.events import ABSENT, DEFAULT_POLICY, NULL, Overlap, Parent, Policy, ScheduleSpec, Style, UndoPlan
from weft.core.ids import EntryId
from weft.core.run_rules import RunRules
from weft.errors import Failure


class Command(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="do", tag=None):
    """The base class of commands from outside the run."""


class StartRun(Command, frozen=True, kw_only=True, tag="start_run"):
    run_id: str
    workflow: str
    input: Raw
    version: str = "1"
    style: Style | Literal[""] = "code"
    """If empty, the host that adopts the run resolves the workflow, and also the version if that is empty."""
    parent: Parent | None = None
    timeout_ms: int = 0
    attributes: dict[str, Any] = {}
    scheduled_at: int = 0
    defaults: Raw = ABSENT
    """Code workflows: the default values of parameters missing from the input. Ignored when ids are compared."""
    queue: str = ""
    """The queue for steps that do not name one."""
    words: list[str] = []
    """Arguments as typed text. The host that adopts the run parses them by their declared types."""
    root: str = ""
    """The uid of the run at the root of the tree, if that is another run."""
    trace: str = ""
    """The W3C traceparent of the caller."""
    schedule: str = ""
    """The uid of the schedule that starts the run."""
    tag: str = ""
    """The tag by which the caller named the version."""
    review: list[str] = []
    """Who must agree to every patch of the run. The host that adopts the run knows it."""
    priority: int = 0
    """Of runs and steps that wait, those with a higher priority come first."""
    budgets: list[str] = []
    """The uids of the runs above whose budgets the run spends from."""
    currency: str = ""
    """The currency of the money that these budgets limit, if one does."""
    budget: BudgetLimits | None = None
    """The budget of the run itself, if it has one."""
    rules: RunRules | None = None
    """Rules for this run alone, if its start gives some."""
    refused: str = ""
    """Why the start is refused. The run is created anyway and fails, so that its parent learns of it."""
    refused_as: str = "run.id_taken"
    """The code of that failure."""


class ReportTaskSucceeded(Command, frozen=True, tag="report_task_succeeded"):
    task: EntryId
    attempt: int
    delivery: int
    output: Raw = NULL
    spent: Amounts | None = None
    """What the attempt used, if it was covered or reported something."""


class ReportTaskFailed(Command, frozen=True, tag="report_task_failed"):
    task: EntryId
    attempt: int
    delivery: int
    failure: Failure
    retryable: bool = True
    wait_ms: int = 0
    """The shortest wait before the next attempt, if the failed step requested one."""
    spent: Amounts | None = None
    """What the attempt used, as in ``ReportTaskSucceeded``."""


class ReportTaskLost(Command, frozen=True, tag="report_task_lost"):
    task: EntryId
    attempt: int
    delivery: int


class FireTimer(Command, frozen=True, tag="fire_timer"):
    """Report that the timer of an entry is due. Entry 0 is the run's own deadline."""

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
    """The groups that ``by`` belongs to. If None, nobody checked who answers, so any membership is accepted."""
    digest: str = ""
    """The digest of the question as it was shown, or empty if it is not known."""


class NoteTold(Command, frozen=True, tag="note_told"):
    """Record that people were notified of a question."""

    ask: int
    notice: str


class ReportChildEnded(Command, frozen=True, tag="report_child_ended"):
    child: EntryId
    status: str
    output: Raw = NULL
    failure: Failure | None = None


class CancelRun(Command, frozen=True, tag="cancel_run"):
    """Cancel a run. With ``force`` the code cannot react to it. Children are cancelled without ``force``."""

    reason: str = ""
    force: bool = False
    by: str = ""


class PauseRun(Command, frozen=True, tag="pause_run"):
    reason: str = ""
    by: str = ""


class ResumeRun(Command, frozen=True, tag="resume_run"):
    reason: str = ""
    by: str = ""


class RaiseBudget(Command, frozen=True, kw_only=True, tag="raise_budget"):
    """Raise limits of the run's budget by these amounts."""

    added: dict[str, int]
    reason: str = ""
    by: str = ""


class NoteBudget(Command, frozen=True, tag="note_budget"):
    """Tell a run with a budget that so much of a unit was spent that it must record a warning."""

    unit: str


class RetryRun(Command, frozen=True, tag="retry_run"):
    """Retry a failed run. If ``start`` names a location, everything from there on is performed again."""

    start: str = ""
    approved: list[str] = []
    """Places whose irreversible work may be performed again without asking."""
    force: bool = False
    """Whether to go on although an irreversible task is in flight there. Its outcome is recorded as unknown."""
    reason: str = ""
    by: str = ""


class SetResult(Command, frozen=True, kw_only=True, tag="set_result"):
    """End the work at a place by hand: with ``output``, or with ``error``.

    In a code run that is paused, held or failed, this also replaces a recorded result.
    """

    place: str
    output: Raw = ABSENT
    error: str = ""
    performed: bool = False
    """Whether somebody did the work, so that it is undone if the run fails."""
    force: bool = False
    """Whether to go on although an irreversible task is in flight there. Its outcome is recorded as unknown."""
    reason: str = ""
    by: str = ""


class PatchRun(Command, frozen=True, kw_only=True, tag="patch_run"):
    """Let a run follow another definition from where it stands.

    ``patch`` is the patch as the user wrote it. The runtime has prepared it: ``version`` is the stored version that the
    patch leads to from ``base``, and ``prepared`` has what else the style of the run needs. If the run no longer
    follows ``base``, the patch is refused. ``expect`` is the digest of the only plan that may be applied.
    """

    patch: Raw
    base: str = ""
    version: str = ""
    prepared: Raw = ABSENT
    worked_out: Raw = ABSENT
    """The plan and the event, if they were worked out before; styles may use them if nothing has happened since."""
    undoes: int = 0
    """The rev that this patch undoes."""
    expect: str = ""
    by: str = ""
    reason: str = ""
    approved_by: list[str] = []
    reviewed_by: list[str] = []
    """The people and groups who were asked about it together with other patches, if they agreed."""
    asks: bool = True
    """Whether people are asked if they must agree. Otherwise the patch is refused."""
    wait_ms: int = 0
    """How long the patch waits if it is not allowed now."""
    at: str = ""
    """Wait until all tokens of the run are at this node."""
    review: list[str] = []
    """Who must agree before it is applied, besides those whom the workflow names."""


class WithdrawPatch(Command, frozen=True, kw_only=True, tag="withdraw_patch"):
    """Drop a patch that waits or is being reviewed. ``asked`` is its number (0: the only one)."""

    asked: int = 0
    reason: str = ""
    by: str = ""


class RequeueLetter(Command, frozen=True, tag="requeue_letter"):
    """Retry the token of a dead letter. The count of its attempts begins again."""

    token: str


class DiscardLetter(Command, frozen=True, tag="discard_letter"):
    """Drop a dead letter."""

    token: str


# --- asks from the code ------------------------------------------------------------------------------------------


class Ask(msgspec.Struct, frozen=True):
    """The base class of requests that the code makes at a place."""

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
    passed: tuple[str, ...] = ()
    """Places of irreversible work, dropped by a retry, that the code has passed without asking for it."""
    cover: Cover | None = None
    """What each attempt may cost at most."""


class SetTimer(Ask, frozen=True):
    due: int


class AwaitMessages(Ask, frozen=True):
    names: list[str]
    most: int = 1
    due: int = 0
    answer: bool = False
    """Whether the code answers the messages. If not, a sender that waits for an answer gets null at once."""


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
    """The timeout of the child itself. ``due`` limits how long the parent waits."""
    plan: Raw = ABSENT
    budget: BudgetLimits | None = None


class RecordValue(Ask, frozen=True):
    of: Literal["now", "random", "uuid", "version", "map", "spec", "policy", "result"]
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
    """Report that the code has ended, with or without an error, after a cancel was requested."""


class HoldRun(msgspec.Struct, frozen=True):
    code: str
    message: str
    location: str = ""


# --- goals -------------------------------------------------------------------------------------------------------


class StartGoal(StartRun, frozen=True, kw_only=True, tag="start_goal"):
    """Start a goal run. ``input`` has the given values by fact, and ``plan`` was made from these facts.

    Without a plan, the host makes one for ``goals``, or for the goals of the workflow.
    """

    plan: Raw = ABSENT
    goals: list[str] = []


class ReportWorkAccepted(Command, frozen=True, tag="report_work_accepted"):
    """Report that an external service accepted asynchronous work. Its answer comes later, as ``AnswerWork``."""

    task: EntryId
    attempt: int
    delivery: int


class AnswerWork(Command, frozen=True, kw_only=True, tag="answer_work"):
    """Report the result of asynchronous work. Names the task, not a delivery. ``attempt`` 0 means the latest."""

    task: EntryId
    output: Raw = NULL
    failure: Failure | None = None
    retryable: bool = False
    attempt: int = 0


class RecallWork(Command, frozen=True, kw_only=True, tag="recall_work"):
    """Complete a task with the result that an earlier run, ``run_id``, recorded at the time ``at``."""

    task: EntryId
    attempt: int
    delivery: int
    output: Raw
    run_id: str
    at: int = 0


# --- forks ---------------------------------------------------------------------------------------------------------


class EditRun(msgspec.Struct, frozen=True, kw_only=True):
    """Change a fork before it goes on. Values have the form of the log.

    ``input`` is the whole input, if it changes; in a goal run it has the ``given`` facts too. ``ahead`` is a place that
    the run is known to come to next. ``steps`` are the places at which the original came to steps, and ``more`` the
    names of steps to which only the fork may come; None if all may be such names.
    """

    input: Raw = ABSENT
    results: dict[str, Raw] = {}
    state: dict[str, Raw] = {}
    given: dict[str, Raw] = {}
    version: str = ""
    ahead: str = ""
    steps: list[str] = []
    more: list[str] | None = []
    by: str = ""


class DropEntries(msgspec.Struct, frozen=True):
    """Drop the entry ``first`` of a fork's common past, and all that began after it."""

    first: EntryId


# --- moves ---------------------------------------------------------------------------------------------------------


class MoveRun(msgspec.Struct, frozen=True, kw_only=True):
    """End the run here, because another store goes on with it."""

    digest: str
    to: str = ""
    reason: str = ""
    by: str = ""


class AdoptRun(msgspec.Struct, frozen=True, kw_only=True):
    """Go on with a run that was moved here."""

    digest: str
    by: str = ""


# --- schedules ---------------------------------------------------------------------------------------------------


class StartSchedule(StartRun, frozen=True, kw_only=True, tag="start_schedule"):
    """Create a schedule."""

    spec: ScheduleSpec
    by: str = ""


class DeclareSchedule(Command, frozen=True, kw_only=True, tag="declare_schedule"):
    """Change the definition of a schedule, or add one again that was removed.

    ``version`` says which hosts run one that is added again: those that declare it, or all.
    """

    spec: ScheduleSpec
    version: str = "1"
    by: str = ""


class TriggerSchedule(Command, frozen=True, kw_only=True, tag="trigger_schedule"):
    """Start a run of a schedule now. ``label`` is the last part of its id."""

    label: str
    by: str = ""


class BackfillSchedule(Command, frozen=True, kw_only=True, tag="backfill_schedule"):
    """Start the runs of past nominal times that have none."""

    first: int
    last: int
    overlap: Overlap = "queue"
    by: str = ""


class ReportRunEnded(Command, frozen=True, kw_only=True, tag="report_run_ended"):
    """Tell a schedule that a run which it started has ended."""

    uid: str
    status: str


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
    | RaiseBudget
    | NoteBudget
    | SetResult
    | PatchRun
    | WithdrawPatch
    | RequeueLetter
    | DiscardLetter
    | StartGoal
    | ReportWorkAccepted
    | AnswerWork
    | RecallWork
    | StartSchedule
    | DeclareSchedule
    | TriggerSchedule
    | BackfillSchedule
    | ReportRunEnded
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
    | EditRun
    | DropEntries
    | MoveRun
    | AdoptRun
)
AnyCommand = Mailed | Asked

_encode = msgspec.json.Encoder().encode
_defaults = {
    kind: {field.name: field.default for field in msgspec.structs.fields(kind) if isinstance(field.default, Raw)}
    for kind in Mailed.__args__
}
"""The values of each command that may be left out."""
_decoder: msgspec.json.Decoder[Mailed] = msgspec.json.Decoder(Mailed)


def encode(command: Mailed) -> bytes:
    """Encode a command for an inbox. An empty value, which is not JSON, stands for its default."""
    for name, default in _defaults[type(command)].items():
        if getattr(command, name) == ABSENT:
            # msgspec leaves out a default only if it is the same object.
            command = msgspec.structs.replace(command, **{name: default})
    return _encode(command)


def decode(body: bytes) -> Mailed:
    """Decode a command from an inbox. Raises Corrupt if it is not a command that this version knows."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise unreadable("A piece of mail", error) from error
