"""A graph document after folding its spellings into one form: the input of the compiler.

Every part has the place where its author wrote it (``at``). Targets may name nodes that do not exist, expressions may
not parse, and the structure may be unsound: the compiler checks all that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from weft.core.findings import At
from weft.core.graph.model import Deadline, Early, FanInNeed, FanOut, Join, Limits, Merge, RetryRule, Target, Work


@dataclass(slots=True)
class Source:
    """An expression as written, and where."""

    text: Any
    at: At


@dataclass(slots=True)
class FoldedRoute:
    """One edge in the document. ``when`` None: always. ``errors``: for a catch entry (empty: any error)."""

    to: str
    at: At
    tier: int = 0
    when: Source | None = None
    errors: list[str] | None = None
    each: Source | None = None
    each_name: str = "item"
    copies: int = 0
    width: int = 0


@dataclass(slots=True)
class FoldedRepeat:
    """A loop. ``condition`` None: repeat until the limit. ``exhausted`` None: no such key, the limit is a failure."""

    condition: Source | None
    at_most: int
    back_to: str
    at: At
    until: bool = False
    exhausted: list[FoldedRoute] | None = None


@dataclass(slots=True)
class FoldedSave:
    to: Target
    value: Source


@dataclass(slots=True)
class FoldedUndo:
    step: str
    input: Source | None = None
    retry: RetryRule = field(default_factory=RetryRule)
    timeout_ms: int = 0


@dataclass(slots=True)
class FoldedJoin:
    """A fan-in. ``of``: the fan-out that the document names, if any."""

    at: At
    need: FanInNeed = field(default_factory=FanInNeed)
    of: str = ""
    merge: Merge | None = None
    merge_at: At = ()
    early: Early = "cancel"


@dataclass(slots=True)
class FoldedNode:
    """The ``Expr``s in ``work`` have only their source; the compiler parses them.

    ``work_at``: where the work was written.
    """

    id: str
    at: At
    work: Work
    work_at: At = ()
    input: Source | None = None
    save: list[FoldedSave] = field(default_factory=list)
    retry: RetryRule = field(default_factory=RetryRule)
    timeout_ms: int = 0
    queue: str = ""
    limits: Limits = field(default_factory=Limits)
    undo: FoldedUndo | None = None
    on_failure: Literal["propagate", "route"] = "propagate"
    requires_approval: bool = False
    join: Join = "plain"
    fan_in: FoldedJoin | None = None
    deadline: Deadline | None = None
    fan_out: FanOut = "tiers"
    on_no_match: Literal["fail", "end"] = "fail"
    repeat: FoldedRepeat | None = None
    routes: list[FoldedRoute] = field(default_factory=list)


@dataclass(slots=True)
class FoldedGraph:
    """A document. If ``entries`` is None, they are the nodes that no edge leads to. ``targets`` cannot be entries.

    Targets include names in lists that another list replaced, such as the ``break_path`` of a node that has a branch.
    """

    name: str
    nodes: dict[str, FoldedNode] = field(default_factory=dict)
    entries: list[tuple[str, At]] | None = None
    targets: set[str] = field(default_factory=set)
    limits: Limits = field(default_factory=Limits)
    review: list[str] = field(default_factory=list)
    input: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    output: Source | None = None
