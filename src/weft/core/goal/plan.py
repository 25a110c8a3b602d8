"""Plans: the steps that achieve a set of goals, as data. A run contains the plan that it follows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import msgspec

from weft.core.goal.definitions import StepDef
from weft.core.goal.types import Type
from weft.errors import BadPlan

Why = Literal["blocked", "missing", "satisfied"]


class Excluded(msgspec.Struct, frozen=True):
    """Why the planner left a step out of the plan, and because of which facts."""

    why: Why
    by: list[str]


class FactUse(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The steps of a plan that give a fact and those that read it."""

    providers: list[str] = []
    consumers: list[str] = []


class GoalPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The steps that achieve the goals. Frozen into a run at its start."""

    goals: list[str]
    steps: dict[str, StepDef] = {}
    required: list[str] = []
    conditional: list[str] = []
    missing: dict[str, list[str]] = {}
    """Facts that nothing gives, and the steps that need them. Facts of child runs are named ``step/name``."""
    excluded: dict[str, Excluded] = {}
    facts: dict[str, FactUse] = {}
    given: list[str] = []
    types: dict[str, Type] = {}
    """The types that the catalogue declares for the given names."""
    children: dict[str, GoalPlan] = {}
    """The plans of goal steps, made together with this one."""


PLANS_KEPT = 64
"""How many plans are cached in encoded and decoded form."""
STEPS_KEPT = 1_000
"""Plans with more steps are not cached."""

_encode = msgspec.json.Encoder().encode
_encoded: dict[int, tuple[GoalPlan, bytes]] = {}
"""Encoded plans by the ``id`` of the plan. An entry keeps its plan alive, so that the ``id`` is not reused."""
_decoder: msgspec.json.Decoder[GoalPlan] = msgspec.json.Decoder(GoalPlan)


def decode_plan(raw: bytes) -> GoalPlan:
    """Decode a plan. Many runs follow the same plan, so the latest are cached."""
    return _decode_cached(bytes(raw))


@lru_cache(maxsize=PLANS_KEPT)
def _decode_cached(raw: bytes) -> GoalPlan:
    return _decoder.decode(raw)


def encode_plan(plan: GoalPlan) -> bytes:
    """Encode a plan. Equal plans have equal bytes. Many runs start with the same plan, so the result is cached."""
    known = _encoded.get(id(plan))
    if known is not None:
        return known[1]
    raw = _encode(plan)
    if len(_encoded) >= PLANS_KEPT:
        _encoded.clear()
    if len(plan.steps) <= STEPS_KEPT:
        _encoded[id(plan)] = (plan, raw)
    return raw


def check_complete(plan: GoalPlan) -> None:
    """Check that a plan can start.

    Raises:
        BadPlan: a goal is blocked, or a required fact is missing.
    """
    for place, blocked in _find_blocked_goals(plan, ""):
        by = ", ".join(blocked.by)
        raise BadPlan(
            f"{place} requires that {by} is absent, and {by} is given.",
            hint=f"Leave out {by}, or choose another goal.",
            code="goal.blocked",
            step=place,
        )
    if plan.required:
        needed = "; ".join(f"{name} (for {', '.join(plan.missing[name])})" for name in plan.required)
        raise BadPlan(
            f"{', '.join(plan.goals)} cannot be reached: no step gives {needed}.",
            hint="Give the missing facts at the start, or register steps that give them.",
            code="goal.missing",
            missing={name: plan.missing[name] for name in plan.required},
        )


def _find_blocked_goals(plan: GoalPlan, prefix: str) -> Iterable[tuple[str, Excluded]]:
    for goal in plan.goals:
        excluded = plan.excluded.get(goal)
        if excluded is not None and excluded.why == "blocked":
            yield prefix + goal, excluded
    for step, child in plan.children.items():
        yield from _find_blocked_goals(child, f"{prefix}{step}/")
