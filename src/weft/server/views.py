"""The bodies, queries and answers of the API.

Times are ISO 8601 with a time zone, durations are seconds. A page has a ``cursor`` for the next one, unless it is the
last.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from weft.core.run.state import Status as StateStatus
from weft.errors import Failure
from weft.observe.diagnosis import Progress
from weft.observe.run_actions import RunActions
from weft.observe.run_search import WaitsFor
from weft.ports.store import RunRow
from weft.ports.streams import Chunk
from weft.server.problems import ProblemDetails

ATTEMPT_SECONDS_MAX = 3_600.0
Status = StateStatus | Literal["imported"]
"""The status of a run as its row has it."""
Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=500)]
Cursor = Annotated[str, Meta(max_length=1_000)]
Limit = Annotated[int, Meta(ge=1, le=500)]
Offset = Annotated[int, Meta(ge=0, le=2**53)]
Seconds = Annotated[float, Meta(ge=0, le=366 * 86_400)]
Moment = Annotated[datetime, Meta(tz=True)]
Lease = Annotated[float, Meta(ge=0.1, le=ATTEMPT_SECONDS_MAX)]


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of bodies and queries."""


def api_time(ms: int | None) -> datetime | None:
    """Return a time of the store for the API; None if it is missing or 0."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def required_time(ms: int) -> datetime:
    """Return a time of the store for the API, which must not be missing."""
    return datetime.fromtimestamp(ms / 1000, UTC)


# --- runs --------------------------------------------------------------------------------------------------------


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its row describes it."""

    id: str
    workflow: str
    version: str
    style: str
    status: Status
    seq: int
    """The number of the last event."""
    created_at: Moment
    updated_at: Moment
    ended_at: Moment | None
    attributes: dict[str, Any]
    fault: str | None
    """Why the log of the run cannot be read, if it cannot."""
    priority: int = 0
    """Of runs and steps that wait, those with a higher priority come first."""


def run_view(row: RunRow) -> RunView:
    """Return the view of a row."""
    return RunView(
        id=row.id,
        workflow=row.workflow,
        version=row.version,
        style=row.style,
        status=row.status,  # type: ignore[arg-type]  # stores keep statuses as text
        seq=row.seq,
        created_at=required_time(row.created_at),
        updated_at=required_time(row.updated_at),
        ended_at=api_time(row.ended_at),
        attributes=dict(row.attributes),
        fault=row.fault,
        priority=row.priority,
    )


class BriefFailure(msgspec.Struct, frozen=True):
    """Why a run failed. ``place`` is where in the run it happened."""

    type: str
    message: str
    place: str


class ListedRun(RunView, frozen=True, kw_only=True):
    """A run of a list."""

    parent: str | None = None
    """The id of the run that started this one."""
    root: str = ""
    """The id of the run at the root of the tree, which may be this one."""
    failure: BriefFailure | None = None


class Runs(msgspec.Struct, frozen=True):
    """A page of runs, newest first. With some filters it may be short, or empty, and still have a cursor."""

    runs: list[ListedRun]
    cursor: str | None


class ForkPoint(msgspec.Struct, frozen=True):
    """The original of a fork, and the number of the last event that both runs share."""

    run: str
    seq: int


class RunFailure(Failure, frozen=True, omit_defaults=True):
    """A failure that ended a run. ``location`` is where in the run it happened, ``where`` the line of the code."""

    box: str = ""
    """The box of the picture to which its ``location`` belongs; empty if it has none."""


