"""Delegating work: to agents and workflows that are offered, and to Python in a sandbox."""

from __future__ import annotations

import json
from typing import Any

import pytest

import weft
from weft.testing import World, calls


def make_app() -> tuple[weft.App, weft.Agent[str]]:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")
    app.model("small", url="http://127.0.0.1:9/v1")
    helper = app.agent("helper", model="small", system="Help.")

    @app.workflow
    async def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    tools = ["delegate_to_agent", helper, weft.tool(double, approve="never")]
    return app, app.agent("lead", model="fast", tools=tools, approve="never")


def delegate(agent_type: str, **more: Any) -> Any:
    return calls(delegate_to_agent={"agent_type": agent_type, **more})


def told(world: World, call: int) -> Any:
    return json.loads(world.model_calls("fast")[call].messages[-1].text)


def test_work_is_delegated_to_a_workflow_and_to_an_agent_as_child_runs() -> None:
    app, lead = make_app()
    world = World(app)
    world.fake_model("small", "I helped.")
    world.fake_model(
        "fast", delegate("double", inputs={"n": 21}), delegate("helper", inputs={"prompt": "Help!"}), "done"
    )

    world.run(lead("go"))

    assert told(world, 1) == 42
    assert told(world, 2) == "I helped."


@pytest.mark.parametrize("name", ["nobody", "read_result", "delegate_to_agent"])
def test_an_agent_that_is_not_offered_is_unknown(name: str) -> None:
    app, lead = make_app()
    world = World(app)
    world.fake_model("fast", delegate(name, inputs={}), "done")

    world.run(lead("go"))

    assert told(world, 1) == {"error": "unknown_agent", "agents": ["double", "helper", "code_interpreter"]}


def test_inputs_that_do_not_fit_are_told_back() -> None:
    app, lead = make_app()
    world = World(app)
    world.fake_model("fast", delegate("double", inputs={"m": 1}), delegate("code_interpreter", inputs={}), "done")

    world.run(lead("go"))

    assert "error" in told(world, 1)
    assert "error" in told(world, 2)


def test_python_runs_in_a_sandbox() -> None:
    app, lead = make_app()
    world = World(app)
    code = "print('hello')\nsum(row['n'] for row in data)"
    world.fake_model(
        "fast",
        delegate("code_interpreter", inputs={"code": code, "data": [{"n": 1}, {"n": 2}]}),
        delegate("code_interpreter", inputs={"code": "open('/etc/passwd').read()"}),
        delegate("code_interpreter", inputs={"code": "while True: pass"}),
        "done",
    )

    world.run(lead("go"))

    assert told(world, 1) == {"value": 3, "printed": "hello\n"}
    assert "error" in told(world, 2)
    assert "error" in told(world, 3)
