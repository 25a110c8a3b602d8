"""Random catalogues and behaviours: a step needs facts of lower rank than it gives, so nothing is circular."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.events import Policy, UndoPlan
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.definitions import Give, HttpWay, Need, Script, StepDef, StepWay
from weft.core.goal.plan import GoalPlan
from weft.core.goal.planner import make_plan

VALUES: list[Any] = ["go", "no", 1, [1, "no", 2], ["no", "go"], [], None]


class Traits:
    """What a random world may have. Without any: one provider per fact, everything succeeds."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __contains__(self, name: str) -> bool:
        return name in self.names


ALL = Traits(
    "failures", "gates", "predicates", "each", "optionals", "windows", "competition", "collect", "missing", "async",
    "undo", "const",
)  # fmt: skip


def random_steps(rng: random.Random, traits: Traits, *, steps: int = 8, ranks: int = 4) -> list[StepDef]:
    facts = [[f"f{rank}{letter}" for letter in "abc"] for rank in range(ranks)]
    given_once: set[str] = set()
    found = []
    for number in range(steps):
        rank = rng.randrange(ranks)
        free = [fact for fact in facts[rank] if "competition" in traits or fact not in given_once]
        gives = rng.sample(free, min(len(free), rng.choice([0, 1, 1, 2])))
        given_once.update(gives)
        below = [fact for lower in facts[:rank] for fact in lower]
        needs = rng.sample(below, min(len(below), rng.choice([0, 1, 1, 2, 3])))
        found.append(_step(rng, traits, f"s{number}", needs, gives))
    return found


def _step(rng: random.Random, traits: Traits, step: str, needs: list[str], gives: list[str]) -> StepDef:
    made = {fact: _need(rng, traits, fact) for fact in needs}
    when = None
    names = [fact for fact, need in made.items() if need.collect != "none"]
    apart = [fact for fact, need in made.items() if need.each]
    if "predicates" in traits and names and rng.random() < (0.6 if apart else 0.3):
        when = Script(f"{rng.choice(apart or names)} != 'no'")
    later = "async" in traits and rng.random() < 0.15
    effect = "irreversible" if "undo" in traits and rng.random() < 0.1 else "idempotent"
    return StepDef(
        id=step,
        way=HttpWay(url="http://x.example", answer="later") if later else StepWay(step),
        needs=made,
        gives={fact: Give() for fact in gives},
        when=when,
        policy=Policy(attempts_max=rng.choice([1, 2, 3]), backoff="fixed", delay_ms=1_000, effect=effect),  # type: ignore[arg-type]
        width=rng.choice([1, 1, 2, 5]),
        undo=UndoPlan(f"undo_{step}", ["result"]) if "undo" in traits and rng.random() < 0.2 else None,
    )


def _need(rng: random.Random, traits: Traits, fact: str) -> Need:
    if "const" in traits and rng.random() < 0.05:
        return Need(role="const", value=rng.choice(VALUES))
    each = "each" in traits and rng.random() < 0.2
    modes = ["first", "first", "last", "some", "all", "none"] if "collect" in traits else ["first"]
    collect = rng.choice(["some", "all", "none"] if "crowds" in traits else modes)
    each = each and collect != "none"
    if "optionals" in traits and rng.random() < 0.3:
        deadlines: list[Any] = ["wait", None, 5_000] if "windows" in traits else ["wait"]
        default = rng.choice([msgspec.UNSET, "d"])
        return Need(role="optional", collect=collect, each=each, default=default, deadline=rng.choice(deadlines))  # type: ignore[arg-type]
    match = Script("value == 'go'") if "gates" in traits and rng.random() < 0.25 else None
    if collect == "none" and "gates" not in traits:
        collect = "first"
    return Need(collect=collect, each=each, match=match)  # type: ignore[arg-type]


def planned(rng: random.Random, steps: list[StepDef]) -> tuple[GoalPlan, dict[str, Any]] | None:
    """A plan that can start, with what it is given; None if its goal is blocked or there is nothing to do."""
    catalogue = Catalogue(steps)
    goals = rng.sample([step.id for step in steps], rng.choice([1, 1, 2]))
    given = {fact: rng.choice(VALUES) for fact in ("f0a", "f1b") if rng.random() < 0.5}
    plan = make_plan(catalogue, goals, given)
    for _ in range(10):
        if not plan.required:
            break
        given.update({fact: rng.choice(VALUES) for fact in plan.required})
        plan = make_plan(catalogue, goals, given)
    if not plan.steps or any(found.why == "blocked" for step, found in plan.excluded.items() if step in goals):
        return None
    return plan, given


def random_behaviour(rng: random.Random, traits: Traits, plan: GoalPlan) -> dict[str, Any]:
    return {step: _behaviour(rng, traits, definition) for step, definition in plan.steps.items()}


def _behaviour(rng: random.Random, traits: Traits, definition: StepDef) -> Any:
    def once() -> Mapping[str, Any]:
        draw = rng.random()
        if "failures" in traits and draw < 0.12:
            return {"error": "boom"}
        if "failures" in traits and draw < 0.25:
            return {"retry": "busy"}
        if "async" in traits and isinstance(definition.way, HttpWay) and draw < 0.7:
            return {"never": True}
        gives = [fact for fact in definition.gives if "missing" not in traits or rng.random() > 0.15]
        return {"output": {fact: rng.choice(VALUES) for fact in gives}}

    return {"items": [[once() for _ in range(3)] for _ in range(3)]}
