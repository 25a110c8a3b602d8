"""The steps of a document come into a catalogue together or not at all, and into an app like its own."""

from pathlib import Path
from typing import Any

import pytest

import weft
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.checks import BadStep
from weft.errors import NameTaken, UnknownStep
from weft.goals import admit_steps, load_steps, parse_steps
from weft.goals.admission import update_definition
from weft.runtime.goal_language import GOAL_LANGUAGES


def loaded(**steps: dict[str, Any]) -> Any:
    return load_steps({"steps": {name: {"step": name, **body} for name, body in steps.items()}}, GOAL_LANGUAGES)


def filled(**steps: dict[str, Any]) -> Catalogue:
    catalogue = Catalogue()
    for event in admit_steps(catalogue, loaded(**steps), GOAL_LANGUAGES):
        catalogue.evolve(event)
    return catalogue


def test_all_steps_of_a_document_become_events_in_its_order() -> None:
    events = admit_steps(Catalogue(), loaded(b={"gives": ["x"]}, a={"needs": ["x"]}), GOAL_LANGUAGES)

    assert [(type(event).__name__, event.step.id) for event in events] == [  # type: ignore[union-attr]
        ("StepRegistered", "b"),
        ("StepRegistered", "a"),
    ]


def test_a_document_that_is_known_already_changes_nothing() -> None:
    assert admit_steps(filled(a={"gives": ["x"]}), loaded(a={"gives": ["x"]}), GOAL_LANGUAGES) == []


def test_another_definition_under_a_known_id_is_refused() -> None:
    with pytest.raises(NameTaken, match="step a is registered with another definition"):
        admit_steps(filled(a={"gives": ["x"]}), loaded(a={"gives": ["y"]}), GOAL_LANGUAGES)


def test_an_update_changes_what_exists_and_nothing_else() -> None:
    catalogue = filled(a={"gives": ["x"]})

    assert len(admit_steps(catalogue, loaded(a={"gives": ["y"]}), GOAL_LANGUAGES, update_definition)) == 1
    assert admit_steps(catalogue, loaded(a={"gives": ["x"]}), GOAL_LANGUAGES, update_definition) == []
    with pytest.raises(UnknownStep):
        admit_steps(catalogue, loaded(b={}), GOAL_LANGUAGES, update_definition)


def test_conflicts_of_all_steps_are_told_together_with_their_lines() -> None:
    catalogue = filled(old={"gives": {"total": "number"}})
    document = """\
steps:
  one: {step: one, needs: {total: string}}
  two: {step: two, needs: {b: string}, gives: {a: string}}
  three: {step: three, needs: {a: string}, gives: {b: string}}
  four: {step: four, needs: {a: number}}
"""
    with pytest.raises(BadStep) as refused:
        admit_steps(catalogue, parse_steps(document, GOAL_LANGUAGES, file="steps.yaml"), GOAL_LANGUAGES)

    found: Any = refused.value.context["findings"]
    assert [(each.line, each.code) for each in found] == [
        (2, "goal.type_conflict"),
        (4, "goal.cycle"),
        (5, "goal.type_conflict"),
    ]
    assert found[0].path == "steps.one.needs.total.type"
    assert "three -> two -> three" in found[1].message
    assert list(catalogue.entries) == ["old"], "nothing of it came in"


def test_an_app_plans_with_the_steps_of_its_documents(tmp_path: Path) -> None:
    app = weft.App("memory://")

    @app.step
    async def price(order_id: str) -> dict[str, float]:
        return {"total": 3.0}

    file = tmp_path / "steps.yaml"
    file.write_text("steps: {price: {step: price, needs: {order_id: string}, gives: {total: number}}}")

    assert app.steps(file) == ["price"]
    assert app.plan("price", given=["order_id"]).required == []
    assert app.plan("price").missing == {"order_id": ["price"]}


def test_a_file_is_found_beside_the_program_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "steps.yaml").write_text("steps: {a: {step: a}}")
    (tmp_path / "program.py").write_text("import weft\napp = weft.App('memory://')\nnames = app.steps('steps.yaml')")
    namespace: dict[str, Any] = {}
    program = tmp_path / "program.py"
    exec(compile(program.read_text(), str(program), "exec"), namespace)

    assert namespace["names"] == ["a"]


def test_a_document_with_a_mistake_leaves_the_app_as_it_was() -> None:
    app = weft.App("memory://")
    app.steps({"steps": {"a": {"step": "a", "gives": {"x": "string"}}}})

    with pytest.raises(BadStep):
        app.steps({"steps": {"b": {"step": "b"}, "c": {"step": "c", "needs": {"x": "number"}}}})
    assert [step.id for step in app.registered.planned()] == ["a"]


def test_the_documents_of_a_group_come_along_when_it_is_included() -> None:
    group = weft.Group()
    group.steps({"steps": {"a": {"step": "a", "gives": ["x"]}}})
    app = weft.App("memory://")
    app.include(group)
    group.steps({"steps": {"b": {"step": "b", "needs": ["x"]}}})

    assert app.plan("b").steps == ["a", "b"]
