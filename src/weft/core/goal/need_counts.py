"""Count, for a goal run, the state of each need, and which steps are needed at all and needed now. Pure.

A need is wanted while its step is needed and does not have the fact yet. A fact is wanted while one of its needs is. A
step is needed while a fact that it gives is wanted, or while it is a goal that is not over. The graph of needs has no
cycles, so reference counts are exact. Each need changes only a few times, so the total cost of settling a run is linear
in the size of its plan. Nothing is decided here. Only ``evolve`` changes the counts, and after a restart they are
rebuilt from plan and state.

Rules: docs/internals/goal.md#needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from weft.core.goal.nodes import IDLE, FactNode, NeedNode, StepNode
from weft.core.goal.plan import GoalPlan
from weft.core.goal.shape import shape_of_plan
from weft.core.goal.state import OVER_STEP, GoalState, StepRun, Value

NOTHING: Mapping[str, Value] = {}
"""The values of a step that has given none."""
Agenda = list[int]
"""A heap of steps that may need a decision, lowest id first. Entries may be stale."""


class NeedCounts:
    """The reference counts of one goal run, with heaps of the steps that may need a decision."""

    def __init__(self, plan: GoalPlan, state: GoalState) -> None:
        self.plan = plan
        self.state = state
        self.facts: dict[str, FactNode] = {}
        self.steps: dict[str, StepNode] = {}
        self.by_index: list[StepNode] = []
        self.unstartable: Agenda = []
        self.idle: Agenda = []
        self.waiting: Agenda = []
        self.ready: Agenda = []
        self.pumping: Agenda = []
        self.goals_left = 0
        self.goals_failed: list[str] = []
        self.unchecked: list[tuple[StepNode, int]] = []
        """The results that could not be checked when they arrived."""
        self.settled_windows: list[tuple[StepRun, str]] = []
        """Optional needs with a running deadline that have been decided since."""
        self._touched: list[StepNode] = []
        self.checked: dict[str, dict[str, bytes]] = {}
        """A cache of outputs that were checked when their results arrived, for steps without a fan-out."""
        self._count_all()

    # --- building -------------------------------------------------------------------------------------------------

    def _count_all(self) -> None:
        """Count everything from the plan and the state."""
        goals, facts = self.plan.goals, self.facts
        for index, shape in enumerate(shape_of_plan(self.plan).steps):
            step = StepNode(index, shape, self.state.steps[shape.id], goal=shape.id in goals)
            self.steps[shape.id] = step
            self.by_index.append(step)
            for give in shape.gives:
                fact = facts.get(give.fact) or self._get_or_add_fact(give.fact)
                fact.providers.append(step)
                step.gives.append(fact)
            for need in shape.needs:
                fact = facts.get(need.fact) or self._get_or_add_fact(need.fact)
                node = NeedNode(step, fact, need)
                fact.readers.append(node)
                step.needs.append(node)
                fact.keeps |= need.need.match is not None or need.need.collect != "first"
        for name, values in self.state.facts.items():
            self._get_or_add_fact(name).values = len(values)
        for step in self.by_index:
            self._count_outcome(step)
        for step in self.by_index:
            self._count_needs(step)
        self._touched.extend(self.by_index)
        self.propagate()

    def _get_or_add_fact(self, name: str) -> FactNode:
        fact = self.facts.get(name)
        if fact is None:
            fact = self.facts[name] = FactNode(name)
        return fact

    def _count_outcome(self, step: StepNode) -> None:
        if step.run.status == "pending":
            for fact in step.gives:
                fact.left += 1
            if step.goal:
                self.goals_left += 1
                step.needed += 1
                step.needed_now += 1
            return
        over = step.run.status in OVER_STEP
        gave = step.run.gave
        for fact in step.gives:
            fact.left += not over
            fact.empty += over and fact.name not in gave
        if step.goal:
            self.goals_left += not over
            step.needed += not over
            step.needed_now += not over
            if step.run.status == "failed":
                self.goals_failed.append(step.id)
        if step.run.status == "active":
            heappush(self.pumping, step.index)
            self.unchecked.extend((step, index) for index in sorted(step.run.results) if step.is_late(index))

    def _count_needs(self, step: StepNode) -> None:
        facts, decided = self.state.facts, step.run.decided
        for need in step.needs:
            values = facts.get(need.fact.name)
            if values and need.need.match is None:
                need.candidates = len(values)
            elif values:
                for value in values:
                    need.count(value)
            need.frozen = need.fact.name in decided
            need.state = need.assess()
            step.count(need, 1)

    # --- changes --------------------------------------------------------------------------------------------------

    def step_started(self, step: StepNode, *, pumped: bool) -> None:
        """Update the counts after a step has started and wants no more facts.

        If ``pumped``, its only item has begun.
        """
        if not pumped:
            heappush(self.pumping, step.index)
        self._touched.append(step)
        self.propagate()

    def note_work(self, step: StepNode) -> None:
        """Record that an item of the step is over, or that its retry is due."""
        heappush(self.pumping, step.index)

    def step_over(self, step: StepNode, given: Mapping[str, Value] = NOTHING) -> None:
        """Update the counts after a step is over and has given these values. It will give no others."""
        gave = step.run.gave
        for fact in step.gives:
            fact.left -= 1
            fact.empty += fact.name not in gave
            value = given.get(fact.name)
            fact.values += value is not None
            for need in fact.readers:
                if value is not None:
                    need.count(value)
                self._reassess(need)
        if step.goal:
            self.goals_left -= 1
            step.needed -= 1
            step.needed_now -= 1
            if step.run.status == "failed":
                self.goals_failed.append(step.id)
        self._touched.append(step)
        self.propagate()

    def break_cycles(self) -> None:
        """Stop counting because the run is over, and break the reference cycles between nodes.

        Without cycles, the memory of a run is freed at once, not at the next garbage collection.
        """
        for fact in self.facts.values():
            fact.providers, fact.readers = [], []
        for step in self.by_index:
            step.needs = []

    def freeze(self, need: NeedNode, values: int) -> None:
        """Decide an optional need for good. It can use at most this many values."""
        step = need.step
        step.count(need, -1)
        need.frozen = True
        step.count(need, 1)
        step.run.decided[need.fact.name] = values
        self._note_changed_need(need)

    def _reassess(self, need: NeedNode) -> None:
        state = need.assess()
        if state != need.state:
            step = need.step
            step.count(need, -1)
            need.state = state
            step.count(need, 1)
            self._note_changed_need(need)

    def _note_changed_need(self, need: NeedNode) -> None:
        if not need.undecided and need.fact.name in need.step.run.windows:
            self.settled_windows.append((need.step.run, need.fact.name))
        need.step.changed.append(need)
        self._touched.append(need.step)

    # --- consequences ---------------------------------------------------------------------------------------------

    def propagate(self) -> None:
        """Update all counts that depend on changed steps."""
        touched = self._touched
        while touched:
            step = touched.pop()
            if step.run.status != "pending" or step.closed:
                mode = IDLE
            else:
                mode = step.needed > 0, step.needed_now > 0, step.dead > 0, step.open_gates > 0, step.unmet > 0
            if mode != step.mode:
                step.mode = mode
                changed = step.needs
            else:
                changed = step.changed
            for need in changed:
                self._update_wanted(need)
            if step.changed:
                step.changed = []
            if step.run.status not in OVER_STEP:
                self._add_to_heaps(step)

    def _update_wanted(self, need: NeedNode) -> None:
        needed, needed_now, dead, gated, lacks = need.step.mode
        is_open = need.state == "open" and not need.frozen and (need.gate or not dead) and (lacks or not need.lazy)
        wanted = needed and is_open
        wanted_now = needed_now and is_open and (need.gate or not gated)
        fact = need.fact
        if wanted != need.wanted:
            need.wanted = wanted
            before = fact.wanted > 0
            fact.wanted += 1 if wanted else -1
            if before != (fact.wanted > 0):
                for provider in fact.providers:
                    provider.needed += 1 if wanted else -1
                    if provider.run.status not in OVER_STEP:
                        self._touched.append(provider)
        if wanted_now != need.wanted_now:
            need.wanted_now = wanted_now
            before = fact.wanted_now > 0
            fact.wanted_now += 1 if wanted_now else -1
            if before != (fact.wanted_now > 0):
                for provider in fact.providers:
                    provider.needed_now += 1 if wanted_now else -1
                    if provider.run.status not in OVER_STEP:
                        self._touched.append(provider)

    def _add_to_heaps(self, step: StepNode) -> None:
        """Put a step that is not over on the heaps of decisions that it may need."""
        status, index = step.run.status, step.index
        if step.needed == 0:
            heappush(self.idle, index)
        if status != "pending":
            return
        if step.closed > 0 or (step.dead > 0 and not step.open_gates):
            heappush(self.unstartable, index)
        if step.needed_now > 0 and step.unmet == 0:
            if step.undecided == 0:
                heappush(self.ready, index)
            elif step.lacks_window:
                heappush(self.waiting, index)

    # --- queries --------------------------------------------------------------------------------------------------

    def first_unstartable(self) -> StepNode | None:
        return self._first_step_where(self.unstartable, "cannot_start")

    def first_working(self) -> StepNode | None:
        """Return a step whose items are all over, or else one that can begin another item."""
        heap = self.pumping
        while heap:
            step = self.by_index[heap[0]]
            if step.run.status == "active" and (step.run.left == 0 or step.has_items):
                return step if step.run.left == 0 or len(heap) == 1 else self._first_done() or step
            heappop(heap)
        return None

    def _first_done(self) -> StepNode | None:
        steps = (self.by_index[index] for index in sorted(set(self.pumping)))
        return next((step for step in steps if step.run.status == "active" and step.run.left == 0), None)

    def first_ready(self) -> StepNode | None:
        heap = self.ready
        while heap:
            step = self.by_index[heap[0]]
            if step.is_ready:
                return step
            heappop(heap)
        return None

    def idle_steps(self) -> list[StepNode]:
        """Return every step that is not needed, in order of ids."""
        return self._all_steps_where(self.idle, "is_idle")

    def waiting_steps(self) -> list[StepNode]:
        """Return every step that starts to wait for an optional need with a deadline, in order of ids."""
        return self._all_steps_where(self.waiting, "lacks_window")

    def _first_step_where(self, heap: Agenda, condition: str) -> StepNode | None:
        while heap:
            step = self.by_index[heap[0]]
            if getattr(step, condition):
                return step
            heappop(heap)
        return None

    def _all_steps_where(self, heap: Agenda, condition: str) -> list[StepNode]:
        if self._first_step_where(heap, condition) is None:
            return []
        indexes = sorted({index for index in heap if getattr(self.by_index[index], condition)})
        return [self.by_index[index] for index in indexes]
