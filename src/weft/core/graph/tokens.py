"""What a graph run is now: tokens, frames, loop instances and the slots of joins.

A *path* is the stack of branches and loop rounds that a token is in. ``live`` counts, per branch and per loop instance,
the tokens inside it; a parked token does not count for its own branch, and a frame that waits for its fan-in counts for
the scopes around it. Everything that must be found quickly is kept beside what it belongs to, so that a hop costs what
the node's edges cost, however many tokens there are.

Rules: docs/internals/graph.md#2-state.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.events import NULL
from weft.core.run.state import State
from weft.errors import Failure

Mode = Literal["ready", "working", "routing", "failing", "queued", "joining", "parked"]


class Seg(msgspec.Struct, frozen=True, array_like=True):
    """One level of a path: branch ``n`` of a frame, or round ``n`` of a loop instance."""

    kind: Literal["f", "l"]
    id: str
    n: int


Path = list[Seg]


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A node's latest output in a token's own past."""

    visit: int
    output: Raw
    message: str = ""
    """The message that the node took."""


class Token(msgspec.Struct, omit_defaults=True):
    """A position in the graph. ``value`` is what arrived, ``sender`` who sent it, ``edge`` how it came."""

    id: str
    node: str
    path: Path
    value: Raw = NULL
    sender: str = ""
    edge: str = ""
    mode: Mode = "ready"
    seen: dict[str, Seen] = {}
    error: Failure | None = None
    """The failure that it was sent on with: a handler sees it."""
    failure: Failure | None = None
    """Its own, while it is failing."""
    output: Raw = NULL
    task: int = 0
    input: Raw = NULL
    message: str = ""
    """The message that it took at its node."""
    due: int = 0
    """When its wait for a message ends: a refused one does not lengthen it."""
    missing: int = 0
    """Behind a fan-in: how many branches failed or ended without arriving."""
    frame: str = ""
    """A fan-in that failed: its frame, which is dropped as soon as somebody takes the failure."""
    slot: str = ""
    """The same for an edge join whose time ran out: what it waited with."""


class Branch(msgspec.Struct, omit_defaults=True):
    """One branch of a frame. ``writes``: its mapped output, if it wrote any."""

    edge: str
    live: int = 0
    status: Literal["open", "arrived", "ended", "failed"] = "open"
    item: Raw = NULL
    writes: dict[str, Any] | None = None
    merging: dict[str, str] = {}
    """Fields of the writes that hold what a frame has merged, and nobody has touched since."""
    newest: dict[str, int] = {}
    """By fan-in with late branches: the newest frame that has merged into the writes."""
    parked: list[str] = []
    result: Raw = NULL
    """What it gave, once it has arrived."""
    members: dict[str, bool] = {}
    frames: dict[str, bool] = {}
    loops: dict[str, bool] = {}
    """All tokens in it; the frames and loops that it is the innermost branch around."""
    kept: Kept | None = None
    """If it failed and its frame goes on without it: what was in it, for a retry."""


class Frame(msgspec.Struct, omit_defaults=True):
    """One fan-out instance. ``fan_in`` empty: nothing closes it. ``made``: its place in the order of creation."""

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
    """Once late branches are merged: those that are in it by index, and of an object who gave each of its fields."""
    timer: int = 0
    """What ends the wait of its fan-in."""
    scope: str = ""
    """Of a frame whose branches were detached: the static scope that they have left."""
    since: int = 0
    """The number of the event that opened it."""


class LoopRun(msgspec.Struct, omit_defaults=True):
    """One instance of a loop. ``taken``: exits that some token took."""

    id: str
    loop: str
    path: Path
    made: int
    live: int = 0
    taken: list[str] = []


class Slot(msgspec.Struct, omit_defaults=True):
    """What the edges of a join (or of a plain node with several) have delivered here: token ids, or "" for a skip."""

    node: str
    path: Path
    items: dict[str, list[str]] = {}
    timer: int = 0
    """What ends the wait of a join."""
    owed: dict[str, int] = {}
    """Edges that a join did not wait for any longer: what they still bring ends here."""


class Kept(msgspec.Struct, omit_defaults=True):
    """All that was in a branch. ``inner``, ``around``: its own frames and loops."""

    live: int = 0
    tokens: list[Token] = []
    frames: list[Frame] = []
    loops: list[LoopRun] = []
    slots: dict[str, Slot] = {}
    inner: list[str] = []
    around: list[str] = []


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dead letter: what failed for good, with what it was given."""

    node: str
    input: Raw
    failure: Failure
    at: int


class GraphState(State, kw_only=True, omit_defaults=True):
    """A graph run."""

    begun: bool = False
    data: dict[str, Any] = {}
    marked: bool = False
    """Something in the data is not just JSON."""
    merging: dict[str, str] = {}
    """Fields of the data that hold what a frame has merged, and nobody has touched since."""
    newest: dict[str, int] = {}
    """By fan-in with late branches: the newest frame that has merged into the data."""
    tokens: dict[str, Token] = {}
    frames: dict[str, Frame] = {}
    loops: dict[str, LoopRun] = {}
    slots: dict[str, Slot] = {}
    places: dict[str, dict[str, bool]] = {}
    """Slots by the innermost scope of their path, so that they go with it."""
    deadlines: dict[int, str] = {}
    """Joins that wait with a deadline, by the number of their timer: ``f`` and a frame, or ``s`` and a slot."""
    unarmed: list[str] = []
    """Of these, those whose first arrival was just now."""
    agenda: list[str] = []
    """Tokens that something must be decided for: routed, failed, or to be started."""
    by_task: dict[int, str] = {}
    made: int = 0
    hops: int = 0
    executed: dict[str, int] = {}
    letters: dict[str, DeadLetter] = {}
    """Failures that no edge took and nobody has discarded, by their tokens."""


def seen_after(token: Token, output: Raw) -> dict[str, Seen]:
    """A token's past once its node has given this output."""
    known = token.seen.get(token.node)
    return {**token.seen, token.node: Seen((known.visit if known is not None else 0) + 1, output, token.message)}


def path_key(path: Path) -> str:
    """A path as a key."""
    return "/".join(f"{seg.kind}{seg.id}.{seg.n}" for seg in path)


def scope_key(path: Path) -> str:
    """The innermost scope of a path as a key; "" is the run itself. A loop's rounds share their instance's."""
    if not path:
        return ""
    seg = path[-1]
    return f"f{seg.id}.{seg.n}" if seg.kind == "f" else f"l{seg.id}"


def branch_keys(path: Path) -> list[str]:
    """The branches that a path lies in, outermost first, as keys."""
    return [f"{seg.id}.{seg.n}" for seg in path if seg.kind == "f"]


def innermost_branch(path: Path) -> Seg | None:
    """The branch a token is in, if it is in one."""
    return next((seg for seg in reversed(path) if seg.kind == "f"), None)
