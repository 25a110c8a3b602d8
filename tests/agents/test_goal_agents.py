"""Agents as steps of goals: their parameters are needs, and fields of their answers are facts."""

from __future__ import annotations

from typing import TypedDict

import pytest

import weft
from weft.testing import World


class Rating(TypedDict):
    score: float
    why: str


def app_with(steps: dict[str, object] | None) -> weft.App:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    gives = ("score", "why") if steps is None else ()
    app.agent("rater", model="fast", output=Rating, prompt="Rate ${company}.", gives=gives)
    if steps is not None:
        app.steps({"weft": "steps/1", "steps": steps})

    @app.step(gives="label")
    async def label(score: float) -> str:
        return "good" if score > 0.5 else "bad"

    return app


DOCUMENT: dict[str, object] = {"rate": {"agent": "rater", "needs": ["company"], "gives": ["score", "why"]}}


@pytest.mark.parametrize("steps", [None, DOCUMENT], ids=["declared", "document"])
def test_a_goal_asks_an_agent_for_facts(steps: dict[str, object] | None) -> None:
    app = app_with(steps)
    world = World(app)
    world.fake_model("fast", {"score": 0.9, "why": "large"})
    goal = app.goal("labelled", "label")

    facts = world.run(goal, {"company": "Acme"})

    assert (facts["label"], facts["why"]) == ("good", "large")
    assert world.model_calls("fast")[0].messages[-1].text == "Rate Acme."
