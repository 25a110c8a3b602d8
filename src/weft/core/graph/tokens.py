"""The state of a graph run: tokens, frames, loop instances and the slots of joins.

A *path* is the stack of branches and loop rounds that a token is in. ``live`` counts the tokens in each branch and loop
instance. A parked token does not count in its own branch, and a frame that waits for its fan-in counts in the scopes
around it. Indexes are stored with the data they belong to, so the cost of a hop depends on the edges of the node and
not on the number of tokens.

Rules: docs/internals/graph.md#2-state.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.events import NULL, Earlier
from weft.core.graph.model import FanIn
from weft.core.run.repeats import digest_of_work
from weft.core.run.state import OpenTask, State
from weft.errors import Failure

Mode = Literal["ready", "working", "routing", "failing", "queued", "joining", "parked"]
AT_WORK: tuple[Mode, ...] = ("ready", "working", "routing", "failing")
"""The modes of tokens that work at a node, or have worked there and not left it yet."""


class Seg(msgspec.Struct, frozen=True, array_like=True):
    """One level of a path: branch ``n`` of a frame, or round ``n`` of a loop instance."""

    kind: Literal["f", "l"]
    id: str
    n: int


Path = list[Seg]


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """The latest output of a node that a token has seen."""

    visit: int
    output: Raw
    message: str = ""
    """The message that the node received."""


class Token(msgspec.Struct, omit_defaults=True):
    """A point of execution. ``value`` is the value that arrived, and ``sender`` and ``edge`` say from where."""

    id: str
    node: str
    path: Path
    value: Raw = NULL
    sender: str = ""
    edge: str = ""
    mode: Mode = "ready"
    seen: dict[str, Seen] = {}
    error: Failure | None = None
    """The failure that an error edge handled. Expressions of the handler see it."""
    failure: Failure | None = None
    """The failure of this token, while it is failing."""
    output: Raw = NULL
    task: int = 0
    input: Raw = NULL
    message: str = ""
    """The message that the token received at its node."""
    due: int = 0
    """The deadline of the wait for a message. A refused message does not extend it."""
    missing: int = 0
    """After a fan-in: how many branches failed or ended without arriving."""
    frame: str = ""
    """For a fan-in that failed: its frame, which is dropped as soon as the failure is handled."""
    slot: str = ""
    """For an edge join that timed out: its slot."""
    earlier: Earlier | None = None
    """The work that the token repeats if it begins to work again."""
    approved: bool = False
    """People have agreed to the work of its node, which requires that."""


def remember_work(state: GraphState, token: Token, task: OpenTask) -> None:
    """Remember the task of a token that ends without a result, in case the token works again."""
    place = f"{token.node}/{token.id}"
    n = task.again.n if task.again is not None else state.renewed.get(place, 0)
    key = task.again.place if task.again is not None else place
    token.earlier = Earlier(key, n, digest_of_work(task.step, task.input))


class Branch(msgspec.Struct, omit_defaults=True):
    """One branch of a frame. ``writes`` is its output, if something was saved to it."""

    edge: str
    live: int = 0
    status: Literal["open", "arrived", "ended", "failed"] = "open"
    item: Raw = NULL
    writes: dict[str, Any] | None = None
    merging: dict[str, str] = {}
    """Fields of the writes that contain the merge of a frame and have not been written since."""
    newest: dict[str, int] = {}
    """For each fan-in with late branches: the newest frame that was merged into the writes."""
    parked: list[str] = []
    result: Raw = NULL
    """The output of the branch, once it has arrived."""
    members: dict[str, bool] = {}
    frames: dict[str, bool] = {}
    loops: dict[str, bool] = {}
    """All tokens in the branch (``members``), and the frames and loops whose innermost branch it is."""
    kept: Kept | None = None
    """For a failed branch that its frame continues without: its contents, for a retry."""


class Frame(msgspec.Struct, omit_defaults=True):
    """The branches that one fan-out opened.

    If ``fan_in`` is empty, nothing closes them. Frames are ``made`` in order.
    """

    id: str
    opener: str
    path: Path
    made: int
    fan_in: str = ""
    total: int = 0
    branches: dict[int, Branch] = {}
    arrived: list[int] = []
    settled: int = 0
    failed: dict[int, Failure] = {}
    fired: bool = False
    seen: dict[str, Seen] = {}
    queues: dict[str, list[str]] = {}
    order: list[int] = []
    given: dict[str, int] = {}
    """Once late branches are merged: the merged branches (``order``), and the branch that gave each field."""
    timer: int = 0
    """The timer of the deadline of the fan-in."""
    scope: str = ""
    """For a frame with detached branches: the static scope that they have left."""
    since: int = 0
    """The number of the event that opened the frame."""
    rule: FanIn | None = None
    """For a frame that has fired: its fan-in as it was then, if a patch has changed it since."""


class LoopRun(msgspec.Struct, omit_defaults=True):
    """One instance of a loop. ``taken`` lists the exits that a token took."""

    id: str
    loop: str
    path: Path
    made: int
    live: int = 0
    taken: list[str] = []


class Slot(msgspec.Struct, omit_defaults=True):
    """The deliveries of the edges of a join, or of a node with several edges: token ids, or "" for a skip."""

    node: str
    path: Path
    items: dict[str, list[str]] = {}
    timer: int = 0
    """The timer of the deadline of the join."""
    ran: bool = False
    """The node has run in this scope before a patch, so it is never skipped here."""
    owed: dict[str, int] = {}
    """The edges that a join no longer waits for. Their deliveries are discarded."""


class Kept(msgspec.Struct, omit_defaults=True):
    """The contents of a branch. ``inner``, ``around``: the branch's own frames and loops."""

    live: int = 0
    tokens: list[Token] = []
    frames: list[Frame] = []
    loops: list[LoopRun] = []
    slots: dict[str, Slot] = {}
    inner: list[str] = []
    around: list[str] = []


