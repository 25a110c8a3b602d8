"""Print a plan as a tree from the goals down to the given facts, with reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from weft.core.durations import format_ms
from weft.core.goal.definitions import (
    AskWay,
    GoalWay,
    HttpWay,
    Need,
    PipelineWay,
    ScriptWay,
    StepDef,
    StepWay,
    WorkflowWay,
)
from weft.core.goal.plan import Excluded, GoalPlan
from weft.core.goal.types import is_any, type_text
from weft.core.plurals import pluralize
from weft.core.values import preview_text

_MID, _LAST, _BAR, _GAP = "├─ ", "└─ ", "│  ", "   "
INDENT_MAX = 120
"""A subtree indented further than this is printed separately below."""


def render(plan: GoalPlan) -> str:
    """Return the plan as text: the steps that would run, the missing facts, and the steps left out and why."""
    tree = _Tree(plan)
    lines = [line for goal in plan.goals for line in tree.goal(goal)]
    lines += _missing_lines(plan)
    left_out = {step: why for step, why in plan.excluded.items() if step not in plan.goals}
    if left_out:
        lines += ["", "left out:"]
        lines += [f"  {step}: {_exclusion_reason(why)}" for step, why in left_out.items()]
    for note in warnings(plan):
        lines += ["", f"note: {note}"]
    return "\n".join(lines)


def warnings(plan: GoalPlan) -> list[str]:
    """Return notes on results that depend on the order in which steps end."""
    notes = []
    for step, definition in plan.steps.items():
        for fact, need in sorted(definition.needs.items()):
            use = plan.facts.get(fact)
            if need.role != "optional" or need.deadline == "wait" or use is None or not use.providers:
                continue
            if need.collect == "first" and fact in plan.given:
                continue
            how = "does not wait for" if need.deadline is None else "waits only a while for"
            notes.append(f"{step} {how} {fact} (from {', '.join(use.providers)}) and may start without it.")
    return notes


def _missing_lines(plan: GoalPlan) -> Iterator[str]:
    for title, names in (("missing:", plan.required), ("missing, should a gate open:", plan.conditional)):
        if names:
            yield ""
            yield title
            yield from (f"  {name}, needed by {', '.join(plan.missing[name])}" for name in names)


def _exclusion_reason(why: Excluded) -> str:
    by = ", ".join(why.by)
    match why.why:
        case "blocked":
            return f"it requires that {by} is absent, and {by} is given"
        case "missing":
            return f"it lacks {by}"
        case "satisfied":
            return f"{by} is given"


class _Tree:
    def __init__(self, plan: GoalPlan) -> None:
        self.plan = plan
        self.printed: dict[str, None] = {}
        self.postponed: list[str] = []

    def goal(self, goal: str) -> Iterator[str]:
        why = self.plan.excluded.get(goal)
        if why is not None:
            yield f"{goal}  (goal; {'nothing to do' if why.why == 'satisfied' else why.why}: {_exclusion_reason(why)})"
            return
        yield f"{self._step_line(goal)}  (goal)"
        if goal not in self.printed:
            yield from self._lines_below(goal)
        while self.postponed:
            step = self.postponed.pop(0)
            yield ""
            yield f"{self._step_line(step)}  (from above)"
            yield from self._lines_below(step)

    def _step_line(self, step: str) -> str:
        definition = self.plan.steps[step]
        way = way_text(definition)
        gives = f" -> {', '.join(sorted(definition.gives))}" if definition.gives else ""
        when = f"  when {definition.when.source}" if definition.when is not None else ""
        return f"{step}{gives}{f'  [{way}]' if way else ''}{when}"

    def _lines_below(self, top: str) -> Iterator[str]:
        """Yield the lines below a step, depth first: its needs, their providers, and so on."""
        self.printed[top] = None
        stack = self._need_lines(top, "")[::-1]
        while stack:
            lead, text, provider, inner = stack.pop()
            yield f"{lead}{text or self._provider_line(provider, deep=len(lead) - len(_MID) > INDENT_MAX)}"
            if provider and provider not in self.printed and provider not in self.postponed:
                self.printed[provider] = None
                stack.extend(reversed(self._need_lines(provider, inner)))

    def _provider_line(self, step: str, *, deep: bool) -> str:
        """Return the line of a provider. It depends on the lines above, so call this when the line is printed."""
        if step in self.printed:
            return f"{step}  (see above)"
        if deep and step not in self.postponed:
            self.postponed.append(step)
        return f"{step}  (see below)" if step in self.postponed else self._step_line(step)

    def _need_lines(self, step: str, prefix: str) -> list[tuple[str, str, str, str]]:
        """Return lines for the needs and their providers: prefix, text or else provider, prefix of the lines below."""
        needs = sorted(self.plan.steps[step].needs.items())
        lines: list[tuple[str, str, str, str]] = []
        for n, (fact, need) in enumerate(needs):
            last = n == len(needs) - 1
            lines.append((f"{prefix}{_LAST if last else _MID}", self._need_text(step, fact, need), "", ""))
            inner = prefix + (_GAP if last else _BAR)
            providers = self._providers_of(fact, need)
            for m, provider in enumerate(providers):
                end = m == len(providers) - 1
                lines.append((f"{inner}{_LAST if end else _MID}", "", provider, inner + (_GAP if end else _BAR)))
        return lines

    def _providers_of(self, fact: str, need: Need) -> list[str]:
        use = self.plan.facts.get(fact)
        pruned = need.role == "const" or (need.collect == "first" and fact in self.plan.given)
        return list(use.providers) if use is not None and not pruned else []

    def _need_text(self, step: str, fact: str, need: Need) -> str:
        details = [] if is_any(need.type) else [type_text(need.type)]
        if need.collect != "first":
            details.append(need.collect)
        if need.each:
            details.append("each")
        if need.match is not None:
            details.append(f"only if {need.match.source}")
        what = f"{fact} ({', '.join(details)})" if details else fact
        return f"{what}: {self._value_source(step, fact, need)}"

    def _value_source(self, step: str, fact: str, need: Need) -> str:
        if need.meta:
            return f"the run's {need.meta}"
        if need.role == "const":
            return f"always {preview_text(need.value)}"
        providers = self._providers_of(fact, need)
        parts = ["given"] if fact in self.plan.given else []
        if providers:
            parts.append("whichever is first" if len(providers) > 1 and need.collect == "first" else "from")
        if need.collect == "none":
            return "nobody may give it" if not parts else "only if nobody gives it"
        if need.role == "optional":
            wait = {None: "", "wait": ", waits"}.get(need.deadline, "") if not isinstance(need.deadline, int) else ""
            wait = f", waits {format_ms(need.deadline)}" if isinstance(need.deadline, int) else wait
            other = f"else {preview_text(need.default)}" if need.default is not msgspec.UNSET else "or nothing"
            return f"{' and '.join(parts)} {other}{wait}".strip() if parts else f"{other.removeprefix('else ')}{wait}"
        if not parts:
            return f"MISSING, {step} needs it"
        return " and ".join(parts)


def way_text(definition: StepDef) -> str:
    """Describe how a step is performed in a few words. Empty if that is clear from its id."""
    match definition.way:
        case StepWay(step=name):
            return "" if name == definition.id else name
        case HttpWay(url=url, method=method):
            return f"{method} {url}"
        case ScriptWay(script=script):
            return script.lang
        case PipelineWay(pipeline=steps):
            return f"pipeline of {pluralize(len(steps), 'step')}"
        case GoalWay(goals=goals):
            return f"goal {', '.join(goals)}"
        case WorkflowWay(workflow=name):
            return f"workflow {name}"
        case AskWay(title=title):
            return f"ask: {title}"
