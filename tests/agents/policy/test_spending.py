"""Limits of a policy on what calls spend in a window of time: each tenant has its own, whatever crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import weft
from weft.agents.policy.load import parse_policy
from weft.core.ids import TENANT_MARK, Millis, RunId
from weft.core.ledger import LedgerRow, window_length
from weft.ports.policies import StoredPolicy
from weft.runtime.orders import StartOrder
from weft.runtime.tenancy import TenantService
from weft.testing import World, calls, crash_everywhere
from weft.testing.world import SimRun

EXAMPLE = """
weft: policy/1
rules:
  - {deny: tool, names: ["shell*"]}
  - {ask: tool, names: [refund], to: ["agent:support"], when: "args.cents > 5000", of: ["role:finance"]}
  - {allow: host, names: ["api.shop.example", "*.weather.example:443"], to: ["agent:*"]}
  - {allow: patch, names: ["/nodes/-", "/edges/-"], to: ["agent:planner"]}
  - {deny: model, names: [big], to: ["tenant:trial"]}
  - {limit: {money: "20 USD", per: day}, to: ["tenant:*"]}            # minute, hour, day, month; each tenant its own
require: {budget: ["agent:*"]}
"""


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"weft": "policy/1", "rules": list(rules)}


def make_app(*rules: dict[str, Any], prices: weft.Prices | None = None, **options: Any) -> tuple[weft.App, Any]:
    app = weft.App(policy=policy(*rules))
    app.model("fast", url="http://127.0.0.1:1/v1", prices=prices, output=1_000)

    @app.step(effect="pure")
    async def look(what: str) -> str:
        """Look something up."""
        return f"found {what}"

    @app.step
    async def summarize(text: str) -> str:
        weft.task().spend(tokens=400, money="0.02 USD")
        return text

    @app.workflow
    async def digest(ctx: weft.Context, texts: list[str]) -> list[str]:
        return [await summarize(text) for text in texts]

    agent = app.agent("helper", model="fast", system="You help.", tools=[look], **options)
    return app, agent


def windows(world: World) -> Mapping[str, LedgerRow]:
    """The rows of all windows by unit; there must be one window at most."""
    rows = [row for row in world._store.budgets._content.ledger.rows.values() if window_length(row.scope)]
    assert len({row.scope for row in rows}) <= 1
    return {row.unit: row for row in rows}


def start(world: World, workflow: str, tenant: str = "", **given: Any) -> SimRun[Any]:
    async def go() -> str:
        service = TenantService(world._service, tenant) if tenant else world._service
        return (await service.start(StartOrder(workflow=workflow, input=given))).id

    run_id = f"{TENANT_MARK}{tenant}/{world.perform(go)}" if tenant else str(world.perform(go))
    return SimRun(world, run_id, lambda: world.app.get(RunId(run_id)))


def test_the_policy_of_the_documentation_is_read_as_it_stands() -> None:
    read = parse_policy(EXAMPLE).policy

    assert [str(rule) for rule in read.limits] == ["limit 20.00 USD per day to tenant:*"]
    assert read.limits[0].spending == {"money:USD": 20_000_000}


def test_all_units_of_budgets_can_be_limited() -> None:
    amounts = {"tokens": 5, "calls": 4, "tools": 3, "time": "1m", "per_tool": {"look": 2}, "per": "month"}
    read = parse_policy(f"weft: policy/1\nrules: [{{limit: {amounts}}}]").policy

    assert read.limits[0].spending == {"tokens": 5, "calls": 4, "tools": 3, "time": 60_000, "tool:look": 2}


def test_a_call_over_the_limit_of_a_window_is_not_made() -> None:
    app, agent = make_app({"limit": {"calls": 2, "per": "day"}, "to": ["tenant:*"]})
    world = World(app)
    world.fake_model("fast", "One.", "Two.", "Three.")

    assert [world.run(agent("hi")).output for _ in range(2)] == ["One.", "Two."]
    with pytest.raises(weft.RunFailed) as failed:
        world.run(agent("hi"))

    failure = failed.value.failure
    assert failure.code == "budget.exceeded"
    assert "the limit of the policy per day, 2 model calls, has 0 model calls left" in failure.message
    assert failure.attributes["per"] == "day"
    assert failure.attributes["run"] == ""
    world.advance("1d")
    assert world.run(agent("hi")).output == "Three."


def test_each_tenant_has_its_own_window() -> None:
    app, _ = make_app({"limit": {"calls": 1, "per": "day"}, "to": ["tenant:*"]})
    world = World(app)
    world.fake_model("fast", "One.", "Two.")

    assert start(world, "helper", "acme", prompt="hi").result()["output"] == "One."
    with pytest.raises(weft.RunFailed, match="the limit of the policy"):
        start(world, "helper", "acme", prompt="hi").result()
    assert start(world, "helper", "other", prompt="hi").result()["output"] == "Two."


def test_only_those_to_whom_a_limit_applies_spend_from_its_window() -> None:
    app, agent = make_app(
        {"limit": {"calls": 1, "per": "day"}, "to": ["agent:other"]},
        {"limit": {"tools": 1, "per": "day"}, "to": ["agent:help*"]},
    )
    world = World(app)
    world.fake_model("fast", calls(look={"what": "a"}), calls(look={"what": "b"}), "Done.")

    run = world.start(agent("hi"))

    with pytest.raises(weft.RunFailed, match="1 tool call, has 0 tool calls left"):
        run.result()
    assert windows(world)["tools"].spent == 1
    assert windows(world)["calls"].limit is None


def test_a_limit_may_depend_on_the_arguments_of_a_tool() -> None:
    rule = {"limit": {"tools": 1, "per": "day"}, "when": "name == 'look' && args.what == 'gold'"}
    app, agent = make_app(rule)
    world = World(app)
    gold, tin = calls(look={"what": "gold"}), calls(look={"what": "tin"})
    world.fake_model("fast", gold, tin, tin, gold, "Done.")

    with pytest.raises(weft.RunFailed, match="1 tool call, has 0 tool calls left"):
        world.run(agent("hi"))


def test_a_new_policy_holds_for_the_next_call() -> None:
    app, agent = make_app()
    world = World(app)
    world.fake_model("fast", "One.", "Two.")
    text = "weft: policy/1\nrules: [{limit: {tokens: 10, per: hour}}]"
    assert world.run(agent("hi")).output == "One."

    world.perform(lambda: world._service.store.policies.put(StoredPolicy(version=1, text=text, at=Millis(1))))
    world.perform(world._service.policy.refresh)

    with pytest.raises(weft.RunFailed, match="10 tokens, has 10 tokens left"):
        world.run(agent("hi"))


def test_an_agent_asks_nobody_for_more_of_a_window() -> None:
    app, agent = make_app({"limit": {"calls": 1, "per": "day"}}, on_exhausted="ask")
    world = World(app)
    world.fake_model("fast", calls(look={"what": "a"}), "Done.")

    with pytest.raises(weft.RunFailed, match="the limit of the policy"):
        world.run(agent("hi"))


@pytest.mark.parametrize("prices", [None, weft.Prices("1", "2", currency="EUR")])
def test_a_model_without_prices_is_not_asked_where_money_is_limited(prices: weft.Prices | None) -> None:
    app, agent = make_app({"limit": {"money": "1 USD", "per": "day"}}, prices=prices)
    world = World(app)
    world.fake_model("fast", "One.")

    with pytest.raises(weft.RunFailed, match="the model has no prices in USD") as failed:
        world.run(agent("hi"))

    assert failed.value.failure.code == "policy.denied"
    assert world.model_calls("fast") == []


def test_steps_that_say_what_they_spend_spend_from_windows() -> None:
    app, _ = make_app({"limit": {"money": "0.05 USD", "per": "day"}})
    world = World(app)

    with pytest.raises(weft.RunFailed, match=r"0\.05 USD, has 0\.01 USD left, and the call may need 0\.02 USD"):
        start(world, "digest", texts=["a", "b", "c"]).result()
    assert windows(world)["money:USD"].spent == 40_000


crashing, crashing_agent = make_app(
    {"limit": {"money": "0.01 USD", "calls": 4, "per": "day"}, "to": ["tenant:*"]}, prices=weft.Prices("1", "2")
)


def scenario(world: World) -> None:
    world.fake_model("fast", calls(look={"what": "a"}), calls(look={"what": "b"}), "Done.")
    run = world.start(crashing_agent("a and b?"))
    try:
        run.result()
    except weft.RunFailed as failed:
        ended = failed.failure.code
    else:
        ended = "done"
    assert ended in ("done", "budget.exceeded")
    rows = windows(world)
    for row in rows.values():
        assert row.limit is None or row.spent <= row.limit
        assert row.reserved == 0
    assert rows["calls"].spent >= len(world.model_calls("fast"))


def test_no_window_is_exceeded_whatever_crashes() -> None:
    assert crash_everywhere(crashing, scenario) > 10
