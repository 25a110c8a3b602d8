"""Texts of other classes, as frameworks and enums have them, wherever a program gives values to an agent."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.agents.policy.verdicts import PolicyVerdict
from weft.agents.spec import AgentSpec
from weft.agents.tools.spec import ToolSpec
from weft.authoring.agents.approval import WantedCall, needs_approval
from weft.authoring.agents.operations import loop_scope
from weft.authoring.agents.permission import RunPolicy
from weft.ports.models import TextPart
from weft.testing import World, calls


class Words(str):
    """A text with methods of its own."""

    __slots__ = ()


class Colour(enum.StrEnum):
    RED = "red"


class Amount(int):
    """A number with methods of its own."""


def make_app(**model: Any) -> weft.App:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1", **model)
    return app


def bound(app: weft.App) -> Any:
    @app.step(effect="pure")
    async def look(query: str, where: dict[str, Any], most: int) -> str:
        return f"{query} {where} {most}"

    bind = {"where": {Words("shop"): [Words("a"), Colour.RED]}, "most": Amount(3)}
    tool = weft.tool(look, bind=bind, approve="args.where.shop[0] == 'b'")
    return app.agent("agent", model="fast", tools=[tool])("go")


def with_options(app: weft.App) -> Any:
    options = {"user": Words("ann"), "colour": Colour.RED}
    return app.agent("agent", model="fast", system=Words("Be kind."), options=options, approvers=[Words("ann")])("go")


def with_parts(app: weft.App) -> Any:
    return app.agent("agent", model="fast")([TextPart(Words("go")), TextPart(Colour.RED)])


@pytest.mark.parametrize("make", [bound, with_options, with_parts])
def test_texts_of_other_classes_are_texts(make: Callable[[weft.App], Any]) -> None:
    app = make_app()
    world = World(app)
    world.fake_model("fast", *([calls(look={"query": "q"})] if make is bound else []), "Done.")

    assert world.run(make(app)).output == "Done."

    asked = world.model_calls("fast")
    if make is bound:
        assert asked[1].messages[-1].text == "\"q {'shop': ['a', 'red']} 3\""
    if make is with_options:
        assert asked[0].options == {"user": "ann", "colour": "red"}
    if make is with_parts:
        assert [part.text for part in asked[0].messages[-1].parts if isinstance(part, TextPart)] == ["go", "red"]


def test_answers_of_a_model_with_such_options_are_reused() -> None:
    app = make_app(options={"user": Words("ann")}, cache="1h")
    world = World(app)
    agent = app.agent("agent", model="fast")
    world.fake_model("fast", "Once.")

    assert [world.run(agent("go")).output for _ in range(2)] == ["Once.", "Once."]
    assert len(world.model_calls("fast")) == 1


def test_a_condition_about_arguments_reads_such_texts() -> None:
    tool = ToolSpec(name="refund", effect="pure", kind="step", target="refund", approve="args.colour == 'red'")
    spec, allowed = AgentSpec(agent="agent", models=("fast",)), PolicyVerdict(permission="allow")

    def asked(colour: str) -> bool:
        return needs_approval(spec, WantedCall(tool=tool, arguments={"colour": colour}), allowed)

    assert asked(Words("red"))
    assert asked(Colour.RED)
    assert not asked(Words("blue"))


def test_a_policy_reads_such_texts() -> None:
    rule = {"deny": "tool", "names": ["paint"], "when": "args.colour == 'red'"}
    app = weft.App(policy={"weft": "policy/1", "rules": [rule]})

    @app.workflow
    async def ask(ctx: weft.Context) -> list[str]:
        policy = RunPolicy(loop_scope().driver.program.service, "agent")
        given: list[str] = [Words("red"), Words("blue")]
        return [(await policy.tool_verdict("paint", {"colour": one})).permission for one in given]

    assert World(app).run(ask()) == ["deny", "allow"]
