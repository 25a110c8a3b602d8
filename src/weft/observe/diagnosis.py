"""The diagnosis of a run as data, with locations and ids. The module ``sentences`` describes it in words."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from weft.errors import Failure
from weft.observe.passed_models import PassedModel

BranchStatus = Literal["open", "failed", "stopped"]
WaitKind = Literal["step", "retry", "sleep", "answer", "join", "message", "ask", "child", "fact", "patch"]


class Progress(msgspec.Struct, frozen=True):
    """How many items are done at a location: a map, the join or the first node of a fan-out, or a goal step."""

    place: str
    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.place} {self.done:,} of {self.total:,}"


class PendingWait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a run waits for. ``kind`` says which of the other fields are set."""

    kind: WaitKind
    place: str
    number: int
    """The sequence number of the event that began the wait."""
    since: datetime
    """When the wait began. For an attempt that follows another one: when it was due."""
    due: datetime | None = None
    step: str = ""
    attempt: int = 0
    attempts_max: int = 0
    timeout_ms: int = 0
    failure: Failure | None = None
    """Why the previous attempt failed."""
    is_performed: bool = True
    """Whether a worker performs the task. If not, it waits in ``queue`` or, without a queue, for a host of the run."""
    queue: str = ""
    limit: str = ""
    """The step whose limit holds the task back, if it has one, and the key under which the task counts."""
    key: str = ""
    standing: str = ""
    """What the limit of the step or the queue allows, how many are under way, and who is ahead."""
    names: list[str] = []
    title: str = ""
    asked: list[str] = []
    run: str = ""
    workflow: str = ""
    fact: str = ""


class IdleTask(msgspec.Struct, frozen=True, kw_only=True):
    """An open task that no worker performs: it waits in a queue or, without a queue, for a host of the run."""

    queue: str = ""
    limit: str = ""
    """The step whose limit holds it back, if it has one, and the key under which the task counts."""
    key: str = ""
    standing: str = ""
    """What the limit of the step or the queue allows, how many are under way, and who is ahead."""
    due: int = 0
    """When it begins by itself, in milliseconds; 0 if that is not known."""


class SeenCondition(msgspec.Struct, frozen=True):
    """The condition of an edge, and the values that it read."""

    source: str
    seen: dict[str, Any] = {}


class TakenEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge that a token took. ``branches`` is the number of branches, if the edge opens one per item."""

    edge: str
    to: str
    branches: int | None = None
    is_back: bool = False
    condition: SeenCondition | None = None
    catches: list[str] | None = None
    """The errors that the edge catches. An empty list means all errors; None means that it catches none."""


class PathStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One step of the path of a graph run. ``seq`` is the number of its event."""

    kind: Literal["routed", "failed", "dead_letter", "retried"]
    seq: int
    node: str = ""
    token: str = ""
    edges: list[TakenEdge] = []
    caught: bool = False
    failure: Failure | None = None
    became: Literal["", "retried", "discarded"] = ""
    """What happened to the dead letter later."""


class MissingBranch(msgspec.Struct, frozen=True):
    """A branch that has not arrived at a fan-in, and the node at which it is or was last."""

    index: int
    place: str
    status: BranchStatus


class JoinStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A join that has not fired: a fan-in with its branches, or a node that waits for several edges."""

    node: str
    frame: str = ""
    arrived: int = 0
    total: int = 0
    need: int = 0
    missing: list[MissingBranch] = []
    """The first missing branches of each status. ``missing_counts`` has the number of all."""
    missing_counts: dict[str, int] = {}
    sources: list[str] = []
    """For a node that waits for several edges, the sources whose edges have not been taken."""


class NodeSkip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that did not run. ``at`` is the node whose edge was not taken."""

    node: str
    why: Literal["condition", "another_edge", "no_failure", "sources", "nothing"]
    at: str = ""
    condition: SeenCondition | None = None
    catches: list[str] | None = None
    sources: list[str] = []
    """The preceding nodes that did not run."""


class PendingNeed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that a pending step waits for, and the steps that may still provide it, with their status."""

    fact: str
    role: str
    match: str = ""
    providers: dict[str, str] = {}


class StepStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a step of a plan."""

    step: str
    status: str
    why: str = ""
    gave: list[str] = []
    lacks: list[str] = []
    """The declared outputs that the completed step did not provide."""
    fan_out: bool = False
    items: int = 0
    items_over: int = 0
    items_active: int = 0
    needs: list[PendingNeed] = []
    needed_now: bool = False
    unhealthy: str = ""


class ScheduleStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the nominal times of a schedule."""

    fired: int
    missed: int
    found: int
    pause_reason: str = ""
    open_runs: list[str] = []
    queued: int = 0
    backfills: int = 0


class ExcludedStep(msgspec.Struct, frozen=True):
    """A step that is not in the plan, and the facts that are the reason."""

    step: str
    why: Literal["satisfied", "blocked", "missing"]
    by: list[str]


class Hold(msgspec.Struct, frozen=True):
    """Why a run is held for a person."""

    code: str
    message: str
    place: str


class StartWait(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run that has not begun waits: the rule of its workflow about starts, or the limit of its workflow."""

    kind: Literal["singleton", "debounce", "batch", "limit"]
    key: str
    behind: str = ""
    """Singletons: the open run that it replaces."""
    latest: datetime | None = None
    """Debounced starts: when it begins at the latest."""
    inputs: int = 0
    """Batches: how many inputs it has, and below how many it can have."""
    size: int = 0
    standing: str = ""
    """Limits: what is allowed, how many runs with its key are under way, and how many wait before it."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is known about the state of a run."""

    run: str
    workflow: str
    version: str = ""
    style: str = "code"
    status: str
    at: datetime
    """The time of the diagnosis."""
    has_begun: bool = True
    is_hosted: bool = False
    """Whether a live host owns the run."""
    is_offered: bool = False
    """Whether a live host has the workflow of the run."""
    missing_version: str = ""
    """The version of the run, if none of the live hosts has it."""
    has_mail: bool = False
    """Whether a held run has mail that it has not processed. Always False for other runs."""
    starts_at: datetime | None = None
    start_wait: StartWait | None = None
    """Why it has not begun, if its workflow has a rule about starts or a limit."""
    is_over: bool = False
    steps_done: int = 0
    failure: Failure | None = None
    cancel_reason: str = ""
    cancelled_at: datetime | None = None
    moved_to: str = ""
    """Where a run that was moved went, if somebody said so."""
    hold: Hold | None = None
    waits: list[PendingWait] = []
    progress: list[Progress] = []
    path: list[PathStep] = []
    joins: list[JoinStanding] = []
    skips: list[NodeSkip] = []
    steps: list[StepStanding] = []
    excluded: list[ExcludedStep] = []
    schedule: ScheduleStanding | None = None
    passed_models: list[PassedModel] = []
    """Of a run of an agent, in its newest turns."""


def without_traceback(failure: Failure) -> Failure:
    """Return a failure without its traceback."""
    return msgspec.structs.replace(failure, traceback="") if failure.traceback else failure
