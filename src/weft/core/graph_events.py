"""Events of graph runs. Import them from ``weft.core.events``."""

from __future__ import annotations

from msgspec import Raw

from weft.core.parts import ABSENT, EdgeVerdict, LogEvent, Taken, Write
from weft.core.task_events import TaskScheduled
from weft.errors import Failure


class NodeRouted(LogEvent, frozen=True, kw_only=True, tag="node_routed"):
    """A token leaves its node along the ``taken`` edges, or ends if there are none. Token "" is the start of the run.

    ``writes``: the values that the token writes. ``output``: set if the node did no work, or changed the result of its
    work. ``arrival``: the part of the output that a fan-in reads, if the output is in a blob. ``skips``: whether the
    edges that were not taken are marked as skipped. ``caught``: the token carries a failure. ``verdicts``: the results
    of the conditions, for edges that have one.

    ``task``: the work of the next node, if it begins at once. That task has the number of this record.
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
    """A node failed for its own reason, for example because no edge matched. It may have written values before."""

    node: str = ""
    token: str
    failure: Failure
    writes: list[Write] = []
    output: Raw = ABSENT


class FailureRaised(LogEvent, frozen=True, kw_only=True, tag="failure_raised"):
    """No edge of the node catches a failure, so it becomes a dead letter and is raised through the enclosing frames.

    ``taker``: the frame that continues without the branch, or whose fan-in has an edge for the failure. If empty, the
    run fails. ``raised``: the failure that the taker or the run gets, if it is another one.
    """

    node: str = ""
    token: str
    failure: Failure
    taker: str = ""
    raised: Failure | None = None


class LetterDiscarded(LogEvent, frozen=True, kw_only=True, tag="letter_discarded"):
    """A person discarded a dead letter."""

    token: str
