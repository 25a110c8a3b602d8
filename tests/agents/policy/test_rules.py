"""Verdicts of a policy: which rules apply to whom, and which of several wins."""

from __future__ import annotations

from typing import Any

import pytest

from weft.agents.policy.defaults import default_for
from weft.agents.policy.load import load_policy
from weft.agents.policy.policy_rules import PolicyRules, join_policies
from weft.agents.policy.verdicts import Action, Asked, Permission, PolicyVerdict
from weft.agents.policy.windows import window_at


def rules(*given: dict[str, Any], **more: Any) -> PolicyRules:
    return load_policy({"weft": "policy/1", "rules": list(given), **more}).policy


def said(policy: PolicyRules, default: Permission = "allow", **asked: Any) -> Permission:
    return policy.verdict(Asked(**{"action": "tool", "name": "refund", **asked}), default).permission


def test_deny_beats_ask_and_ask_beats_allow_in_any_order() -> None:
    allow = {"allow": "tool", "names": ["refund"]}
    ask = {"ask": "tool", "names": ["refund"]}
    deny = {"deny": "tool", "names": ["refund"]}

    assert said(rules(allow, ask, deny)) == said(rules(deny, ask, allow)) == "deny"
    assert said(rules(allow, ask)) == said(rules(ask, allow)) == "ask"
    assert said(rules(allow), "deny") == "allow"


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_without_a_rule_that_applies_the_default_holds(default: Permission) -> None:
    policy = rules({"deny": "tool", "names": ["shell*"]}, {"deny": "model", "names": ["*"]})

    assert policy.verdict(Asked(action="tool", name="refund"), default) == PolicyVerdict(permission=default)


def test_a_verdict_says_which_rule_decided_and_whom_to_ask() -> None:
    policy = rules(
        {"ask": "tool", "names": ["re*"], "to": ["agent:support"], "when": "args.cents > 5000", "of": ["role:finance"]},
        {"ask": "tool", "names": ["refund"], "of": ["ann", "role:finance"]},
    )

    verdict = policy.verdict(Asked(action="tool", name="refund", agent="support", args={"cents": 9000}), "allow")

    assert verdict.rule == "ask tool re* to agent:support when args.cents > 5000 of role:finance"
    assert verdict.of == ("role:finance", "ann")
    assert len(verdict.version) == 12


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("shell", "shell", True),
        ("shell", "shell2", False),
        ("shell*", "shell", True),
        ("shell*", "shell_exec", True),
        ("*", "", True),
        ("*_crm", "search_crm", True),
        ("*_crm", "search_crm_all", False),
        ("s?arch", "search", True),
        ("s?arch", "sarch", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("[ab]", "a", False),
        ("Refund", "refund", False),
        ("*" * 200 + "x", "y" * 400, False),
    ],
)
def test_names_have_wildcards(pattern: str, name: str, expected: bool) -> None:
    assert (said(rules({"deny": "tool", "names": [pattern]}), name=name) == "deny") is expected


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("api.shop.example", "api.shop.example:443", True),
        ("api.shop.example", "API.shop.example:8443", True),
        ("api.shop.example", "api.shop.example.:443", True),
        ("api.shop.example", "evil-api.shop.example:443", False),
        ("api.shop.example", "api.shop.example.evil.example:443", False),
        ("*.weather.example:443", "eu.weather.example:443", True),
        ("*.weather.example:443", "a.b.weather.example:443", True),
        ("*.weather.example:443", "eu.weather.example:80", False),
        ("*.weather.example:443", "weather.example:443", False),
        ("*.weather.example:443", "evil.example", False),
        ("localhost:80*", "localhost:8080", True),
        ("[::1]:443", "[::1]:443", True),
        ("[::1]", "[::1]:443", True),
        ("[::1]:443", "[::2]:443", False),
    ],
)
def test_hosts_are_compared_without_case_and_with_the_port_if_there_is_one(
    pattern: str, host: str, expected: bool
) -> None:
    policy = rules({"allow": "host", "names": [pattern]})

    assert (said(policy, "deny", action="host", name=host) == "allow") is expected


