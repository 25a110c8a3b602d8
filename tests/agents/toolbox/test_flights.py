"""The example a04: an agent that fetches and ranks flights, only from hosts that the policy allows."""

from __future__ import annotations

import gc
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.testing import World, calls

EXAMPLE = Path(__file__).parents[3] / "examples/a04_flights.py"
FLIGHTS = [{"airline": f"A{number}", "price": 100 - number, "stops": number % 3} for number in range(9)]
ADVICE = {"airline": "A7", "price": 93, "why": "It is cheap."}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("a04_flights", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "a04_flights", module)
    spec.loader.exec_module(module)
    return module


def told(world: World, call: int) -> Any:
    return json.loads(world.model_calls("fast")[call].messages[-1].text)


def test_the_example_ranks_flights_with_its_pipeline(example: Any) -> None:
    world = World(example.app)
    world.fake_model("fast", calls(cheapest={"data": FLIGHTS}), ADVICE)

    reply = world.run(example.analyst(origin="NYC", dest="LAX"))

    assert [row["airline"] for row in told(world, 1)] == ["A7", "A6", "A4"]
    assert reply.output == ADVICE


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_pipeline_of_an_agent_calls_no_host_that_the_policy_does_not_allow(example: Any) -> None:
    world = World(example.app)
    fetch = {"step": "http_request", "url": "evil.example/search"}
    world.fake_model("fast", calls(execute_pipeline={"pipeline": [fetch]}), ADVICE)

    world.run(example.analyst(origin="NYC", dest="LAX"))

    assert told(world, 1)["error"]["code"] == "policy.denied"
    assert "evil.example" in told(world, 1)["error"]["message"]
    world.close()
    del world
    gc.collect()  # a world closes no connections; this one had none open


def test_a_goal_gets_the_fields_of_the_answer(example: Any) -> None:
    world = World(example.app)
    world.fake_model("fast", ADVICE)

    found = world.run(example.app.goal("travel", "analyst"), {"origin": "NYC", "dest": "LAX"})

    assert (found["airline"], found["price"]) == ("A7", 93)
