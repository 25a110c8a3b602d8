"""What a run is now: the fold of its events, and nothing that grows with what has passed and is not needed again.

``State`` is what all styles share: status, open tasks, timers, waits, questions, children, undo stack. What is *open*
lives in small tables by entry number and leaves them when it ends. Each style adds what it needs.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT, DEFAULT_POLICY, NULL, Parent, Policy, UndoPlan
from weft.errors import Failure

FOLD = 5
"""The number of the fold. Raise it when ``evolve`` or a state's shape changes: older snapshots are then ignored."""

Status = Literal[
    "pending", "running", "paused", "cancelling", "rolling_back", "held", "completed", "failed", "cancelled"
]
OVER: frozenset[str] = frozenset({"completed", "failed", "cancelled"})


class OpenTask(msgspec.Struct, omit_defaults=True):
    """A piece of outside work that is open. ``draining``: nobody reads its answer, but its end is waited for."""

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
    """An undo's: where the task stood that it takes back."""
    place: str = ""
    """Where it stands, if what it works for may be gone before it is."""
    kept: Raw = NULL
    """What its undo must know of where it stands."""
    within: list[str] = []
    """The branches of a graph that it stands in, outermost first."""
    dropped: bool = False
    """An undo's: it takes back what was dropped while the run went on."""
    takes: list[str] | None = None
    """An undo's: which of the recorded values it is given."""
    inline: bool = False
    early: bool = False
    draining: bool = False
    last: Failure | None = None


class Wait(msgspec.Struct, omit_defaults=True):
    """A wait for messages. No names: any message."""

    names: list[str]
    since: int
    most: int = 1
    due: int = 0
    answer: bool = False


class Question(msgspec.Struct, omit_defaults=True):
    """A question that waits for people."""

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
    """For whom each of those answered who approved, where that is not only themselves."""
    escalated: bool = False
    four_eyes: bool = False
    remind_ms: int = 0
    remind_at: int = 0
    reminded: int = 0
    told: str = ""
    """What people outside were last told of it."""


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
    """A message that the log has and nobody took yet. ``n`` is its place in the order of arrival."""

    n: int
    id: str
    name: str
    at: int
    body: Raw = NULL
    sender: str = ""
    answer: bool = False


class Undo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A completed task that can be taken back."""

    task: int
    plan: UndoPlan
    input: Raw
    output: Raw
    location: str
    done: int
    """The number of the event that completed it."""
    kept: Raw = NULL
    within: list[str] = []


class Reversal(msgspec.Struct, omit_defaults=True):
    """Work that was dropped while the run went on: tasks that are still ending, and what to undo, newest last."""

    waits: list[int] = []
    undo: list[Undo] = []


class Held(msgspec.Struct, frozen=True):
    """Why the run stands still until a person helps."""

    code: str
    message: str
    location: str
    since: int


class State(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the styles share."""

    uid: str
    run_id: str = ""
    line: str = ""
    """The first uid of its line of forks."""
    root: str = ""
    """The uid of the run at the root of its tree, if that is another one."""
    trace: str = ""
    workflow: str = ""
    version: str = "1"
    input: Raw = NULL
    defaults: Raw = ABSENT
    """Parameters that the input leaves out, as they were at the start."""
    parent: Parent | None = None
    status: Status = "running"
    started: bool = False
    seq: int = 0
    at: int = 0
    started_at: int = 0
    scheduled_at: int = 0
    due: int = 0
    attributes: dict[str, Any] = {}
    queue: str = ""
    tasks: dict[int, OpenTask] = {}
    parked: dict[int, OpenTask] = {}
    """Tasks in nobody's hands: ``accepted`` by the far side, which will answer, or waiting for a slot to be retried."""
    accepted: dict[int, int] = {}
    """Parked tasks that are waited for until then."""
    timers: dict[int, int] = {}
    waits: dict[int, Wait] = {}
    asks: dict[int, Question] = {}
    children: dict[int, Child] = {}
    messages: dict[str, list[WaitingMessage]] = {}
    requests: dict[str, int] = {}
    """Messages whose senders wait for an answer, with the time they arrived."""
    arrived: int = 0
    undo: list[Undo] = []
    reversals: list[Reversal] = []
    undoing: int = 0
    not_undone: list[str] = []
    undone: list[str] = []
    """Where the tasks stood that were taken back."""
    renewed: dict[str, int] = {}
    """How often what stood there was taken back: what is performed there anew is other work, with a key of its own."""
    cancelled: str | None = None
    cancelled_at: int = 0
    timed_out: bool = False
    ended: bool = False
    """The code (or the last token) is over; undos and children may still be under way."""
    returned: bool = False
    """The code is over with a result; the run completes when all that was dropped has been undone."""
    failure: Failure | None = None
    output: Raw = NULL
    held: Held | None = None
    retries: int = 0
    steps_done: int = 0
    gone: list[int] = []
    """Of the last event: tasks, timers and questions that went with what they belonged to."""
    gone_children: list[str] = []

    @property
    def over(self) -> bool:
        return self.status in OVER
