"""The diagnosis of a run as data: every item has its place and its ids. ``sentences`` makes the texts from it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from weft.errors import Failure

BranchStatus = Literal["open", "failed", "stopped"]
WaitKind = Literal["step", "retry", "sleep", "answer", "join", "message", "ask", "child", "fact"]


def time_of(ms: int) -> datetime:
    """Return a time of the log as a datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


class Progress(msgspec.Struct, frozen=True):
    """``done`` of ``total`` at a place of a run: a map, the join or opener of a fan-out, a goal step."""

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
    """The number of the entry in the log."""
    since: datetime
    due: datetime | None = None
    step: str = ""
    attempt: int = 0
    attempts_max: int = 0
    timeout_ms: int = 0
    failure: Failure | None = None
    """Why the attempt before failed."""
    is_performed: bool = True
    """False: the task waits in ``queue``, or, without one, for a process that hosts the run."""
    queue: str = ""
    names: list[str] = []
    title: str = ""
    asked: list[str] = []
    run: str = ""
    workflow: str = ""
    fact: str = ""


class SeenCondition(msgspec.Struct, frozen=True):
    """The condition of an edge, and the values that it saw."""

    source: str
    seen: dict[str, Any] = {}


class TakenEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge that a token took. ``branches``: how many it opened, if it opens one per item."""

    edge: str
    to: str
    branches: int | None = None
    is_back: bool = False
    condition: SeenCondition | None = None
    catches: list[str] | None = None
    """The errors that the edge catches; an empty list: all."""


class PathStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One step of the path of a graph run. ``seq``: the number of the event that tells of it."""

    kind: Literal["routed", "failed", "dead_letter", "retried"]
    seq: int
    node: str = ""
    token: str = ""
    edges: list[TakenEdge] = []
    caught: bool = False
    failure: Failure | None = None
    became: Literal["", "retried", "discarded"] = ""
    """What became of the dead letter since."""


class MissingBranch(msgspec.Struct, frozen=True):
    """A branch that a fan-in has not got, and the node where it is or was."""

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
    """The first of each status; ``missing_counts`` says how many there are."""
    missing_counts: dict[str, int] = {}
    sources: list[str] = []
    """The nodes from which nothing has come, of a node that waits for several edges."""


class NodeSkip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that did not run. ``at``: the node that did not lead to it."""

    node: str
    why: Literal["condition", "another_edge", "no_failure", "sources", "nothing"]
    at: str = ""
    condition: SeenCondition | None = None
    catches: list[str] | None = None
    sources: list[str] = []
    """The nodes before it that did not run."""


class PendingNeed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that a pending step waits for, and the steps that may still give it, with their status."""

    fact: str
    role: str
    match: str = ""
    providers: dict[str, str] = {}


class StepStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a step of a plan stands."""

    step: str
    status: str
    why: str = ""
    gave: list[str] = []
    lacks: list[str] = []
    """Facts that it could have given and did not."""
    fan_out: bool = False
    items: int = 0
    items_over: int = 0
    items_active: int = 0
    needs: list[PendingNeed] = []
    needed_now: bool = False
    unhealthy: str = ""


class ExcludedStep(msgspec.Struct, frozen=True):
    """A step that is not in the plan, and the facts that say why."""

    step: str
    why: Literal["satisfied", "blocked", "missing"]
    by: list[str]


class Hold(msgspec.Struct, frozen=True):
    """Why a run stopped for a person."""

    code: str
    message: str
    place: str


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known about where a run stands."""

    run: str
    workflow: str
    version: str = ""
    style: str = "code"
    status: str
    at: datetime
    """When it was looked at."""
    has_begun: bool = True
    is_hosted: bool = False
    """A living host has it in memory."""
    is_offered: bool = False
    """A living host has its workflow."""
    missing_version: str = ""
    """The version that it waits for and none of the living hosts has."""
    has_mail: bool = False
    """Something came for it that it has not seen. Only looked at for a run on hold."""
    starts_at: datetime | None = None
    is_over: bool = False
    steps_done: int = 0
    failure: Failure | None = None
    cancel_reason: str = ""
    cancelled_at: datetime | None = None
    hold: Hold | None = None
    waits: list[PendingWait] = []
    progress: list[Progress] = []
    path: list[PathStep] = []
    joins: list[JoinStanding] = []
    skips: list[NodeSkip] = []
    steps: list[StepStanding] = []
    excluded: list[ExcludedStep] = []


def brief(failure: Failure) -> Failure:
    """Return a failure without its traceback."""
    return msgspec.structs.replace(failure, traceback="") if failure.traceback else failure
