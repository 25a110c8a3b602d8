"""The nodes of a goal run's need counts: the facts, needs and steps of its plan. Pure.

A need is *met*, *open*, *dead* or *closed*. Its state follows from the facts and the statuses of steps alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from weft.core.goal.outputs import is_deferred
from weft.core.goal.shape import NeedShape, StepShape
from weft.core.goal.state import OVER_STEP, StepRun, Value

Mode = tuple[bool, bool, bool, bool, bool]
"""Of a pending step: is it needed, needed now, is a need dead, is a gate open, is a required need not met."""
IDLE: Mode = (False, False, False, False, False)
"""The mode of a step that wants no facts."""
NeedState = Literal["open", "met", "dead", "closed"]


class FactNode:
    """A fact in the plan: its providers, its readers, and how many values it has."""

    __slots__ = ("empty", "keeps", "left", "name", "providers", "readers", "values", "wanted", "wanted_now")

    def __init__(self, name: str) -> None:
        self.name = name
        self.providers: list[StepNode] = []
        self.readers: list[NeedNode] = []
        self.keeps = False
        """Whether a need reads more than the first value."""
        self.values = 0
        self.left = 0
        """How many providers are not over."""
        self.empty = 0
        """How many providers are over without having given the fact."""
        self.wanted = 0
        self.wanted_now = 0


class NeedNode:
    """One need of one step."""

    __slots__ = (
        "broken", "candidates", "fact", "frozen", "gate", "lazy", "need", "required", "state", "step", "wanted",
        "wanted_now",
    )  # fmt: skip

    def __init__(self, step: StepNode, fact: FactNode, shape: NeedShape) -> None:
        self.step = step
        self.fact = fact
        self.need = shape.need
        self.gate = shape.gate
        self.required = shape.need.role == "required"
        self.lazy = shape.need.role == "optional" and shape.need.deadline is None
        """Whether the step does not wait for this need, but takes the value that exists when the step starts."""
        self.state: NeedState = "open"
        self.candidates = 0
        self.broken = 0
        self.frozen = False
        """Whether this optional need is decided, so that later values are ignored."""
        self.wanted = False
        self.wanted_now = False

    @property
    def undecided(self) -> bool:
        """Whether the step waits for this need."""
        return self.state == "open" and not self.frozen and not self.lazy

    def count(self, value: Value) -> None:
        """Count one more value of the fact."""
        if self.need.match is None or self.step.id in value.matched:
            self.candidates += 1
        elif self.step.id in value.broken:
            self.broken += 1

    def assess(self) -> NeedState:
        """Return the state that follows from the counts, by the table in docs/internals/goal.md#states-of-a-need."""
        fact = self.fact
        collect = self.need.collect
        if collect == "first":
            if self.candidates:
                return "met"
            return "open" if fact.left else self._none_matches()
        match collect:
            case "last" | "some":
                if fact.left:
                    return "open"
                return "met" if self.candidates and not self.broken else self._none_matches()
            case "all":
                return self._assess_all()
            case "none":
                if self.candidates:
                    return "closed"
                if fact.left:
                    return "open"
                return "dead" if self.broken else "met"

    def _none_matches(self) -> NeedState:
        return "closed" if self.fact.values and not self.broken else "dead"

    def _assess_all(self) -> NeedState:
        fact = self.fact
        if self.need.match is None and fact.empty:
            return "dead"
        if fact.left:
            return "open"
        if fact.empty or not fact.values or self.broken:
            return "dead"
        return "met" if self.candidates == fact.values else "closed"


class StepNode:
    """A planned step with its counts."""

    __slots__ = (
        "changed",
        "closed",
        "dead",
        "definition",
        "gives",
        "goal",
        "id",
        "index",
        "mode",
        "needed",
        "needed_now",
        "needs",
        "open_gates",
        "run",
        "shape",
        "undecided",
        "unmet",
    )  # fmt: skip

    def __init__(self, index: int, shape: StepShape, run: StepRun, *, goal: bool) -> None:
        self.index = index
        self.id = shape.id
        self.shape = shape
        self.definition = shape.definition
        self.run = run
        self.goal = goal
        self.needs: list[NeedNode] = []
        self.gives: list[FactNode] = []
        self.changed: list[NeedNode] = []
        """The needs that may have become wanted or unwanted."""
        self.open_gates = 0
        self.closed = 0
        self.dead = 0
        self.unmet = 0
        self.undecided = 0
        self.needed = 0
        self.needed_now = 0
        self.mode: Mode = IDLE

    @property
    def cannot_start(self) -> bool:
        """Whether the step can only be skipped or fail."""
        return self.run.status == "pending" and (self.closed > 0 or (self.dead > 0 and not self.open_gates))

    @property
    def is_idle(self) -> bool:
        """Whether no goal can need the step any more."""
        return self.needed == 0 and self.run.status not in OVER_STEP

    @property
    def is_waiting(self) -> bool:
        """Whether the step is needed now and only optional needs can delay its start."""
        return self.run.status == "pending" and self.needed_now > 0 and self.unmet == 0

    @property
    def is_ready(self) -> bool:
        return self.unmet == 0 and self.undecided == 0 and self.needed_now > 0 and self.run.status == "pending"

    @property
    def lacks_window(self) -> bool:
        """Whether the step waits for an optional need whose deadline has not been set yet."""
        return self.is_waiting and self.undecided > 0 and any(self.windows())

    @property
    def has_items(self) -> bool:
        """Whether another item can begin."""
        run = self.run
        return run.active < self.definition.width and (bool(run.due or run.again) or run.index_next < run.items)

    @property
    def index_next(self) -> int:
        """The index of the item that begins next."""
        return self.run.again[0] if self.run.again else self.run.index_next

    def is_late(self, index: int) -> bool:
        """Return whether the result of an item could not be checked when it arrived."""
        return is_deferred(self.shape, self.run.results[index])

    def windows(self) -> Iterator[NeedNode]:
        """Yield the optional needs whose deadline has not been set yet."""
        for need in self.needs:
            if isinstance(need.need.deadline, int) and need.undecided and need.fact.name not in self.run.windows:
                yield need

    def count(self, need: NeedNode, sign: int) -> None:
        """Add a need to the counts (sign 1) or remove it (-1)."""
        if not need.required:
            self.undecided += sign * need.undecided
            return
        state = need.state
        self.unmet += sign * (state != "met")
        self.dead += sign * (state == "dead")
        if need.gate:
            self.open_gates += sign * (state == "open")
            self.closed += sign * (state == "closed")
