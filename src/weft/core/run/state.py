"""The state of a run, computed from its events. Parts that are no longer needed are removed.

All styles share ``State``: the status, open tasks, timers, waits, questions and children, and the undo stack. Open
entries are in tables by entry number until they end. Each style adds its own fields.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.budgets import Amounts, BudgetLimits, Cover
from weft.core.events import (
    ABSENT,
    DEFAULT_POLICY,
    NULL,
    Earlier,
    Effects,
    ForkedFrom,
    KnownResult,
    Parent,
    PatchAsked,
    Policy,
    Repetition,
    UndoPlan,
)
from weft.core.run_rules import RunRules
from weft.errors import Failure

FOLD = 9
"""The version of the fold. Raise it when ``evolve`` or the shape of a state changes; older snapshots are ignored."""

Status = Literal[
    "pending", "running", "paused", "cancelling", "rolling_back", "held", "completed", "failed", "cancelled", "moved"
]
OVER: frozenset[str] = frozenset({"completed", "failed", "cancelled", "moved"})


class OpenTask(msgspec.Struct, omit_defaults=True):
    """An open task. If ``draining``, its result is no longer used, but the run waits for it to end."""

    step: str
    input: Raw
    since: int
    policy: Policy = DEFAULT_POLICY
    attempt: int = 1
    delivery: int = 1
    lost: int = 0
    due: int = 0
    undo: UndoPlan | None = None
    undo_of: int = 0
    undoes: str = ""
    """For an undo: the location of the task that it undoes."""
    place: str = ""
    """The location of the task, kept if its entry, token or item may be removed before the task ends."""
    kept: Raw = NULL
    """Information about the task's place that its undo needs."""
    within: list[str] = []
    """The graph branches that contain the task, outermost first."""
    dropped: bool = False
    """For an undo: whether the undone task was dropped while the run continued."""
    takes: list[str] | None = None
    """For an undo: the names of the recorded values that are passed to it."""
    inline: bool = False
    early: bool = False
    draining: bool = False
    last: Failure | None = None
    again: Repetition | None = None
    """The key of the task, if it is not that of its location. For an undo too."""
    withheld: bool = False
    """Whether it is to be decided if the task may be performed. Until then it is not dispatched."""
    digest: str = ""
    """In a fork: the digest of the input."""
    use: int = 0
    """In a fork: which use of the step with this input it is since the common past ended."""
    cover: Cover | None = None
    """What each attempt may cost at most."""


class Wait(msgspec.Struct, omit_defaults=True):
    """A wait for messages with one of these names, or for any message if there are none."""

    names: list[str]
    since: int
    most: int = 1
    due: int = 0
    answer: bool = False


class Question(msgspec.Struct, omit_defaults=True):
    """An open question to people."""

    title: str
    since: int
    form: dict[str, Any] | None = None
    about: Raw = NULL
    of: list[str] = []
    quorum: str | int = "any"
    due: int = 0
    on_timeout: str = "fail"
    escalate: list[str] = []
    approvals: list[str] = []
    stands: dict[str, list[str]] = {}
    """By approver, the names and groups in the question that this person answered for."""
    escalated: bool = False
    four_eyes: bool = False
    proposer: str = ""
    """Who asks for what the question is about, and may not answer it."""
    remind_ms: int = 0
    remind_at: int = 0
    reminded: int = 0
    told: str = ""
    """The kind of the last notification that was sent."""


class Child(msgspec.Struct, omit_defaults=True):
    """A child run that is not over."""

    uid: str
    run_id: str
    workflow: str
    since: int
    due: int = 0
    awaited: bool = True
    cancelled: bool = False


class WaitingMessage(msgspec.Struct, omit_defaults=True):
    """A recorded message that has not been taken yet. ``n`` is its position in the order of arrival."""

    n: int
    id: str
    name: str
    at: int
    body: Raw = NULL
    sender: str = ""
    answer: bool = False


class Undo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A completed task that can be undone."""

    task: int
    plan: UndoPlan
    input: Raw
    output: Raw
    location: str
    done: int
    """The number of the event that completed the task."""
    kept: Raw = NULL
    within: list[str] = []
    n: int = 0
    """The number in the key of the task, which its undo has too."""


class Reversal(msgspec.Struct, omit_defaults=True):
    """Work that was dropped while the run continued: tasks that have not ended yet, and undos, newest last."""

    waits: list[int] = []
    undo: list[Undo] = []


class Revision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A patch that a run has had. ``seq`` is the number of its event. ``retried``: it was a retry from a place."""

    seq: int
    base: str
    version: str
    undoes: int = 0
    retried: bool = False


class AskedPatch(msgspec.Struct, omit_defaults=True):
    """A patch that waits until it is allowed, or until people agree. ``digest`` is that of the plan they were shown."""

    event: PatchAsked
    since: int
    digest: str = ""
    approved_by: list[str] = []


class Held(msgspec.Struct, frozen=True):
    """Why the run is held until a person acts."""

    code: str
    message: str
    location: str
    since: int


