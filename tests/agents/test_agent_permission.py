"""What a policy says about the calls of an agent: verdicts are recorded, and hold whatever crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import weft
from tests.agents.test_loop import told
from weft.testing import World, calls


def guarded(*rules: Mapping[str, Any]) -> tuple[weft.App, weft.Agent[str], weft.Step[..., Any]]:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    app.model("fast", url="http://127.0.0.1:9/v1", fallback=["local"])
    app.model("local", url="http://127.0.0.1:9/v1")

    @app.step
    async def post(text: str) -> str:
        return "posted"

    return app, app.agent("writer", model="fast", tools=[post], approvers=["ann"]), post


def test_a_denied_tool_is_told_and_not_performed() -> None:
    app, writer, post = guarded({"deny": "tool", "names": ["post"], "to": ["agent:writer"]})
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}), "I may not.")

    assert world.run(writer("post it")).output == "I may not."
    assert "not permitted" in told(world, 1)
    assert world.calls(post) == []


def test_a_rule_may_ask_its_own_people() -> None:
    app, writer, _ = guarded({"ask": "tool", "names": ["post"], "when": "args.text == 'x'", "of": ["role:legal"]})
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}), calls(post={"text": "y"}), "Done.")
    run = world.start(writer("post it"))

    asked = next(event for event in run.events if event.kind == "ask_opened").data
    assert asked["of"] == ["role:legal"]
    run.answer("turn/~0/tools/0/approve", by="lee")
    assert run.result().output == "Done."


def test_a_denied_model_is_replaced_by_its_fallback() -> None:
    app, writer, _ = guarded({"deny": "model", "names": ["fast"]})
    world = World(app)
    world.fake_model("local", "Hi.")

    assert world.run(writer("hi")).output == "Hi."


def test_a_run_without_a_permitted_model_fails() -> None:
    app, writer, _ = guarded({"deny": "model", "names": ["*"]})
    with pytest.raises(weft.RunFailed) as failed:
        World(app).run(writer("hi"))
    assert failed.value.failure.code == "policy.denied"


def test_the_verdict_of_a_call_stays_when_the_process_dies() -> None:
    app, writer, post = guarded({"ask": "tool", "names": ["post"]})
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}), "Done.")
    run = world.start(writer("post it"))
    assert run.waiting_for()
    world.restart()
    run.answer("turn/~0/tools/0/approve", by="ann")

    assert run.result().output == "Done."
    assert len(world.calls(post)) == 1
    verdicts = [event.data["value"] for event in run.events if event.data.get("of") == "policy"]
    assert [one["permission"] for one in verdicts] == ["allow", "ask", "allow"]


@pytest.mark.parametrize(
    ("when", "performed"),
    [("spent.tools >= 1", 1), ("spent.calls >= 2", 1), ("spent.tokens > 1000000", 2), ("spent.money > 0.5", 0)],
)
def test_a_rule_sees_what_the_run_has_spent(when: str, performed: int) -> None:
    app, writer, post = guarded({"deny": "tool", "names": ["post"], "when": when})
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}), calls(post={"text": "y"}), "Done.")

    assert world.run(writer("post it")).output == "Done."
    assert len(world.calls(post)) == performed


def test_a_model_that_has_spent_enough_is_replaced() -> None:
    app, writer, _ = guarded({"deny": "model", "names": ["fast"], "when": "spent.calls >= 1"})
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}))
    world.fake_model("local", "Done.")

    assert world.run(writer("post it")).output == "Done."


@pytest.mark.parametrize("rule", [{"deny": "host", "names": ["*"]}, {"deny": "step", "names": ["*"]}])
def test_a_rule_about_something_else_cannot_ask_what_was_spent(rule: dict[str, Any]) -> None:
    with pytest.raises(weft.BadPolicy, match="spent"):
        weft.App(policy={"weft": "policy/1", "rules": [{**rule, "when": "spent.tokens > 5"}]})


@pytest.mark.parametrize(
    ("rule", "asked_again", "posted"),
    [
        ({"deny": "tool", "names": ["post"], "when": "args.text == 'y'"}, False, []),
        ({"ask": "tool", "names": ["post"], "when": "args.text == 'y'", "of": ["role:legal"]}, True, ["y"]),
        ({"ask": "tool", "names": ["post"]}, False, ["y"]),
    ],
    ids=["denied", "others are asked", "the same people"],
)
def test_what_an_approver_changes_is_judged_again(rule: dict[str, Any], asked_again: bool, posted: list[str]) -> None:
    app, _, post = guarded(rule)
    tools = [weft.tool(post, editable=True, approve="always")]
    editor = app.agent("editor", model="fast", tools=tools, approvers=["ann"])
    world = World(app)
    world.fake_model("fast", calls(post={"text": "x"}), "ok")
    run = world.start(editor("post it"))
    run.answer("turn/~0/tools/0/approve", form={"text": "y"}, by="ann")

    waits = [wait.location for wait in run.waiting_for()]
    assert waits == (["turn/~0/tools/0/approve#2"] if asked_again else [])
    if asked_again:
        assert world.calls(post) == []
        run.answer("turn/~0/tools/0/approve#2", form={"text": "y"}, by="lee")
    assert run.result().output == "ok"
    assert [call.args["text"] for call in world.calls(post)] == posted


def test_a_tool_may_reveal_the_secret_that_its_program_has_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "open-sesame")
    monkeypatch.setenv("OTHER_KEY", "do-not-tell")
    app, _, _ = guarded({"deny": "tool", "names": ["look"], "when": "args.order == 'o-2'"})
    seen: list[str] = []

    @app.step(effect="pure")
    async def look(order: str, key: weft.Secret) -> str:
        seen.append(key.reveal())
        return "found"

    tool = weft.tool(look, bind={"key": weft.Secret("env:SHOP_KEY")}, approve="args.order == 'o-3'")
    agent = app.agent("shop", model="fast", tools=[tool])
    world = World(app)
    forged = '{"order":"o-1","key":{"$secret":"env:OTHER_KEY"}}'
    world.fake_model("fast", *(calls(look=given) for given in ({"order": "o-1"}, forged, {"order": "o-2"})), "ok")

    assert world.run(agent("go")).output == "ok"
    assert seen == ["open-sesame"]
    assert "key" not in world.model_calls("fast")[0].tools[0].parameters["properties"]
    assert "reserved for secrets" in told(world, 2)
    assert "not permitted" in told(world, 3)


@pytest.mark.parametrize("bridge", ["call_tool", "delegate_to_agent"])
@pytest.mark.parametrize("rule", [{"deny": "tool"}, {"ask": "tool", "of": ["ann"]}], ids=["deny", "ask"])
def test_a_rule_about_a_tool_that_calls_others_holds_for_what_it_calls(bridge: str, rule: dict[str, Any]) -> None:
    app, _, post = guarded({**rule, "names": [bridge], "when": "has(args.name) || has(args.agent_type)"})

    @app.workflow
    async def publish(ctx: weft.Context, text: str) -> str:
        return await post(text)

    tools = ["search_tools", "delegate_to_agent", weft.tool(publish, approve="never")]
    agent = app.agent("editor", model="fast", tools=tools)
    world = World(app)
    given = {"name": "publish", "arguments": {"text": "x"}}
    if bridge == "delegate_to_agent":
        given = {"agent_type": "publish", "inputs": {"text": "x"}}
    world.fake_model("fast", calls(**{bridge: given}), "ok", calls(publish={"text": "y"}), "ok")
    run = world.start(agent("go"))
    if "ask" in rule:
        run.answer("turn/~0/tools/0/approve", approved=False, by="ann")

    assert run.result().output == "ok"
    assert world.calls(post) == []
    world.run(agent("directly"))
    assert [call.args["text"] for call in world.calls(post)] == ["y"]
