"""Many steps that give one fact: what a registration costs grows with their number, not with its square."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.goal import catalogue as module
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.checks import find_problems
from weft.core.goal.definitions import Give, Need, StepDef, StepWay
from weft.goals.admission import admit_steps
from weft.goals.load import load_steps
from weft.runtime.catalogue_log import merge_stored_steps
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
    agree, upstream = module.types_agree, Catalogue._providers_upstream

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
        patched.setattr(Catalogue, "_providers_upstream", walking)
        loaded = load_steps(givers(count, **more), GOAL_LANGUAGES)
        catalogue = Catalogue()
        for event in admit_steps(catalogue, loaded, GOAL_LANGUAGES):
            catalogue.evolve(event)
        assert len(catalogue.providers["fact"]) == count
        assert not merge_stored_steps(Catalogue(), {step.id: step for step in loaded.steps}, {})
    return counted


@pytest.mark.parametrize("more", [{}, {"needs": {"source": "string"}}], ids=["alone", "with_needs"])
def test_registering_and_merging_take_linear_time(monkeypatch: pytest.MonkeyPatch, more: Any) -> None:
    few, many = comparisons(monkeypatch, 50, **more), comparisons(monkeypatch, 400, **more)

    assert many <= 8 * few + 100


def test_a_step_with_many_facts_is_checked_in_linear_time() -> None:
    """Otherwise one step of a few megabytes would keep a server busy for an hour."""
    compared = 0

    class Fact(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    class Facts(dict[Any, Any]):
        read = 0

        def values(self) -> Any:
            self.read += 1
            return super().values()

    count = 300
    needs = Facts({Fact(f"n{number}"): Need() for number in range(count)})
    gives = Facts({Fact(f"g{number}"): Give() for number in range(count)})
    step = StepDef(id="wide", way=StepWay("do"), needs=needs, gives=gives)

    assert find_problems(step, GOAL_LANGUAGES) == []
    Catalogue([step])

    assert compared < 20 * count
    assert needs.read + gives.read < 20


def test_one_more_step_adds_no_other_step_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = load_steps(givers(100), GOAL_LANGUAGES).steps
    stored = Catalogue(known)
    app = weft.App("memory://")
    app.registered.learn_steps({step.id: step for step in known})
    added: list[str] = []
    add = Catalogue._add

    def adding(self: Catalogue, step: Any) -> None:
        added.append(step.id)
        add(self, step)

    monkeypatch.setattr(Catalogue, "_add", adding)
    document = {"steps": {"one": {"step": "do", "gives": {"fact": "string"}}}}
    for event in admit_steps(stored, load_steps(document, GOAL_LANGUAGES), GOAL_LANGUAGES):
        stored.evolve(event)
    learning = app.registered.learning({name: entry.definition for name, entry in stored.entries.items()})
    learning.run()
    assert learning.finish()
    assert set(added) == {"one"}
    assert app.registered.planned_step("one") is not None


def test_a_circle_in_a_large_document_is_still_found() -> None:
    document = givers(50, needs={"read": "string"})

    with pytest.raises(module.BadStep) as refused:
        admit_steps(Catalogue(), load_steps(document, GOAL_LANGUAGES), GOAL_LANGUAGES)

    assert "reader" in str(refused.value)


def test_circles_are_found_over_goals_and_facts() -> None:
    loaded = load_steps(givers(3), GOAL_LANGUAGES)

    assert not Catalogue(loaded.steps).has_cycle()
    assert Catalogue(load_steps(givers(3, needs={"read": "string"}), GOAL_LANGUAGES).steps).has_cycle()
