"""The example a03: an agent qualifies a lead, and chooses which teams get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from weft.graphs.check import check_document
from weft.testing import World, calls

EXAMPLE = Path(__file__).parents[2] / "examples/a03_leads.yaml"


@pytest.fixture
def world() -> World:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def enrich_company(company: str) -> dict[str, Any]:
        return {"company": company, "employees": 5_000}

    @app.step(effect="pure")
    async def search_crm(query: str) -> list[str]:
        """Search the CRM."""
        return [f"{query}: no deals yet"]

    @app.step
    async def assign(team: str) -> str:
        return team

    @app.step
    async def campaign() -> str:
        return "campaign"

    app.graph(EXAMPLE)
    return World(app)


def test_the_example_is_sound() -> None:
    assert check_document(EXAMPLE).outcome == "sound"


def test_the_agent_looks_things_up_and_chooses_the_teams(world: World) -> None:
    chosen = {"score": 0.9, "next_nodes": ["enterprise_sales", "nurture"], "reasoning": "It is large."}
    world.fake_model("fast", calls(search_crm={"query": "Acme"}), chosen)

    assert world.run("qualify", {"company": "Acme"}) == {"score": 0.9}

    assert [call.args for call in world.calls("assign")] == [{"team": "enterprise"}]
    assert len(world.calls("campaign")) == 1
    prompt = world.model_calls("fast")[0].messages[-1].text
    assert prompt.startswith("Company Acme. What we know: ")
    assert "5000" in prompt


def test_without_a_valid_choice_a_person_decides(world: World) -> None:
    world.fake_model("fast", *[{"score": 0.1, "next_nodes": ["nowhere"], "reasoning": ""}] * 3)
    run = world.start("qualify", {"company": "Acme"})

    run.answer("manual_review", approved=True, by="sam")

    assert run.result() == {"score": 0.1}
    assert world.calls("assign") == []
