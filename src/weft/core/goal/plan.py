"""A plan: the steps that a set of goals takes, as data. A run holds the plan that it follows."""

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
    """Why a step that was met is not in the plan, and which facts say so."""

    why: Why
    by: list[str]


class FactUse(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Who of a plan gives a fact and who reads it."""

    providers: list[str] = []
    consumers: list[str] = []


class GoalPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a goal takes. Frozen into a run at its start."""

    goals: list[str]
    steps: dict[str, StepDef] = {}
    required: list[str] = []
    conditional: list[str] = []
    missing: dict[str, list[str]] = {}
    """Facts that nobody gives, and the steps that need them. Those of child runs are called `step/name`."""
    excluded: dict[str, Excluded] = {}
    facts: dict[str, FactUse] = {}
    given: list[str] = []
    types: dict[str, Type] = {}
    """What the catalogue declares of the names given."""
    children: dict[str, GoalPlan] = {}
    """The plans of goal steps, made with this one."""


PLANS_KEPT = 64
"""So many plans are kept at hand; each can be made, written and read again."""
STEPS_KEPT = 1_000
"""Larger plans are not."""

_encode = msgspec.json.Encoder().encode
_encoded: dict[int, tuple[GoalPlan, bytes]] = {}
"""By identity; the plan is held, so that no other takes its place."""
_decoder: msgspec.json.Decoder[GoalPlan] = msgspec.json.Decoder(GoalPlan)


def decode_plan(raw: bytes) -> GoalPlan:
    """A plan from its JSON. Many runs follow one plan, so the latest are remembered."""
    return _decoded(bytes(raw))


@lru_cache(maxsize=PLANS_KEPT)
def _decoded(raw: bytes) -> GoalPlan:
    return _decoder.decode(raw)


def encode_plan(plan: GoalPlan) -> bytes:
    """A plan as JSON; equal plans have equal bytes. Many runs are started with one plan: it is written once."""
    known = _encoded.get(id(plan))
    if known is not None:
        return known[1]
    raw = _encode(plan)
    if len(_encoded) >= PLANS_KEPT:
        _encoded.clear()
    if len(plan.steps) <= STEPS_KEPT:
        _encoded[id(plan)] = (plan, raw)
    return raw


def refuse_incomplete(plan: GoalPlan) -> None:
    """Refuse the start of a plan with a blocked goal or a name that is surely missing.

    Raises:
        BadPlan: what is missing and who needs it, or what blocks a goal.
    """
    for place, blocked in _blocked(plan, ""):
        by = ", ".join(blocked.by)
        raise BadPlan(
            f"{place} needs that nobody gives {by}, and {by} is given.",
            hint="Leave it out, or choose another goal.",
            code="goal.blocked",
            step=place,
        )
    if plan.required:
        needed = "; ".join(f"{name} (for {', '.join(plan.missing[name])})" for name in plan.required)
        raise BadPlan(
            f"{', '.join(plan.goals)} cannot be reached: nobody gives {needed}.",
            hint="Give it at the start, or register a step that gives it.",
            code="goal.missing",
            missing={name: plan.missing[name] for name in plan.required},
        )


def _blocked(plan: GoalPlan, prefix: str) -> Iterable[tuple[str, Excluded]]:
    for goal in plan.goals:
        found = plan.excluded.get(goal)
        if found is not None and found.why == "blocked":
            yield prefix + goal, found
    for step, child in plan.children.items():
        yield from _blocked(child, f"{prefix}{step}/")
