"""Events of graph runs. Import them from ``weft.core.events``."""

from __future__ import annotations

from msgspec import Raw

from weft.core.event_parts import ABSENT, EdgeVerdict, LogEvent, Taken, Write
from weft.core.task_events import TaskScheduled
from weft.errors import Failure


class NodeRouted(LogEvent, frozen=True, kw_only=True, tag="node_routed"):
    """A token leaves its node along the ``taken`` edges, or ends if there are none. Token "" is the start of the run.

    ``writes`` has the values that the token writes. ``verdicts`` has the results of the conditions of its edges.
    ``output`` is the node's output, if the node had no task or changed its result. ``arrival`` is the part of the
    output that a fan-in reads, if the output is in a blob. ``skips`` says whether the edges that were not taken count
    as skipped, and ``caught`` that the token carries a failure.

    ``task`` is the task of the next node, if it begins at once. It has the number of this record.
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
    """A node failed although its task did not, for example because no edge matched.

    It may have written values before.
    """

    node: str = ""
    token: str
    failure: Failure
    writes: list[Write] = []
    output: Raw = ABSENT


class FailureRaised(LogEvent, frozen=True, kw_only=True, tag="failure_raised"):
    """No edge of the node catches a failure, so it becomes a dead letter and is raised through the enclosing frames.

    ``taker`` is the frame that continues without the branch, or whose fan-in has an edge for the failure. If it is
    empty, the run fails. ``raised`` is the failure that the taker or the run receives, if it is not ``failure`` itself.
    """

    node: str = ""
    token: str
    failure: Failure
    taker: str = ""
    raised: Failure | None = None


class LetterDiscarded(LogEvent, frozen=True, kw_only=True, tag="letter_discarded"):
    """A person discarded a dead letter."""

    token: str