@pytest.mark.parametrize(
    ("to", "asked", "expected"),
    [
        (["agent:support"], {"agent": "support"}, True),
        (["agent:support"], {"agent": "planner"}, False),
        (["agent:support", "agent:plan*"], {"agent": "planner"}, True),
        (["agent:support", "tenant:trial"], {"agent": "support"}, False),
        (["agent:support", "tenant:trial"], {"agent": "support", "tenant": "trial"}, True),
        (["agent:*"], {}, False),
        (["tenant:*"], {}, True),
        (["tenant:?*"], {}, False),
        (["role:finance"], {"roles": ("eng", "finance")}, True),
        (["role:finance"], {"roles": ()}, False),
        (["user:ann"], {"user": "ann"}, True),
        (["node:judge"], {"node": "judge"}, True),
        (["workflow:order"], {"workflow": "orders"}, False),
    ],
)
def test_of_one_kind_of_subject_any_must_match_and_of_several_kinds_all(
    to: list[str], asked: dict[str, Any], expected: bool
) -> None:
    assert (said(rules({"deny": "tool", "names": ["*"], "to": to}), **asked) == "deny") is expected


@pytest.mark.parametrize(("permission", "met"), [("deny", True), ("ask", True), ("allow", False)])
def test_a_condition_that_fails_is_met_in_deny_and_ask_and_not_in_allow(permission: str, met: bool) -> None:
    policy = rules({permission: "tool", "names": ["*"], "when": "args.cents > 5000"})
    default: Permission = "deny" if permission == "allow" else "allow"

    assert (said(policy, default, args={"euros": 1}) == permission) is met
    assert (said(policy, default, args={"cents": "many"}) == permission) is met


def test_a_condition_sees_the_call_and_who_makes_it() -> None:
    policy = rules(
        {
            "deny": "tool",
            "names": ["*"],
            "when": "args.cents > spent.money && name == 'refund' && agent == 'a' && workflow == 'w' "
            "&& tenant == 't' && attributes.vip",
        }
    )
    asked: dict[str, Any] = {
        "agent": "a",
        "workflow": "w",
        "tenant": "t",
        "attributes": {"vip": True},
        "spent": {"money": 5},
    }

    assert said(policy, args={"cents": 6}, **asked) == "deny"
    assert said(policy, args={"cents": 5}, **asked) == "allow"


def test_several_policies_hold_together() -> None:
    ours = rules({"allow": "host", "names": ["*"]})
    theirs = rules({"deny": "host", "names": ["evil.example"]}, require={"budget": ["agent:*"]})

    both = join_policies(ours, theirs)

    assert said(both, "deny", action="host", name="evil.example") == "deny"
    assert said(both, "deny", action="host", name="good.example") == "allow"
    assert both.requires_budget(Asked(action="workflow", name="x", agent="a"))
    assert not both.requires_budget(Asked(action="workflow", name="x"))
    assert both.governs("host")
    assert not both.governs("tool")


def test_limits_hold_for_those_to_whom_they_apply() -> None:
    policy = rules(
        {"limit": {"runs": 20, "per": "day"}, "to": ["tenant:*"]},
        {"limit": {"runs": 3, "per": "hour"}, "when": "agents > 2"},
        {"limit": {"runs": 2, "per": "month"}, "to": ["agent:support"]},
    )

    daily, hourly, monthly = policy.limits

    assert (daily.amounts, daily.per, str(daily)) == ({"runs": 20}, "day", "limit 20 runs per day to tenant:*")
    assert policy.limits_of(Asked(action="workflow", name="x", agents=3)) == [daily, hourly]
    assert policy.limits_of(Asked(action="workflow", name="x", agent="support")) == [daily, monthly]


@pytest.mark.parametrize(
    ("per", "begins_at", "ends_at"),
    [
        ("minute", 1_709_208_000_000, 1_709_208_060_000),
        ("hour", 1_709_208_000_000, 1_709_211_600_000),
        ("day", 1_709_164_800_000, 1_709_251_200_000),
        ("month", 1_706_745_600_000, 1_709_251_200_000),  # a February of 29 days
    ],
)
def test_windows_begin_with_the_clock_and_the_calendar(per: Any, begins_at: int, ends_at: int) -> None:
    now = 1_709_208_000_000 + 30_001  # 2024-02-29 12:00:30 UTC

    window = window_at(per, now)

    assert window == (begins_at, ends_at)
    assert window.seconds_left(now) == -(-(ends_at - now) // 1000)
    assert window_at(per, ends_at).begins_at == ends_at


@pytest.mark.parametrize(
    ("action", "agents", "code"),
    [
        ("tool", "allow", "allow"),
        ("model", "allow", "allow"),
        ("host", "deny", "allow"),
        ("secret", "deny", "allow"),
        ("step", "allow", "allow"),
        ("workflow", "allow", "allow"),
        ("route", "allow", "allow"),
        ("patch", "ask", "allow"),
    ],
)
def test_agents_have_stricter_defaults_than_code(action: Action, agents: Permission, code: Permission) -> None:
    assert default_for(action, agent="support") == agents
    assert default_for(action, agent="") == code
