"""The compiled graph (IR) that the token machine runs. Immutable, JSON, identified by its content.

Only ``compile_graph`` builds it, after proving that scopes nest, so nothing is checked again. The terms are those of
docs/internals/graph.md#1-the-compiled-graph. Edges, loops and scopes are named by what they connect, never by position,
so that logs and states keep their meaning when the document changes elsewhere. An edge is named ``source>target`` (with
``@timeout`` or ``@back`` for these kinds, and ``#2`` for the second of a pair), a loop by its header, a scope by its
path. ``START`` is the source of start's edges. A hop reads only the node that it leaves and the edges there.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec

from weft.core.budgets import BudgetLimits

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
    """A condition, an expression or a template as its author wrote it, with the names that it uses.

    ``source``: CEL text or a condition object; for templates any JSON value in which strings may contain ``${CEL}``.
    ``names``: the bound names it uses (``input``, ``output``, …, an ``as`` name), sorted. ``nodes``: the nodes whose
    outputs it names; ``["*"]`` if that is only known when it is evaluated.
    """

    source: Any
    names: list[str] = []
    nodes: list[str] = []


# --- the work of a node ------------------------------------------------------------------------------------------


class StepWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="step"):
    """A registered step. ``config_ref``: a blob with the configuration of the step."""

    step: str
    config_ref: str = ""


class HttpWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="http"):
    """An HTTP request. Every string in it is a template."""

    request: Expr


class ScriptWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="script"):
    """A script. It sees the fields of the mapped input by name, or else the value that arrived as ``input``."""

    language: str
    source: str


class PipelineWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="pipeline"):
    """A pipeline over ``data``: that field of the mapped input, or else the value that arrived.

    Every string in it is a template.
    """

    pipeline: Expr


class WorkflowWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="workflow"):
    """A child run of a workflow of any style."""

    workflow: str
    version: str = ""


class GoalWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="goal"):
    """A child run with these goals. The input of the node becomes its given facts."""

    goals: list[str]


class AskWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="ask"):
    """A question to people. ``form`` is JSON Schema, and ``timeout_ms`` 0 means no limit.

    ``escalate`` lists whom to ask after the timeout. If ``enriches``, the output is the node's input merged with the
    decision.
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


class AgentChoice(_Part, frozen=True, omit_defaults=True):
    """The nodes that an agent may choose next, 1 to ``at_most`` of them.

    ``otherwise``: where the token goes if the agent makes no valid choice. If it is empty, the node fails.
    """

    of: list[str]
    at_most: int
    otherwise: list[str] = []


class AgentWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="agent"):
    """A child run of an agent: a registered one by its name, or one that ``parts`` describes.

    ``prompt`` is a template; without it, the prompt is what arrived. The node's output is that of the agent, or
    ``{text}`` if it is text. ``config_ref``: a blob with more parts.
    """

    agent: str = ""
    parts: dict[str, Any] | None = None
    prompt: Expr | None = None
    choose: AgentChoice | None = None
    config_ref: str = ""
    allowed_tools: list[str] | None = None
    """The only tools that it may call, with wildcards; None for all that it has."""


class WaitWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="wait"):
    """A pause of this length. The output is the input."""

    ms: int


class ReceiveWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="receive"):
    """Receive the next message with this name. Its body is the output. ``timeout_ms`` 0: no limit."""

    name: str
    schema: dict[str, Any] | None = None
    timeout_ms: int = 0
    answered: bool = False
    """Whether a node replies to the messages that this one receives."""


class ReplyWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="answer"):
    """Reply to the latest message that the node ``to`` received on the path of this token. The output is the input."""

    to: str
    value: Expr


class PassWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="pass"):
    """No work. The output is the input."""


class TypeWork(_Part, frozen=True, omit_defaults=True, tag_field="kind", tag="type"):
    """A registered node type. ``config`` is a template, ``config_ref`` a blob with the configuration."""

    type: str
    config: Expr | None = None
    config_ref: str = ""


