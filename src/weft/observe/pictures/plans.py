"""Draw the plan of a goal, with the state of a run if there is one. Facts are the arrows between steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.goal.definitions import Need, StepDef
from weft.core.goal.plan import GoalPlan
from weft.core.goal.plan_text import way_text
from weft.core.goal.state import GoalState, StepRun
from weft.core.goal.types import is_any, type_text
from weft.observe.pictures.labels import short
from weft.observe.pictures.model import Arrow, Box, Mark, Picture, Shape

GIVEN = ""
"""The id of the box for all given facts."""
_MISSING = "?"


def picture_of_plan(plan: GoalPlan, state: GoalState | None = None, *, title: str = "") -> Picture:
    """Return the picture of a plan. With a state, it also shows the state of each step."""
    begun = state is not None
    start = Box(GIVEN, shape="start", mark="done" if begun else "idle", times=1 if begun else 0, tip=_given(plan))
    boxes = [start, *(_missing_box(plan, fact) for fact in plan.missing if "/" not in fact)]
    boxes += [_box(plan, step, state) for step in plan.steps]
    subtitle = ""
    if state is not None:
        status = state.status.replace("_", " ")
        subtitle = f"{state.run_id} · {status}" if state.run_id else status
    return Picture(title or ", ".join(plan.goals), tuple(boxes), tuple(_arrows(plan, state)), subtitle)


def _given(plan: GoalPlan) -> str:
    return f"given: {', '.join(plan.given)}" if plan.given else "nothing is given"


def _missing_box(plan: GoalPlan, fact: str) -> Box:
    word = "missing" if fact in plan.required else "missing if a gate opens"
    tip = f"{fact} is needed by {', '.join(plan.missing[fact])}, and no step provides it"
    return Box(f"{_MISSING}{fact}", fact, word, tip=tip)


def _box(plan: GoalPlan, step: str, state: GoalState | None) -> Box:
    definition = plan.steps[step]
    lines = [f"{fact}: {need_text(need)}" for fact, need in sorted(definition.needs.items())]
    lines += [f"gives {fact}" for fact in sorted(definition.gives)]
    if definition.when is not None:
        lines.append(f"when {definition.when.source}")
    shape: Shape = "end" if step in plan.goals else "plain"
    does = short(way_text(definition))
    run = state.steps.get(step) if state is not None else None
    if run is None or state is None:
        return Box(step, step, does, shape, tip="\n".join(lines))
    if run.why:
        lines.append(run.why)
    times = 1 if run.status == "completed" else 0
    badges = tuple(_badges(definition, run, state))
    return Box(step, step, does, shape, _mark(run, state), times, badges, "\n".join(lines))


def need_text(need: Need) -> str:
    """Return how a step needs a fact."""
    if need.role == "const":
        return need.meta or "fixed"
    words: list[str] = [need.role]
    if not is_any(need.type):
        words.append(type_text(need.type))
    if need.collect != "first":
        words.append(need.collect)
    if need.each:
        words.append("each")
    if need.match is not None:
        words.append(f"only if {need.match.source}")
    return ", ".join(words)


def _mark(run: StepRun, state: GoalState) -> Mark:
    match run.status:
        case "completed":
            return "done"
        case "failed":
            return "failed"
        case "skipped":
            return "skipped"
        case "active":
            waits = all(number in state.asks or number in state.parked for number in run.open.values())
            return "waiting" if run.open and waits else "working"
        case "pending":
            return "skipped" if state.over else "idle"


def _badges(definition: StepDef, run: StepRun, state: GoalState) -> Iterator[str]:
    if run.fan_out:
        yield f"{run.items - run.left} of {run.items} items"
    tasks = [state.tasks.get(number) or state.parked.get(number) for number in run.open.values()]
    attempts = max((task.attempt for task in tasks if task is not None), default=1)
    if attempts > 1:
        yield f"attempt {attempts} of {definition.policy.attempts_max}"
    if run.status in ("skipped", "failed") and run.why:
        yield short(run.why)


def _arrows(plan: GoalPlan, state: GoalState | None) -> Iterator[Arrow]:
    """Yield one arrow per pair of steps, labelled with the facts that pass between them."""
    ways: dict[tuple[str, str], list[str]] = {}
    for step, definition in plan.steps.items():
        for fact, need in sorted(definition.needs.items()):
            if need.role == "const":
                continue
            use = plan.facts.get(fact)
            sources = [GIVEN] if fact in plan.given else []
            if use is not None and not (need.collect == "first" and sources):
                sources += use.providers
            if not sources and fact in plan.missing:
                sources = [f"{_MISSING}{fact}"]
            for source in sources:
                ways.setdefault((source, step), []).append(fact)
        if not any(to == step for _, to in ways):
            ways[GIVEN, step] = []
    for (source, step), facts in ways.items():
        taken = state is not None and _is_taken(state, source, step, facts)
        label = ", ".join(facts)
        yield Arrow(source, step, short(label), taken=taken, tip=label, times=int(taken), id=f"{source}>{step}")


def _is_taken(state: GoalState, source: str, step: str, facts: list[str]) -> bool:
    run = state.steps.get(step)
    begun = run is not None and (run.status in ("active", "completed") or run.items > 0)
    given = any(value.provider == source for fact in facts for value in state.facts.get(fact, ()))
    return begun and (given or not facts)