class RunDetail(RunView, frozen=True, kw_only=True):
    """A run with its input and result."""

    input: Raw
    output: Raw | None
    failure: RunFailure | None
    parent: str | None
    """The id of the run that started this one."""
    root: str
    """The id of the run at the root of the tree, which may be this one."""
    ancestors: list[str] = []
    """The ids of the runs above this one, the root first."""
    version_tags: list[str] = []
    """The tags that name the version of the run now."""
    actions: RunActions
    """What the caller may do to the run now."""
    now: Moment
    """The time of the server."""
    as_of: Moment | None = None
    """Up to when the events are known here, if the host of the run may have newer ones in Redis."""
    forked_from: ForkPoint | None = None
    """The original, if the run is a fork."""
    forks: list[str] = []
    """The ids of the newest forks of the run."""
    steps_done: int
    progress: list[Progress] = []
    """The progress of maps, fan-outs and work items."""
    problem: ProblemDetails | None = None
    """Why the run cannot be read and what to do, if it cannot. Unknown fields are null then."""


class StartBody(Form, frozen=True, kw_only=True):
    """A run to start, of a workflow or for goals. Goals are the steps whose results are wanted."""

    workflow: Name | None = None
    goals: Annotated[list[Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    words: Annotated[list[Name], Meta(max_length=1_000)] = msgspec.field(default_factory=list)
    """Names of arguments that were typed as text; they are read as the types that the workflow declares."""
    id: Id | None = None
    """A repeated start with the same id, workflow and input finds the same run."""
    version: Name | None = None
    """A version; by default the newest hosted one, or that of the tag in ``workflow``: ``order:live``."""
    attributes: Annotated[dict[str, Any], Meta(max_length=50)] = msgspec.field(default_factory=dict)
    delay: Seconds = 0.0
    existing: Literal["attach", "refuse"] = "attach"
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0
    """Of runs and steps that wait, those with a higher priority come first."""
    budget: dict[str, Any] | None = None
    """What the run, with everything below it, may spend: ``{"tokens": 50000, "money": "2 USD"}``."""
    run_policies: dict[str, Any] | None = None
    """Rules for this run alone: ``allowed_transitions``, ``max_hops`` and ``deadline_at``."""


class StartedView(msgspec.Struct, frozen=True):
    """The run of a start. ``created`` is false if the run existed already."""

    id: str
    created: bool


class RunsFilter(Form, frozen=True, kw_only=True):
    """A filter for runs."""

    workflow: Name | None = None
    status: Annotated[list[Status], Meta(max_length=20)] = msgspec.field(default_factory=list)
    """Any of these statuses."""
    style: Literal["code", "graph", "goal"] | None = None
    version: Name | None = None
    since: Moment | None = None
    until: Moment | None = None
    """Runs that began before this time."""
    unchanged: Annotated[str, Meta(min_length=2, max_length=20)] | None = None
    """A duration such as ``1h``: runs that recorded nothing for so long. Without a status, only open ones."""
    waits: Annotated[list[WaitsFor], Meta(max_length=5)] = msgspec.field(default_factory=list)
    """Open runs that wait for any of these."""
    q: Annotated[str, Meta(max_length=500)] = ""
    """The beginning of the id or of the workflow."""
    fault: bool = False
    """Only runs whose log cannot be read."""
    where: Annotated[list[Id], Meta(max_length=10)] = msgspec.field(default_factory=list)
    """``name=value`` finds runs with this attribute. The value is JSON if it can be read as JSON."""
    prefix: Id | None = None
    """The beginning of the ids of the runs."""
    parent: Id | None = None
    forks: Id | None = None
    """Only forks of this run."""
    all: bool = False
    """Also Weft's own runs, such as those of schedules."""


class RunsQuery(RunsFilter, frozen=True, kw_only=True):
    """A filter for runs, and which page of them."""

    limit: Limit = 50
    cursor: Cursor | None = None


class EventView(msgspec.Struct, frozen=True):
    """One event of a run's log. ``part`` is its number among the events of one record, or 0 if it is the only one."""

    seq: int
    at: Moment
    kind: str
    data: Raw
    part: int = 0


class ResultQuery(Form, frozen=True, kw_only=True):
    wait: Seconds = 0.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. With HTTP status 202, it has not ended yet."""

    id: str
    status: Status
    output: Raw | None = None
    failure: Failure | None = None
    reason: str | None = None
    """Why the run was cancelled."""


class NewMessage(Form, frozen=True, kw_only=True):
    name: Name
    body: Any = None


class RequestView(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a run. With HTTP status 202, it is not answered yet."""

    id: str
    status: Literal["answered", "waiting"]
    answer: Raw | None = None


class Cancel(Form, frozen=True, kw_only=True):
    """``force`` ends the run without running its code."""

    reason: Text = ""
    force: bool = False
    by: Text = ""
    """Who asks for it. Ignored if the request has an API key, which says it; so for the commands below."""
    dry_run: bool = False
    """Only return what would happen."""


class Remark(Form, frozen=True, kw_only=True):
    """Why something is done, and by whom."""

    reason: Text = ""
    by: Text = ""


class Nothing(Form, frozen=True, kw_only=True):
    """An empty object, or no body at all."""


class RetryFrom(Form, frozen=True, kw_only=True):
    """Where to retry from. Everything from ``place`` on is repeated; if it is empty, what failed is repeated.

    Irreversible steps that may have been performed before wait for approval, except at the places in ``approved``.
    While such a step is in flight, a retry from there needs ``force``.
    """

    place: Text = ""
    approved: list[Text] = []
    force: bool = False
    reason: Text = ""
    by: Text = ""
    dry_run: bool = False
    """Only return what would happen."""


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The command is durable and will reach the run. ``hint`` says what to do if the run does not act on it."""

    id: str
    status: Status
    hint: str = ""


class TreeQuery(Form, frozen=True, kw_only=True):
    depth: Annotated[int, Meta(ge=0, le=20)] = 3
    limit: Annotated[int, Meta(ge=1, le=5_000)] = 1_000
    """The maximum number of places per run. The newest are returned."""


class PlaceView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation of a run."""

    place: str
    kind: str
    status: str
    started_at: Moment
    ended_at: Moment | None = None
    due_at: Moment | None = None
    what: str = ""
    attempts: int = 1
    rounds: int = 0
    output: Raw | None = None
    failure: Failure | None = None
    child: str = ""


class TreeView(msgspec.Struct, frozen=True, kw_only=True):
    """A run, what it recorded, and its child runs. ``left_out`` counts the places or runs that are not shown."""

    run: RunView
    places: list[PlaceView]
    children: list[TreeView]
    left_out: int


# --- definitions -------------------------------------------------------------------------------------------------


class PageQuery(Form, frozen=True, kw_only=True):
    limit: Limit = 100
    cursor: Cursor | None = None


class NodeTypeView(msgspec.Struct, frozen=True):
    name: str
    description: str
    config: dict[str, Any] | None
    """The JSON Schema of the configuration of such a node."""


class NodeTypes(msgspec.Struct, frozen=True):
    node_types: list[NodeTypeView]
    cursor: str | None


# --- people and dead letters -------------------------------------------------------------------------------------


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """An open question for people. A decision with its ``digest`` is refused if the question has changed."""

    id: str
    run: str
    workflow: str
    place: str
    title: str
    of: list[str]
    quorum: str | int
    four_eyes: bool
    """Whether the person who started the run may not decide."""
    escalated: bool
    approvals: list[str]
    form: dict[str, Any] | None
    about: Raw
    digest: str
    since: Moment
    due_at: Moment | None


class Decision(Form, frozen=True, kw_only=True):
    """An answer. ``by`` is only for unidentified callers, because others answer in their own name."""

    approved: bool
    by: Text = ""
    reason: Text = ""
    form: Any = None
    digest: Text = ""
    """The digest of the question that was shown. The answer is refused if the question has changed."""


class LinkPair(msgspec.Struct, frozen=True, kw_only=True):
    """One link for each answer. Anybody who has a link can give its answer."""

    person: str
    approve: str
    reject: str
    expires_at: Moment


class LettersQuery(Form, frozen=True, kw_only=True):
    run: Id | None = None
    """The beginning of the ids of runs."""
    limit: Limit = 50
    cursor: Cursor | None = None


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """Work that failed for good and that no error route handled."""

    id: str
    run: str
    workflow: str
    node: str
    since: Moment
    input: Raw
    failure: Failure


class Letters(msgspec.Struct, frozen=True):
    letters: list[Letter]
    cursor: str | None


# --- work for other processes ------------------------------------------------------------------------------------


class NewClaim(Form, frozen=True, kw_only=True):
    """A claim for tasks. The worker may be silent for ``lease`` seconds, and waits up to ``wait`` seconds for tasks."""

    steps: Annotated[list[Name], Meta(min_length=1, max_length=500)]
    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)] = msgspec.field(
        default_factory=lambda: ["default"]
    )
    limit: Annotated[int, Meta(ge=1, le=100)] = 1
    lease: Lease = 30.0
    wait: Seconds = 0.0


class ClaimedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed task. Send ``key``, which is the same in all attempts, to the services that the step calls."""

    id: str
    run: str
    step: str
    queue: str
    place: str
    key: str
    attempt: int
    timeout: float | None
    input: Raw
    traceparent: str | None = None
    """The span of the attempt, if the run is traced: the parent of what the worker traces."""


class Claimed(msgspec.Struct, frozen=True):
    tasks: list[ClaimedTask]
    lease: float


class Beat(msgspec.Struct, frozen=True):
    lease: float


class TaskOutput(Form, frozen=True, kw_only=True):
    output: Any = None


class TaskFailure(Form, frozen=True, kw_only=True):
    """Why an attempt failed. ``retry`` says whether to try again, ``wait`` after how many seconds."""

    message: Text
    type: Name = "WorkerError"
    retry: bool = True
    wait: Seconds = 0.0


class TaskChunks(Form, frozen=True, kw_only=True):
    """Output of a running task. ``first`` is the number of its first chunk, so a repeated chunk is stored once."""

    stream: Name
    chunks: Annotated[list[Any], Meta(min_length=1, max_length=500)]
    first: Offset = 0


class Settled(msgspec.Struct, frozen=True):
    run: str


# --- output streams ----------------------------------------------------------------------------------------------


class StreamLengths(msgspec.Struct, frozen=True):
    """The output streams of a run and the last offset of each."""

    streams: dict[str, int]


class ChunksQuery(Form, frozen=True, kw_only=True):
    after: Offset = 0
    limit: Limit = 200


class ChunkView(msgspec.Struct, frozen=True):
    """A chunk of output. ``attempt`` is 0 for the workflow. A later attempt replaces the output of earlier ones."""

    offset: int
    at: Moment
    by: str
    attempt: int
    chunk: Raw


def chunk_view(chunk: Chunk) -> ChunkView:
    """Return the view of a chunk."""
    return ChunkView(chunk.offset, required_time(chunk.at), chunk.by, chunk.attempt, Raw(chunk.body))


class Chunks(msgspec.Struct, frozen=True):
    chunks: list[ChunkView]
    after: int | None


# --- live --------------------------------------------------------------------------------------------------------


class LiveQuery(Form, frozen=True, kw_only=True):
    """A filter for events. ``after`` is the id of the last event that the client saw."""

    workflow: Name | None = None
    status: Status | None = None
    kind: Annotated[list[Name], Meta(max_length=50)] = msgspec.field(default_factory=list)
    after: Cursor | None = None


class FollowQuery(Form, frozen=True, kw_only=True):
    after: Offset | None = None


class FollowRunQuery(FollowQuery, frozen=True, kw_only=True):
    """Where to begin, and what to send: the events of the run, or what they change on a screen."""

    as_: Literal["events", "places"] = msgspec.field(default="events", name="as")


class Health(msgspec.Struct, frozen=True):
    status: str
    detail: str = ""


class RedisHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What this host says about its Redis server."""

    role: Literal["hints", "hot"]
    policy: str
    server: str
    used: bool
    problem: str
    may_be_lost: str


class Readiness(Health, frozen=True):
    redis: RedisHealth | None = None
    """None if this host uses no Redis server."""
