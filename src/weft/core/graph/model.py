"""The compiled graph (IR): what the token machine runs. Immutable, JSON, named by its content.

Built only by `compile_graph`, which has proved that scopes nest; nothing here is checked again. The terms are those of
docs/internals/graph.md#1-the-compiled-graph. Edges, loops and scopes are named by what they connect, never by position,
so a log and a state keep their meaning when the document changes elsewhere. An edge is `source>target` (with `@timeout`
or `@back` for these kinds, and `#2` for the second of a pair), a loop is its header, a scope the way into it. `START`
is the node that start's edges leave from. A hop looks only at the node it leaves and the edges there.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

START: Final = ""
"""The virtual node in front of the entries. No real node has this name."""

FORMAT: Final = 1

Join = Literal["plain", "edges", "fan_in"]
EdgeKind = Literal["main", "timeout", "back"]
FanOut = Literal["tiers", "first_match", "all"]
Early = Literal["cancel", "abandon", "late_merge"]
How = Literal["append", "merge_object", "keyed_by_branch", "last_wins"]
Backoff = Literal["fixed", "linear", "exponential"]


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    pass


class Expr(_Part, frozen=True, omit_defaults=True):
    """A condition, an expression or a template as its author wrote it, and what it looks at.

    `source`: CEL text or a condition object; for templates any JSON value in which strings may hold `${CEL}`. `names`:
    the bound names it uses (`input`, `output`, …, an `as` name), sorted. `nodes`: the nodes whose outputs it names;
    `["*"]` where only its evaluation tells.
    """

    source: Any
    names: list[str] = []
    nodes: list[str] = []


# --- what a node does --------------------------------------------------------------------------------------------


class StepWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="step"):
    """A registered step. `config_ref`: a blob that holds what the step is configured with."""

    step: str
    config_ref: str = ""


class HttpWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="http"):
    """An HTTP request; every string in it is a template."""

    request: Expr


class ScriptWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="script"):
    """A script. It sees the fields of the node's mapped input by name, else what arrived as ``input``."""

    language: str
    source: str


class WorkflowWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="workflow"):
    """A child run of a workflow of any style."""

    workflow: str
    version: str = ""


class GoalWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="goal"):
    """A child run that plans for these goals, given the node's input."""

    goals: list[str]


class AskWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="ask"):
    """A question to people. `form` is JSON Schema; `timeout_ms` 0: no limit; `escalate`: who is asked then.

    `enriches`: the output is what the node was given, merged with the decision.
    """

    title: Expr
    about: Expr | None = None
    form: dict[str, Any] | None = None
    of: list[str] = []
    quorum: str | int = "any"
    timeout_ms: int = 0
    on_timeout: Literal["fail", "approve", "reject", "escalate"] = "fail"
    escalate: list[str] = []
    four_eyes: bool = False
    remind_ms: int = 0
    enriches: bool = False


class AgentWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="agent"):
    agent: Any
    config_ref: str = ""


class WaitWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="wait"):
    """Nothing, for so long; the output is the input."""

    ms: int


class ReceiveWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="receive"):
    """The next message of this name; its body is the output. `timeout_ms` 0: no limit."""

    name: str
    schema: dict[str, Any] | None = None
    timeout_ms: int = 0
    answered: bool = False
    """Some node answers what this one takes."""


class ReplyWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="answer"):
    """Answer the message that the node `to` took last on this token's way; the output is the input."""

    to: str
    value: Expr


class PassWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="pass"):
    """Nothing at all; the output is the input."""


class TypeWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="type"):
    """A registered node type. `config` is a template; `config_ref` a blob that holds it."""

    type: str
    config: Expr | None = None
    config_ref: str = ""


Work = (
    StepWork
    | HttpWork
    | ScriptWork
    | WorkflowWork
    | GoalWork
    | AskWork
    | AgentWork
    | WaitWork
    | PassWork
    | TypeWork
    | ReceiveWork
    | ReplyWork
)


# --- data and policies -------------------------------------------------------------------------------------------


class Target(_Part, frozen=True, omit_defaults=True):
    """Where a value is written.

    `here`: the innermost branch's output if the token is in a branch, else the state. `state`: the state from anywhere.
    """

    scope: Literal["here", "state"]
    path: list[str]


class Save(_Part, frozen=True, omit_defaults=True):
    to: Target
    value: Expr


class RetryRule(_Part, frozen=True, omit_defaults=True):
    """What the document says; where it is silent (None) the step's own policy holds."""

    attempts: int | None = None
    backoff: Backoff | None = None
    delay_ms: int | None = None
    delay_ms_max: int | None = None


NO_RETRY: Final = RetryRule()
"""One object, like those below, so that what has it leaves it out and equal graphs have equal bytes."""


class Limits(_Part, frozen=True, omit_defaults=True):
    """Bounds of a run or, on a node, of its visits; 0: the engine's own. `time_ms` on a node counts all attempts."""

    time_ms: int = 0
    hops: int = 0
    tokens: int = 0
    fan_out: int = 0


NO_LIMITS: Final = Limits()


class UndoRule(_Part, frozen=True, omit_defaults=True):
    """The step that takes the node back. Without `input` it is given the node's input and output."""

    step: str
    input: Expr | None = None
    retry: RetryRule = NO_RETRY
    timeout_ms: int = 0