class Repeatable(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work that was done at a node in a scope, or inside it, and that the run may come to again."""

    path: Path
    work: Earlier


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failure that nothing handled, with the input of the failed node."""

    node: str
    input: Raw
    failure: Failure
    at: int


class GraphState(State, kw_only=True, omit_defaults=True):
    """The state of a graph run."""

    begun: bool = False
    data: dict[str, Any] = {}
    marked: bool = False
    """Whether something in the data is not plain JSON."""
    merging: dict[str, str] = {}
    """Fields of the data that contain the merge of a frame and have not been written since."""
    newest: dict[str, int] = {}
    """For each fan-in with late branches: the newest frame that was merged into the data."""
    tokens: dict[str, Token] = {}
    frames: dict[str, Frame] = {}
    loops: dict[str, LoopRun] = {}
    slots: dict[str, Slot] = {}
    places: dict[str, dict[str, bool]] = {}
    """Slots by the innermost scope of their path, so that they are removed with it."""
    deadlines: dict[int, str] = {}
    """Joins that wait with a deadline, by the number of their timer: ``f`` and a frame, or ``s`` and a slot."""
    unarmed: list[str] = []
    """Joins with a deadline whose timer has not been set yet."""
    agenda: list[str] = []
    """The tokens that need a decision: they are to be started or routed, or have failed."""
    by_task: dict[int, str] = {}
    made: int = 0
    hops: int = 0
    executed: dict[str, int] = {}
    letters: dict[str, DeadLetter] = {}
    """The failures that no edge handled and nobody discarded, by token."""
    repeated: dict[str, list[Repeatable]] = {}
    """Work that was done before a patch moved a token back, by node, until it is done again."""


def copy_graph_state(state: GraphState) -> GraphState:
    """Return a copy of everything in a state."""
    return _decoder.decode(_encode(state))


_encode = msgspec.json.Encoder().encode
_decoder: msgspec.json.Decoder[GraphState] = msgspec.json.Decoder(GraphState)


def seen_after(token: Token, output: Raw) -> dict[str, Seen]:
    """Return the outputs that a token has seen, after its node has produced this output."""
    known = token.seen.get(token.node)
    return {**token.seen, token.node: Seen((known.visit if known is not None else 0) + 1, output, token.message)}


def path_key(path: Path) -> str:
    """Return a path as a key."""
    return "/".join(f"{seg.kind}{seg.id}.{seg.n}" for seg in path)


def scope_key(path: Path) -> str:
    """Return the innermost scope of a path as a key. "" is the run. All rounds of a loop instance share a key."""
    if not path:
        return ""
    seg = path[-1]
    return f"f{seg.id}.{seg.n}" if seg.kind == "f" else f"l{seg.id}"


def branch_keys(path: Path) -> list[str]:
    """Return the branches on a path, outermost first, as keys."""
    return [f"{seg.id}.{seg.n}" for seg in path if seg.kind == "f"]


def innermost_branch(path: Path) -> Seg | None:
    """Return the innermost branch that a token is in, if any."""
    return next((seg for seg in reversed(path) if seg.kind == "f"), None)
