"""The policy of a host: that of its program, and the newest one in the store within a second."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import weft
from weft.agents.policy.verdicts import Asked, Permission
from weft.core.ids import Millis
from weft.ports.policies import StoredPolicy
from weft.runtime.duties.table import Parts, duties
from weft.runtime.policy import CurrentPolicy, denied_error, tenant_of
from weft.runtime.settings import Settings
from weft.stores.memory import MemoryStore

DENY_SHELL = {"weft": "policy/1", "rules": [{"deny": "tool", "names": ["shell*"]}]}
DENY_MAIL = "weft: policy/1\nrules: [{deny: tool, names: [mail]}]"


def tool(policy: CurrentPolicy, name: str) -> Permission:
    return policy.verdict(Asked(action="tool", name=name), "allow").permission


def stored(version: int, text: str = DENY_MAIL) -> StoredPolicy:
    return StoredPolicy(version=version, text=text, at=Millis(1))


def test_without_a_policy_every_answer_is_the_default() -> None:
    policy = CurrentPolicy(MemoryStore().policies)

    asyncio.run(policy.refresh())

    assert policy.rules is None
    assert policy.verdict(Asked(action="host", name="x"), "deny").permission == "deny"


def test_the_policy_of_the_program_and_the_one_in_the_store_hold_together() -> None:
    store = MemoryStore()
    policy = CurrentPolicy(store.policies, weft.App(policy=DENY_SHELL).catalogue().policy())

    async def go() -> None:
        await policy.refresh()
        assert (tool(policy, "shell"), tool(policy, "mail")) == ("deny", "allow")
        await store.policies.put(stored(1))
        await policy.refresh()

    asyncio.run(go())
    assert (tool(policy, "shell"), tool(policy, "mail"), policy.version) == ("deny", "deny", 1)


def test_a_version_that_cannot_be_read_leaves_the_last_one_in_force(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    policy = CurrentPolicy(store.policies)

    async def go() -> None:
        await store.policies.put(stored(1))
        await policy.refresh()
        await store.policies.put(stored(2, "weft: policy/9"))
        await policy.refresh()
        await policy.refresh()

    asyncio.run(go())
    assert (tool(policy, "mail"), policy.version) == ("deny", 1)
    assert len(caplog.records) == 1


def test_a_host_does_not_start_under_a_policy_that_it_cannot_read() -> None:
    store = MemoryStore()
    asyncio.run(store.policies.put(stored(1, "weft: policy/9")))

    with pytest.raises(weft.BadPolicy):
        asyncio.run(CurrentPolicy(store.policies).refresh())


def test_a_mapping_is_checked_when_the_app_is_made() -> None:
    with pytest.raises(weft.BadPolicy):
        weft.App(policy={"weft": "policy/1", "rules": [{"deny": "everything"}]})
    with pytest.raises(weft.UsageError, match="neither a file nor a mapping"):
        weft.App(policy=7)  # type: ignore[arg-type]


def test_a_file_is_checked_when_the_app_is_hosted(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    app = weft.App("memory://", policy=file)

    async def host() -> None:
        async with app:
            pass

    with pytest.raises(weft.NotFound):
        asyncio.run(host())
    file.write_text("weft: policy/1\nrules: [{deny: tol, names: [x]}]")
    with pytest.raises(weft.BadPolicy, match=r"policy\.yaml:2"):
        asyncio.run(host())
    file.write_text(DENY_MAIL)
    asyncio.run(host())
    rules = app.catalogue().policy()
    assert rules is not None
    assert str(rules.rules[0]) == "deny tool mail"


def test_hosts_look_for_a_new_policy_more_than_once_a_second() -> None:
    parts = MagicMock(spec_set=[field.name for field in dataclasses.fields(Parts)])

    (found,) = [duty for duty in duties(parts, Settings()) if duty.name == "policy"]

    assert found.run is parts.learn_policy
    assert found.every < 1


@pytest.mark.parametrize(("run_id", "tenant"), [("@acme/order-1", "acme"), ("order-1", ""), ("a/b", ""), ("@/x", "")])
def test_the_tenant_of_a_run_is_in_its_id(run_id: str, tenant: str) -> None:
    assert tenant_of(run_id) == tenant


@pytest.mark.parametrize(
    ("rules", "why"),
    [(DENY_SHELL, "the policy says: deny tool shell"), ({"weft": "policy/1"}, "no rule of the policy allows it")],
)
def test_a_refusal_names_the_rule(rules: dict[str, Any], why: str) -> None:
    policy = weft.App(policy=rules).catalogue().policy()
    assert policy is not None
    asked = Asked(action="tool", name="shell", agent="support")

    error = denied_error(asked, policy.verdict(asked, "deny"))

    assert error.code == "policy.denied"
    assert str(error).startswith(f"The tool shell of support is not permitted: {why}")