class Departure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A move to another store: the bundle, and the status that the run had."""

    digest: str
    status: Status
    to: str = ""


class Fork(msgspec.Struct, omit_defaults=True):
    """What a fork knows about its original, and how it treats work after their common past."""

    point: int
    """The number of the last event of the common past, with the ``run_forked`` event."""
    effects: Effects = "perform"
    by: str = ""
    known: dict[str, list[KnownResult]] = {}
    """Results of the original, by step and digest of the input."""
    uses: dict[str, int] = {}
    """How often a step was scheduled with an input since the point, by step and digest."""
    set_results: dict[str, Raw] = {}
    """Results that were set by hand, by place, for work that has not begun yet."""
    has_new_input: bool = False
    """Whether its input is another one than that of its original."""


class State(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state that all styles share."""

    uid: str
    run_id: str = ""
    line: str = ""
    """The uid of the first run in this line of forks."""
    root: str = ""
    """The uid of the run at the root of the tree, if that is another run."""
    trace: str = ""
    schedule: str = ""
    """The uid of the schedule that started the run."""
    forked_from: ForkedFrom | None = None
    fork: Fork | None = None
    """Set in a fork, after the common past."""
    workflow: str = ""
    version: str = "1"
    input: Raw = NULL
    defaults: Raw = ABSENT
    """The default values, at the start, of parameters missing from the input."""
    parent: Parent | None = None
    is_agent: bool = False
    """Whether this is a run of an agent, which has recorded its spec."""
    status: Status = "running"
    started: bool = False
    seq: int = 0
    at: int = 0
    started_at: int = 0
    scheduled_at: int = 0
    due: int = 0
    attributes: dict[str, Any] = {}
    queue: str = ""
    priority: int = 0
    tasks: dict[int, OpenTask] = {}
    parked: dict[int, OpenTask] = {}
    """Tasks that no worker performs, because an external service accepted them or because they wait for a retry."""
    accepted: dict[int, int] = {}
    """When the answers of accepted tasks are due, by task number."""
    timers: dict[int, int] = {}
    waits: dict[int, Wait] = {}
    asks: dict[int, Question] = {}
    children: dict[int, Child] = {}
    messages: dict[str, list[WaitingMessage]] = {}
    requests: dict[str, int] = {}
    """Ids of messages whose senders wait for an answer, with the time of arrival."""
    arrived: int = 0
    undo: list[Undo] = []
    reversals: list[Reversal] = []
    undoing: int = 0
    not_undone: list[str] = []
    undone: list[str] = []
    """The locations of tasks that were undone."""
    renewed: dict[str, int] = {}
    """The number in the key of the next new task at a location: one more than the last one that was undone there."""
    earlier: dict[str, Earlier] = {}
    """Work that a retry dropped, by location. Its effect contract says how it is dispatched again."""
    approvals: list[str] = []
    """Places whose irreversible work was approved beforehand, when the run was retried or forked."""
    cancelled: str | None = None
    cancelled_at: int = 0
    timed_out: bool = False
    ended: bool = False
    """The code or the last token has ended. Undos and children may still be open."""
    returned: bool = False
    """The code has returned a result. The run completes once all dropped work has been undone."""
    failure: Failure | None = None
    output: Raw = NULL
    held: Held | None = None
    moved: Departure | None = None
    """Set while the run is moved away."""
    retries: int = 0
    revisions: list[Revision] = []
    """The patches of the run. The first one is rev 1."""
    review: list[str] = []
    """Who must agree to every patch, as the code or the goal declares."""
    asked: dict[int, AskedPatch] = {}
    """The patches that wait, by number."""
    reviews: dict[int, Question] = {}
    """The open questions about patches, by the number of the patch."""
    budgets: list[str] = []
    """The uids of the runs above whose budgets this run spends from, topmost first."""
    currency: str = ""
    """The currency of the money that these budgets limit, if one does."""
    budget: BudgetLimits | None = None
    """The budget of the run itself, as it was raised."""
    rules: RunRules | None = None
    """Rules for this run alone."""
    warned: list[str] = []
    """The units of that budget for which a warning is recorded."""
    spends: dict[str, Amounts] = {}
    """The most that each step has reported to have spent, by step. Later calls of it are covered with that."""
    accounted: bool = False
    """Whether the ledger of budgets has to be told of what the run does."""
    steps_done: int = 0
    withheld: list[int] = []
    """Tasks of which it is to be decided whether they may be performed. Some may have ended."""
    gone: list[int] = []
    """The numbers of tasks, timers and questions that the last event removed together with their owner."""
    gone_children: list[str] = []

    @property
    def over(self) -> bool:
        return self.status in OVER

    @property
    def scopes(self) -> list[str]:
        """The uids of the runs whose budgets this run spends from, topmost first, with its own if it has one."""
        return self.budgets if self.budget is None else [*self.budgets, self.uid]

    @property
    def questions(self) -> dict[int, Question]:
        """All open questions: those of the run's work, and those about its patches."""
        return {**self.asks, **self.reviews} if self.reviews else self.asks