class FanInNeed(_Part, frozen=True, omit_defaults=True):
    """How many branches must arrive: all, `count` of them, or `percent` of the total, rounded up, at least one."""

    kind: Literal["all", "count", "percent"] = "all"
    count: int = 0
    percent: float = 0

    def of(self, total: int) -> int:
        """M for a frame of so many branches; `all` is the total."""
        if self.kind == "all":
            return total
        if self.kind == "count":
            return self.count
        scaled = self.percent * total
        return max(1, int(scaled // 100) + (scaled % 100 > 0))


ALL: Final = FanInNeed()
ITEM: Final = "item"


class Merge(_Part, frozen=True, omit_defaults=True):
    """`source`: empty for the whole branch output, else a path whose first word is `output` or `branch`."""

    how: How
    into: Target
    source: list[str] = []


class FanIn(_Part, frozen=True, omit_defaults=True):
    """What a fan-in closes and when. `opener` is a node, or `START`."""

    opener: str
    need: FanInNeed = ALL
    merge: Merge | None = None
    early: Early = "cancel"


class Deadline(_Part, frozen=True, omit_defaults=True):
    """How long a join waits from its first arrival; then it goes on with what is there, or fails."""

    ms: int
    proceeds: bool = False


class Repeat(_Part, frozen=True, omit_defaults=True):
    """The loop that a node closes: it goes on while the condition holds (`until`: while it does not).

    `at_most` counts executions of the node within one instance of the loop. `exhausted`: its timeout edges, taken when
    the limit is reached; `fails`: there is no such key, so that the limit is a failure. Without a condition it goes
    round until the limit and is then left as if the condition were false.
    """

    condition: Expr | None
    at_most: int
    loop: str = ""
    back: str = ""
    until: bool = False
    exhausted: list[str] = []
    fails: bool = False


# --- the graph ---------------------------------------------------------------------------------------------------


class ForEach(_Part, frozen=True, omit_defaults=True):
    """`for_each`: a branch per item of the list that `collection` (one CEL expression) gives."""

    collection: Expr
    name: str = ITEM


class Edge(_Part, frozen=True, omit_defaults=True):
    """`exits`: loops whose body holds `source` and not `to`, innermost first.

    A token pops those of them that lie above its innermost frame. `errors`: a catch entry, for these kinds of error
    or, if empty, for any. `copies`: spawn so many branches. `width`: how many branches work at once (0: all). `loop`:
    of a back edge, the loop it goes round. `ordinal`: its place among the edges of this document: start's, then node by
    node; only the order in which edges are taken follows from it.
    """

    name: str
    ordinal: int
    source: str
    to: str
    kind: EdgeKind = "main"
    tier: int = 0
    when: Expr | None = None
    errors: list[str] | None = None
    each: ForEach | None = None
    copies: int = 0
    width: int = 0
    mentions_error: bool = False
    opens: bool = False
    exits: list[str] = []
    loop: str = ""


class Loop(_Part, frozen=True, omit_defaults=True):
    """`parent`: the loop around it ("": none). `exits`: edges that pop it; skipped when it ends and none took them."""

    header: str
    latches: list[str]
    parent: str = ""
    exits: list[str] = []


class Delivery(_Part, frozen=True, omit_defaults=True):
    """The edges that can deliver to a node in one scope."""

    scope: str
    edges: list[str]


class Node(_Part, frozen=True, omit_defaults=True):
    """A place where work is done, with everything a hop through it asks for.

    `main`: its main edges in document order; `tiers`: the same by tier ascending; `error_tiers`: those of them that
    mention error.
    `incoming`: forward edges that can deliver. `waits`: only where not all of them can deliver in every scope, which
    can in which; the scope is the one they deliver in, before the node pushes a loop that it heads. `heads`: loops
    entered here, outermost first; `loop`: the innermost one around the node, its own included. `opening`: its edges
    that open, by ordinal; `closed_by`: the fan-in of the frame they open. `terminal`: it has no main edge but those
    that mention error. `scopes`: where its tokens may work. `remembered`: some expression names its output, so tokens
    keep it.
    """

    id: str
    work: Work
    input: Expr | None = None
    save: list[Save] = []
    retry: RetryRule = NO_RETRY
    timeout_ms: int = 0
    queue: str = ""
    limits: Limits = NO_LIMITS
    undo: UndoRule | None = None
    on_failure: Literal["propagate", "route"] = "propagate"
    join: Join = "plain"
    fan_in: FanIn | None = None
    deadline: Deadline | None = None
    fan_out: FanOut = "tiers"
    on_no_match: Literal["fail", "end"] = "fail"
    repeat: Repeat | None = None
    main: list[str] = []
    tiers: list[list[str]] = []
    error_tiers: list[list[str]] = []
    incoming: list[str] = []
    waits: list[Delivery] = []
    opening: list[str] = []
    closed_by: str = ""
    heads: list[str] = []
    loop: str = ""
    scopes: list[str] = []
    terminal: bool = False
    remembered: bool = False


class Graph(_Part, frozen=True, omit_defaults=True):
    """`edges` and `loops` by name. `start`: start's edges; `start_closed_by`: the fan-in that closes what start opens.

    `input`, `state` and `result` are JSON Schema (None: anything goes); `output` is a template, None: the state.
    """

    name: str
    nodes: dict[str, Node]
    edges: dict[str, Edge]
    start: list[str]
    format: int = FORMAT
    loops: dict[str, Loop] = {}
    start_closed_by: str = ""
    terminals: list[str] = []
    limits: Limits = NO_LIMITS
    input: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    output: Expr | None = None


_canonical = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(Graph)


def encode(graph: Graph) -> bytes:
    """Canonical JSON: equal graphs have equal bytes."""
    return _canonical.encode(graph)


def decode(raw: bytes) -> Graph:
    """What `encode` wrote."""
    return _decoder.decode(raw)


def content_hash(graph: Graph) -> str:
    """The name of this very graph: SHA-256 of its canonical JSON, in hex."""
    return hashlib.sha256(encode(graph)).hexdigest()