Work = (
    StepWork
    | HttpWork
    | ScriptWork
    | PipelineWork
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

    ``here``: to the output of the innermost branch if the token is in a branch, else to the state. ``state``: always to
    the state.
    """

    scope: Literal["here", "state"]
    path: list[str]


class Save(_Part, frozen=True, omit_defaults=True):
    to: Target
    value: Expr


class RetryRule(_Part, frozen=True, omit_defaults=True):
    """The retry policy in the document. For a field that is None, the policy of the step applies."""

    attempts: int | None = None
    backoff: Backoff | None = None
    delay_ms: int | None = None
    delay_ms_max: int | None = None


NO_RETRY: Final = RetryRule()
"""A shared object. Fields equal to it are left out, so that equal graphs have equal bytes."""


class Limits(_Part, frozen=True, omit_defaults=True):
    """Limits of a run or, on a node, of its visits. 0: the engine's default.

    On a node ``time_ms`` spans all attempts.
    """

    time_ms: int = 0
    hops: int = 0
    tokens: int = 0
    fan_out: int = 0
    budget: BudgetLimits | None = None
    """What a run may spend. Only at the top of a document."""


NO_LIMITS: Final = Limits()


class UndoRule(_Part, frozen=True, omit_defaults=True):
    """The step that undoes the node. Without ``input`` it receives the input and output of the node."""

    step: str
    input: Expr | None = None
    retry: RetryRule = NO_RETRY
    timeout_ms: int = 0


class FanInNeed(_Part, frozen=True, omit_defaults=True):
    """How many branches must arrive: all, ``count``, or ``percent`` of the total, rounded up, at least one."""

    kind: Literal["all", "count", "percent"] = "all"
    count: int = 0
    percent: float = 0

    def of(self, total: int) -> int:
        """Return the number of branches that must arrive, out of this total."""
        if self.kind == "all":
            return total
        if self.kind == "count":
            return self.count
        scaled = self.percent * total
        return max(1, int(scaled // 100) + (scaled % 100 > 0))


ALL: Final = FanInNeed()
ITEM: Final = "item"


class Merge(_Part, frozen=True, omit_defaults=True):
    """How branch outputs are merged. ``source``: empty (the whole output), or a path from ``output`` or ``branch``."""

    how: How
    into: Target
    source: list[str] = []


class FanIn(_Part, frozen=True, omit_defaults=True):
    """Which fan-out a fan-in closes, and when it fires. ``opener`` is a node, or ``START``."""

    opener: str
    need: FanInNeed = ALL
    merge: Merge | None = None
    early: Early = "cancel"


class Deadline(_Part, frozen=True, omit_defaults=True):
    """How long a join waits from its first arrival. Then it continues with what has arrived, or fails."""

    ms: int
    proceeds: bool = False


class Repeat(_Part, frozen=True, omit_defaults=True):
    """The loop that a node closes: it repeats while the condition is true (``until``: while it is false).

    ``at_most`` counts executions of the node within one instance of the loop. ``exhausted``: the timeout edges, taken
    when the limit is reached. ``fails``: there is no such key, so reaching the limit is a failure. Without a condition
    the loop runs to the limit and then continues as if the condition were false.
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
    """``for_each``: one branch per item of the list that ``collection`` (one CEL expression) evaluates to."""

    collection: Expr
    name: str = ITEM


class Edge(_Part, frozen=True, omit_defaults=True):
    """An edge. ``exits``: loops whose body contains ``source`` but not ``to``, innermost first.

    A token pops those of them that are above its innermost frame. ``errors``: for a catch entry, the kinds of error
    (empty: any). ``copies``: spawn this many branches. ``width``: how many branches work at once (0: all). ``loop``:
    for a back edge, its loop. ``ordinal``: the place among the edges of this document, start's first, then node by
    node; it only determines the order in which edges are taken.
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
    """A loop in ``parent`` ("": none). ``exits``: edges that leave the loop, skipped at its end if not taken."""

    header: str
    latches: list[str]
    parent: str = ""
    exits: list[str] = []


class Delivery(_Part, frozen=True, omit_defaults=True):
    """The edges that can deliver to a node in one scope."""

    scope: str
    edges: list[str]


class Node(_Part, frozen=True, omit_defaults=True):
    """A node, with everything that a hop through it needs.

    ``main``: its main edges in document order. ``tiers``: the same edges by ascending tier. ``error_tiers``: those that
    mention an error. ``incoming``: forward edges that can deliver. ``waits``: set only if some of them cannot deliver
    in every scope: which can in which scope. That scope is the one of the delivery, before the node enters a loop that
    it heads. ``heads``: loops entered here, outermost first. ``loop``: the innermost loop around the node, or its own.
    ``opening``: its edges that open a frame, by ordinal. ``closed_by``: the fan-in of that frame. ``terminal``: all its
    main edges mention an error. ``scopes``: where its tokens may work. ``remembered``: an expression names its output,
    so tokens keep it. ``requires_approval``: people are asked before each of its executions.
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
    requires_approval: bool = False
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


class GraphModel(_Part, frozen=True, omit_defaults=True):
    """A compiled graph. ``start``: the edges of start. ``start_closed_by``: the fan-in that closes a fan-out of start.

    ``input``, ``state`` and ``result`` are JSON Schema (None: anything is allowed). ``output`` is a template (None: the
    state).
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
    review: list[str] = []
    """Who must agree to every patch of a run."""
    input: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    output: Expr | None = None


_canonical = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(GraphModel)


def encode(graph: GraphModel) -> bytes:
    """Encode a graph as canonical JSON: equal graphs have equal bytes."""
    return _canonical.encode(graph)


def decode(raw: bytes) -> GraphModel:
    """Decode a graph that ``encode`` has encoded."""
    return _decoder.decode(raw)


def content_hash(graph: GraphModel) -> str:
    """Return the SHA-256 of the canonical JSON, in hex. It identifies the graph."""
    return hashlib.sha256(encode(graph)).hexdigest()
