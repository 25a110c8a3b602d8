"""What graph runs record. The words are part of ``weft.core.events`` and asked for there."""

from __future__ import annotations

from msgspec import Raw

from weft.core.parts import ABSENT, EdgeVerdict, LogEvent, Taken, Write
from weft.core.task_events import TaskScheduled
from weft.errors import Failure


class NodeRouted(LogEvent, frozen=True, kw_only=True, tag="node_routed"):
    """A token leaves its node by these edges (none: it ends), with what it writes. Token "" is the start of the run.

    ``output`` is given where the node did no work of its own, or adds to what its work gave. ``arrival``: what a fan-in
    reads of the output, where that lies in a blob. ``skips``: the edges not taken are told. ``caught``: it is a failure
    that goes this way. ``verdicts``: what conditions said; an edge without one has none.

    ``task``: the work that the token begins behind its edge, where that follows at once. The record's number is the
    task's number.
    """

    node: str = ""
    token: str = ""
    taken: list[Taken] = []
    writes: list[Write] = []
    verdicts: list[EdgeVerdict] = []
    output: Raw = ABSENT
    arrival: Raw = ABSENT
    skips: bool = True
    caught: bool = False
    task: TaskScheduled | None = None


class NodeFailed(LogEvent, frozen=True, kw_only=True, tag="node_failed"):
    """A node fails for a reason of its own, such as no edge that matches, and may have saved something before."""

    node: str = ""
    token: str
    failure: Failure
    writes: list[Write] = []
    output: Raw = ABSENT


class FailureRaised(LogEvent, frozen=True, kw_only=True, tag="failure_raised"):
    """No edge of its node takes a failure: a dead letter. It goes along the path, inside out.

    ``taker``: the frame that goes on without the branch, or whose fan-in has an edge for it; "": nobody, the run fails.
    ``raised``: the failure that the taker or the run sees, if that is another one.
    """

    node: str = ""
    token: str
    failure: Failure
    taker: str = ""
    raised: Failure | None = None


class LetterDiscarded(LogEvent, frozen=True, kw_only=True, tag="letter_discarded"):
    """Somebody has looked at a dead letter and wants no more of it."""

    token: str
