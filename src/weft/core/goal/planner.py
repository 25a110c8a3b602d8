"""Plan which steps a set of goals requires, given some facts. Pure, linear, and independent of order.

Pass 1 finds the steps that could run with the given facts. Pass 2 walks from the goals to the steps that they need.
Values, predicates and health have no influence, so a preview and a start make the same plan. The rules and their terms
are in docs/internals/goal.md#2-the-planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weft.core.goal.catalogue import Catalogue, CatalogueEntry
from weft.core.goal.definitions import GoalWay, inner_name
from weft.core.goal.plan import PLANS_KEPT, STEPS_KEPT, Excluded, FactUse, GoalPlan, Why
from weft.core.goal.types import is_any
from weft.errors import BadPlan, LimitExceeded

DEPTH_MAX = 32
STEPS_MAX = 100_000
"""The limit for a plan together with all plans inside it."""


def make_plan(catalogue: Catalogue, goals: Sequence[str], given: Iterable[str]) -> GoalPlan:
    """Return the plan for these goals, even if facts are missing. Plans are cached until the catalogue changes.

    Raises:
        BadPlan: there are no goals.
        UnknownStep: a goal, of this plan or of a child run, is not in the catalogue.
        LimitExceeded: child runs are nested too deeply, or the plan has too many steps.
    """
    if not goals:
        raise BadPlan("A plan needs a goal.", hint="Name the step whose result you want.", code="goal.no_goal")
    key = (tuple(dict.fromkeys(goals)), frozenset(given))
    plans = catalogue.plans
    plan = plans.get(key)
    if plan is None:
        plan = _PlanMaker(catalogue).plan(*key, ())
        if len(plans) >= PLANS_KEPT:
            plans.clear()
        if len(plan.steps) <= STEPS_KEPT:
            plans[key] = plan
    return plan


class KnownFacts(msgspec.Struct, frozen=True):
    """The facts that a plan can rely on. At the start of a run, only the given ones.

    In a run that is planned again, ``values`` are all facts with a value. ``met`` and ``dead`` name needs, as step and
    fact: those with a value that their match accepts, and those that can never be met.
    """

    given: frozenset[str]
    values: frozenset[str]
    met: frozenset[tuple[str, str]] = frozenset()
    dead: frozenset[tuple[str, str]] = frozenset()
    awaited: dict[tuple[str, str], list[str]] = {}
    """Needs that wait although their fact was given before, as step and fact, and the steps that they wait for."""
    goals_left: frozenset[str] = frozenset()
    """Goals that are still to be achieved although their outputs were given before."""


def plan_again(
    catalogue: Catalogue, goals: Sequence[str], known: KnownFacts, inner: Catalogue, kept: Mapping[str, GoalPlan]
) -> GoalPlan:
    """Return the plan for a run that has begun, even if facts are missing.

    The child plans in ``kept`` stay as they are. New ones are made from the steps in ``inner``.

    Raises:
        UnknownStep: a goal, of this plan or of a child run, is not in the catalogue.
        LimitExceeded: child runs are nested too deeply, or the plan has too many steps.
    """
    walk = _PlanWalk(catalogue, tuple(goals), known)
    walk.run()
    children, _, _ = _PlanMaker(inner).children(walk, (), kept)
    return walk.result(children)


class _SizedPlan(msgspec.Struct, frozen=True):
    """A plan, the number of steps in it including inner plans, and how deep inner plans are nested."""

    plan: GoalPlan
    size: int
    height: int


class _PlanMaker:
    """Makes a plan and the plans of its goal steps. Equal child plans are made once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.known: dict[tuple[tuple[str, ...], frozenset[str]], _SizedPlan] = {}

    def plan(self, goals: tuple[str, ...], given: frozenset[str], above: tuple[str, ...]) -> GoalPlan:
        return self._make_plan(goals, given, above).plan

    def _make_plan(self, goals: tuple[str, ...], given: frozenset[str], above: tuple[str, ...]) -> _SizedPlan:
        found = self.known.get((goals, given))
        if len(above) + (found.height if found is not None else 0) > DEPTH_MAX:
            raise LimitExceeded(f"Child runs nest deeper than {DEPTH_MAX}: {'/'.join(above)}.")
        if found is not None:
            return found
        walk = _PlanWalk(self.catalogue, goals, KnownFacts(given, given))
        walk.run()
        children, size, height = self.children(walk, above, NO_PLANS)
        self.known[goals, given] = sized = _SizedPlan(walk.result(children), size, height)
        return sized

    def children(
        self, walk: _PlanWalk, above: tuple[str, ...], kept: Mapping[str, GoalPlan]
    ) -> tuple[dict[str, GoalPlan], int, int]:
        """Return the plans of goal steps, the number of steps in all plans together, and how deep they are nested."""
        children: dict[str, GoalPlan] = {}
        size, height = len(walk.steps), 0
        for step in sorted(walk.steps) if walk.catalogue.callers else ():
            definition = walk.entries[step].definition
            if step in kept:
                children[step] = kept[step]
            elif isinstance(definition.way, GoalWay):
                sure = frozenset(inner_name(fact, need) for fact, need in definition.needs.items() if need.is_sure)
                child = self._make_plan(tuple(dict.fromkeys(definition.way.goals)), sure, (*above, step))
                size, height = size + child.size, max(height, child.height + 1)
                if size > STEPS_MAX:
                    raise LimitExceeded(f"A plan with its child runs has more than {STEPS_MAX:,} steps.")
                children[step] = child.plan
                walk.add_child(step, child.plan)
        return children, size, height


