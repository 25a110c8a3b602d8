"""Draw steps of the catalogue. Facts are the arrows from the steps that give them to those that need them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.core.goal.definitions import StepDef
from weft.core.goal.plan_text import way_text
from weft.observe.pictures.labels import short
from weft.observe.pictures.model import Arrow, Box, Picture
from weft.observe.pictures.plans import need_text


def picture_of_catalogue(steps: Sequence[StepDef], title: str = "") -> Picture:
    """Return the picture of these steps. The catalogue has no cycles, so every arrow leads down."""
    return Picture(title, tuple(map(_box, steps)), tuple(_arrows(steps)))


def _box(step: StepDef) -> Box:
    lines = [f"{fact}: {need_text(need)}" for fact, need in sorted(step.needs.items())]
    lines += [f"gives {fact}" for fact in sorted(step.gives)]
    if step.when is not None:
        lines.append(f"when {step.when.source}")
    return Box(step.id, step.title or step.id, short(way_text(step)), tip="\n".join(lines), kind="step")


def _arrows(steps: Sequence[StepDef]) -> Iterator[Arrow]:
    givers: dict[str, list[str]] = {}
    for step in steps:
        for fact in step.gives:
            givers.setdefault(fact, []).append(step.id)
    for step in steps:
        ways: dict[str, list[str]] = {}
        for fact, need in sorted(step.needs.items()):
            for giver in givers.get(fact, ()) if need.role != "const" else ():
                ways.setdefault(giver, []).append(fact)
        for giver, facts in ways.items():
            label = ", ".join(facts)
            yield Arrow(giver, step.id, short(label), tip=label, id=f"{giver}>{step.id}")
