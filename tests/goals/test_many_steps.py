"""Many steps that give one fact: what a registration costs grows with their number, not with its square."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.goal import catalogue as module
from weft.core.goal.catalogue import Catalogue
from weft.goals.admission import admit
from weft.goals.load import load_steps
from weft.runtime.catalogue_log import merge
from weft.runtime.goal_language import GOAL_LANGUAGES


def givers(count: int, **more: Any) -> dict[str, Any]:
    """A document: this many steps that give one fact, a step that needs it, and what else is asked for."""
    steps = {f"s{number}": {"step": "do", "gives": {"fact": "string"}, **more} for number in range(count)}
    reader = {"step": "do", "needs": {"fact": "string"}, "gives": {"read": "string"}}
    sources = {f"r{number}": {"step": "do", "gives": {"source": "string"}} for number in range(count)}
    return {"weft": "steps/1", "steps": {"reader": reader, **sources, **steps}}


def comparisons(monkeypatch: pytest.MonkeyPatch, count: int, **more: Any) -> int:
    """How often types are compared and providers looked at while this many steps are registered and merged."""
    counted = 0
    agree, upstream = module.types_agree, Catalogue._upstream

    def counting(*given: Any) -> bool:
        nonlocal counted
        counted += 1
        return agree(*given)

    def walking(self: Catalogue, *given: Any) -> Any:
        nonlocal counted
        for one in upstream(self, *given):
            counted += 1
            yield one

    with monkeypatch.context() as patched:
        patched.setattr(module, "types_agree", counting)
        patched.setattr(Catalogue, "_upstream", walking)
        loaded = load_steps(givers(count, **more), GOAL_LANGUAGES)
        catalogue = Catalogue()
        for event in admit(catalogue, loaded, GOAL_LANGUAGES):
            catalogue.evolve(event)
        assert len(catalogue.providers["fact"]) == count
        assert not merge(Catalogue(), {step.id: step for step in loaded.steps}, {})
    return counted


@pytest.mark.parametrize("more", [{}, {"needs": {"source": "string"}}], ids=["alone", "with_needs"])
def test_registering_and_merging_take_linear_time(monkeypatch: pytest.MonkeyPatch, more: Any) -> None:
    few, many = comparisons(monkeypatch, 50, **more), comparisons(monkeypatch, 400, **more)

    assert many <= 8 * few + 100


def test_a_circle_in_a_large_document_is_still_found() -> None:
    document = givers(50, needs={"read": "string"})

    with pytest.raises(module.BadStep) as refused:
        admit(Catalogue(), load_steps(document, GOAL_LANGUAGES), GOAL_LANGUAGES)

    assert "reader" in str(refused.value)


def test_circles_are_found_over_goals_and_facts() -> None:
    loaded = load_steps(givers(3), GOAL_LANGUAGES)

    assert not Catalogue(loaded.steps).has_cycle()
    assert Catalogue(load_steps(givers(3, needs={"read": "string"}), GOAL_LANGUAGES).steps).has_cycle()