NO_STEPS: list[str] = []
NO_PLANS: Mapping[str, GoalPlan] = {}
NeedKey = tuple[str, str, bool, bool]
"""A need as stored in the catalogue: fact, collect, whether it is required, whether it is a gate."""


class _PlanWalk:
    """Builds one plan."""

    def __init__(self, catalogue: Catalogue, goals: tuple[str, ...], known: KnownFacts) -> None:
        self.catalogue = catalogue
        self.entries = catalogue.entries
        self.providers = catalogue.providers
        self.goals = goals
        self.given = known.given
        self.values = known.values
        self.met_needs = known.met
        self.dead_needs = known.dead
        self.awaited = known.awaited
        self.goals_left = known.goals_left
        for goal in goals:
            catalogue.step(goal)
        self.blocked: dict[str, list[str]] = {}
        self.satisfiable: set[str] = set()
        self.waiting: dict[str, CatalogueEntry] = {}
        """By missing fact: the first step that needs one provider of it. Usually there is only one such step."""
        self.waiting_more: dict[str, list[CatalogueEntry]] = {}
        """By missing fact: the other steps that need one provider of it."""
        self.waiting_all: dict[str, list[CatalogueEntry]] = {}
        """By missing fact: the steps that need every provider of it."""
        self.steps: dict[str, bool] = {}
        """The steps of the plan, and whether each is reached without passing a gate."""
        self.met: dict[Why, dict[str, list[str]]] = {"blocked": {}, "missing": {}, "satisfied": {}}
        self.missing: dict[str, dict[str, None]] = {}
        self.required: dict[str, None] = {}
        self.walked: dict[str, set[str]] = {"prune": set(), "follow": set(), "demand": set()}
        self.todo: list[str] = []

    def run(self) -> None:
        self._find_runnable(self._find_upstream_steps())
        self._walk_from_goals()

    # --- pass 1 ---------------------------------------------------------------------------------------------------

    def _find_upstream_steps(self) -> list[CatalogueEntry]:
        """Return every step that a goal could depend on. No other step can change the plan."""
        entries, providers, given = self.entries, self.providers, self.given
        found = set(self.goals)
        facts: set[str] = set()
        order = [entries[goal] for goal in self.goals]
        for entry in order:  # grows during the iteration
            if entry.blocking:
                by = [fact for fact in entry.blocking if fact in given]
                if by:
                    self.blocked[entry.id] = by
            for fact in entry.reads:
                if fact in facts:
                    continue
                facts.add(fact)
                for provider in providers.get(fact, ()):
                    if provider not in found:
                        found.add(provider)
                        order.append(entries[provider])
        return order

    def _find_runnable(self, entries: Sequence[CatalogueEntry]) -> None:
        given, dead, waiting, blocked = self.values, self.dead_needs, self.waiting, self.blocked
        unmet: dict[str, int] = {}
        """For each fact that all its providers must give: how many of them cannot run yet."""
        lacks: dict[str, int] = {}
        """For each step that lacks several facts: how many."""
        ready: list[CatalogueEntry] = []
        for entry in entries:
            count = 0
            for fact in entry.once:
                if fact not in given and not (dead and (entry.id, fact) in dead):
                    count += 1
                    if fact in waiting:
                        self.waiting_more.setdefault(fact, []).append(entry)
                    else:
                        waiting[fact] = entry
            for fact in entry.every:
                unblocked = self._count_unblocked_providers(fact)
                if (fact not in given or unblocked) and not (dead and (entry.id, fact) in dead):
                    count += 1
                    unmet[fact] = unblocked
                    self.waiting_all.setdefault(fact, []).append(entry)
            if count > 1:
                lacks[entry.id] = count
            elif not count and entry.id not in blocked:
                ready.append(entry)
        self._mark_satisfiable(ready, lacks, unmet)

    def _mark_satisfiable(self, ready: list[CatalogueEntry], lacks: dict[str, int], unmet: dict[str, int]) -> None:
        blocked, satisfiable, waiting, waiting_more = self.blocked, self.satisfiable, self.waiting, self.waiting_more

        def fact_available(step: CatalogueEntry) -> None:
            left = lacks.get(step.id, 1) - 1
            if left:
                lacks[step.id] = left
            elif step.id not in blocked:
                ready.append(step)

        while ready:
            entry = ready.pop()
            satisfiable.add(entry.id)
            for fact in entry.gives:
                first = waiting.pop(fact, None)
                if first is not None:
                    fact_available(first)
                    for step in waiting_more.pop(fact, ()):
                        fact_available(step)
                if fact in unmet:
                    unmet[fact] -= 1
                    for step in self.waiting_all.pop(fact) if not unmet[fact] else ():
                        fact_available(step)

    def _count_unblocked_providers(self, fact: str) -> int:
        found = self.providers.get(fact, ())
        return len(found) if not self.blocked else sum(1 for provider in found if provider not in self.blocked)

    def _lacked_facts(self, entry: CatalogueEntry) -> list[str]:
        """Return the facts that a step still lacks after every step that can run has run."""
        return [fact for fact, every in entry.lacking if self._is_lacked(entry.id, fact, every=every)]

    def _is_lacked(self, step: str, fact: str, *, every: bool) -> bool:
        return fact in (self.waiting_all if every else self.waiting) and (step, fact) not in self.dead_needs

    # --- pass 2 ---------------------------------------------------------------------------------------------------

    def _walk_from_goals(self) -> None:
        for goal in self.goals:
            entry = self.entries[goal]
            if goal in self.blocked:
                self.met["blocked"][goal] = self.blocked[goal]
            elif entry.gives and all(fact in self.given for fact in entry.gives) and goal not in self.goals_left:
                self.met["satisfied"][goal] = list(entry.gives)
            else:
                self.todo.append(goal)
        postponed: list[tuple[str, NeedKey]] = []
        self._walk_needs(postponed, certain=True)
        for step, need in postponed:
            self._look_at_need(step, need, certain=False)
        self._walk_needs(None, certain=False)

    def _walk_needs(self, postponed: list[tuple[str, NeedKey]] | None, *, certain: bool) -> None:
        todo, steps, entries = self.todo, self.steps, self.entries
        values, waiting, demanded = self.values, self.waiting, self.walked["demand"]
        while todo:
            step = todo.pop()
            if step in steps:
                continue
            steps[step] = certain
            entry = entries[step]
            for need in entry.needs:
                fact = need[0]
                if not entry.gates and need[1] == "first" and fact not in waiting and fact not in values:
                    # The common case, without a call of ``_look_at_need``.
                    if fact not in demanded:
                        self._demand_fact(fact)
                elif postponed is not None and entry.gates and not need[3]:
                    postponed.append((step, need))
                else:
                    self._look_at_need(step, need, certain=certain)

    def _look_at_need(self, step: str, need: NeedKey, *, certain: bool) -> None:
        fact, collect, required, _ = need
        if collect == "first" and (fact in self.given or (step, fact) in self.met_needs):
            kind = "prune"
            self.todo.extend(self.awaited.get((step, fact), ()))
        elif required and collect != "none" and self._is_lacked(step, fact, every=collect == "all"):
            kind = "follow"
            if not self._count_unblocked_providers(fact):
                self._note_missing_fact(fact, step, certain=certain)
        else:
            kind = "demand"
        walked = self.walked[kind]
        if fact in walked:
            return
        if kind == "demand":
            self._demand_fact(fact)
            return
        walked.add(fact)
        for provider in self.providers.get(fact, ()):
            if provider not in self.steps:
                self._follow_provider(provider, kind)

    def _demand_fact(self, fact: str) -> None:
        self.walked["demand"].add(fact)
        steps, satisfiable = self.steps, self.satisfiable
        for provider in self.providers.get(fact, ()):
            if provider in steps:
                continue
            if provider in satisfiable:
                self.todo.append(provider)
            else:
                self._follow_provider(provider, "demand")

    def _follow_provider(self, provider: str, kind: str) -> None:
        if provider in self.blocked:
            self.met["blocked"][provider] = self.blocked[provider]
        elif kind == "follow":
            self.todo.append(provider)
        elif kind == "prune":
            gives = self.entries[provider].gives
            self.met["satisfied"][provider] = [fact for fact in gives if fact in self.values]
        else:
            self.met["missing"][provider] = self._lacked_facts(self.entries[provider])

    def _note_missing_fact(self, fact: str, step: str, *, certain: bool) -> None:
        self.missing.setdefault(fact, {})[step] = None
        if certain:
            self.required[fact] = None

    def add_child(self, step: str, child: GoalPlan) -> None:
        """Add the missing facts of a child run, so that a child that cannot start prevents the start of its parent."""
        for name in child.required:
            self._note_missing_fact(f"{step}/{name}", step, certain=self.steps[step])
        for name in child.conditional:
            self._note_missing_fact(f"{step}/{name}", step, certain=False)

    # --- the plan -------------------------------------------------------------------------------------------------

    def result(self, children: dict[str, GoalPlan]) -> GoalPlan:
        steps = {step: self.entries[step].definition for step in sorted(self.steps)}
        excluded: dict[str, Excluded] = {}
        for why in ("blocked", "missing", "satisfied"):
            for step, by in self.met[why].items():
                if step not in self.steps and step not in excluded:
                    excluded[step] = Excluded(why, by)
        declared = {name: self.catalogue.fact_type(name) for name in sorted(self.given)}
        return GoalPlan(
            goals=list(self.goals),
            steps=steps,
            required=sorted(self.required),
            conditional=sorted(name for name in self.missing if name not in self.required),
            missing={name: sorted(self.missing[name]) for name in sorted(self.missing)},
            excluded=dict(sorted(excluded.items())),
            facts=self._fact_uses(steps),
            given=sorted(self.given),
            types={name: declared[name] for name in declared if not is_any(declared[name])},
            children=children,
        )

    def _fact_uses(self, steps: Iterable[str]) -> dict[str, FactUse]:
        """Return the providers and readers of each fact. Lists of one are shared with the catalogue."""
        entries, providers, consumers = self.entries, self.providers, self.catalogue.consumers
        given_by: dict[str, list[str]] = {}
        read_by: dict[str, list[str]] = {}
        for step in steps:
            entry = entries[step]
            for fact in entry.gives:
                known = providers[fact]
                if len(known) == 1:
                    given_by[fact] = known
                else:
                    given_by.setdefault(fact, []).append(step)
            for fact in entry.reads:
                known = consumers[fact]
                if len(known) == 1:
                    read_by[fact] = known
                else:
                    read_by.setdefault(fact, []).append(step)
        names = sorted(given_by.keys() | read_by.keys())
        return {fact: FactUse(given_by.get(fact, NO_STEPS), read_by.get(fact, NO_STEPS)) for fact in names}
