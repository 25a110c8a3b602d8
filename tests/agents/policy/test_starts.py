"""Starts under a policy: workflows that are denied, steps of graphs that are denied, and limits by window of time."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy
from weft.runtime.orders import StartOrder
from weft.runtime.tenancy import TenantService
from weft.testing import World


def world(*rules: dict[str, Any]) -> World:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})

    @app.step
    async def ping(word: str = "") -> str:
        return word

    @app.workflow
    async def hello(ctx: weft.Context, word: str = "") -> str:
        return await ping(word)

    @app.workflow(singleton=weft.Singleton(then="refuse"))
    async def lonely(ctx: weft.Context) -> None:
        await ctx.sleep("1d")

    app.graph({"name": "chain", "nodes": {"first": {"step": "ping", "next": "second"}, "second": {"step": "ping"}}})
    return World(app)


def start(world: World, workflow: str = "hello", *, tenant: str = "", **order: Any) -> str:
    async def go() -> str:
        service = world._service if not tenant else TenantService(world._service, tenant)
        return (await service.start(StartOrder(workflow=workflow, **order))).id

    return str(world.perform(go))


def test_a_workflow_that_is_denied_is_not_started() -> None:
    here = world({"deny": "workflow", "names": ["hel*"], "when": "args.word == 'no'"})

    with pytest.raises(weft.NotAllowed, match="The workflow hello is not permitted: the policy says: deny") as caught:
        start(here, input={"word": "no"}, id="one")

    assert caught.value.code == "policy.denied"
    assert start(here, input={"word": "yes"}, id="one") == "one"


def test_rules_about_a_tenant_hold_for_its_runs_only() -> None:
    here = world({"deny": "workflow", "names": ["*"], "to": ["tenant:trial"]})

    with pytest.raises(weft.NotAllowed):
        start(here, tenant="trial")
    assert start(here, tenant="paid")
    assert start(here)


def test_a_graph_with_a_step_that_is_denied_is_not_started() -> None:
    here = world({"deny": "step", "names": ["ping"], "to": ["tenant:trial", "node:second"]})

    with pytest.raises(weft.NotAllowed, match="The step ping is not permitted"):
        start(here, "chain", tenant="trial")
    assert start(here, "chain", tenant="paid")


def test_runs_over_a_limit_are_refused_until_the_next_window() -> None:
    here = world({"limit": {"runs": 2, "per": "hour"}, "to": ["tenant:*"]})
    here.advance("10m")
    for _ in range(2):
        start(here, tenant="acme")

    with pytest.raises(weft.LimitExceeded, match="the policy allows 2 runs per hour") as caught:
        start(here, tenant="acme")

    seconds = caught.value.context["retry_after"]
    assert caught.value.code == "policy.limit"
    assert isinstance(seconds, int)
    assert 0 < seconds <= 3600
    assert start(here, tenant="other"), "each tenant has its own limit"
    here.advance(f"{seconds}s")
    assert start(here, tenant="acme")


def test_what_made_no_new_run_does_not_count() -> None:
    here = world({"limit": {"runs": 1, "per": "day"}}, {"deny": "workflow", "names": ["chain"]})

    with pytest.raises(weft.NotAllowed):
        start(here, "chain")
    assert start(here, id="one") == "one"
    assert start(here, id="one") == "one", "the same start is the same run, also at the limit"
    with pytest.raises(weft.IdTaken):
        start(here, id="one", existing="refuse")
    with pytest.raises(weft.LimitExceeded):
        start(here, id="two")


def test_a_start_that_is_refused_later_is_given_back() -> None:
    here = world({"limit": {"runs": 2, "per": "day"}})
    assert start(here, "lonely")

    with pytest.raises(weft.RunOpen):
        start(here, "lonely")

    assert start(here)


def test_limits_that_count_the_same_share_a_count_and_the_smaller_holds() -> None:
    here = world({"limit": {"runs": 5, "per": "day"}}, {"limit": {"runs": 1, "per": "day"}})

    assert start(here)
    with pytest.raises(weft.LimitExceeded, match="allows 1 runs"):
        start(here)


def test_a_condition_that_fails_limits() -> None:
    here = world({"limit": {"runs": 1, "per": "day"}, "when": "args.nothing > 3"})

    assert start(here)
    with pytest.raises(weft.LimitExceeded):
        start(here)


def test_a_process_without_a_host_obeys_the_policy_in_the_store() -> None:
    here = world()
    text = "weft: policy/1\nrules: [{deny: workflow, names: [hello]}]"

    async def go() -> None:
        service = type(here._service)(here._service.store, here._clock, here._ids)
        await service.store.policies.put(StoredPolicy(version=1, text=text, at=Millis(1)))
        await service.start(StartOrder(workflow="hello"))

    with pytest.raises(weft.NotAllowed, match="deny workflow hello"):
        here.perform(go)
