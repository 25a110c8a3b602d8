"""A policy that cannot be read is refused as a whole, with everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from weft.agents.policy.load import load_policy, parse_policy

DENY = {"deny": "tool", "names": ["x"]}


def findings(*given: Any, **more: Any) -> list[tuple[str, str]]:
    with pytest.raises(weft.BadPolicy) as caught:
        load_policy({"weft": "policy/1", "rules": list(given), **more})
    found = caught.value.context["findings"]
    assert isinstance(found, list)
    return [(each.code.removeprefix("policy."), each.path) for each in found]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"deny": "tol", "names": ["x"]}, ("unknown_action", "rules[0].deny")),
        ({"deny": 7, "names": ["x"]}, ("unknown_action", "rules[0].deny")),
        ({"deny": ["tool"], "names": ["x"]}, ("unknown_action", "rules[0].deny")),
        ({"ask": "host", "names": ["x"]}, ("cannot_ask", "rules[0].ask")),
        ({"forbid": "tool", "names": ["x"]}, ("bad_rule", "rules[0]")),
        ({"deny": "tool", "allow": "tool", "names": ["x"]}, ("bad_rule", "rules[0]")),
        ({}, ("bad_rule", "rules[0]")),
        ("deny everything", ("wrong_type", "rules[0]")),
        ({"deny": "tool"}, ("missing_field", "rules[0]")),
        ({"deny": "tool", "names": []}, ("wrong_type", "rules[0].names")),
        ({"deny": "tool", "names": [7]}, ("wrong_type", "rules[0].names")),
        ({"deny": "tool", "names": ["x" * 501]}, ("wrong_type", "rules[0].names")),
        ({**DENY, "to": ["agents:x"]}, ("bad_subject", "rules[0].to")),
        ({**DENY, "to": ["agent"]}, ("bad_subject", "rules[0].to")),
        ({**DENY, "to": ["agent:"]}, ("bad_subject", "rules[0].to")),
        ({**DENY, "of": ["role:x"]}, ("bad_rule", "rules[0].of")),
        ({**DENY, "when": "args.cents >"}, ("bad_condition", "rules[0].when")),
        ({**DENY, "when": "arg.cents > 1"}, ("unknown_name", "rules[0].when")),
        ({**DENY, "when": "agents > 1"}, ("unknown_name", "rules[0].when")),
        ({**DENY, "when": 7}, ("wrong_type", "rules[0].when")),
        ({**DENY, "unless": "true"}, ("unknown_field", "rules[0].unless")),
        ({"limit": {"runs": 3}}, ("missing_field", "rules[0].limit")),
        ({"limit": {"per": "day"}}, ("missing_field", "rules[0].limit")),
        ({"limit": {"runs": 0, "per": "day"}}, ("wrong_type", "rules[0].limit.runs")),
        ({"limit": {"runs": 3, "per": "week"}}, ("unknown_word", "rules[0].limit.per")),
        ({"limit": {"money": "20", "per": "day"}}, ("wrong_type", "rules[0].limit.money")),
        ({"limit": {"money": 20, "per": "day"}}, ("wrong_type", "rules[0].limit.money")),
        ({"limit": {"money": "-1 USD", "per": "day"}}, ("wrong_type", "rules[0].limit.money")),
        ({"limit": {"time": "long", "per": "day"}}, ("bad_duration", "rules[0].limit.time")),
        ({"limit": {"per_tool": ["x"], "per": "day"}}, ("wrong_type", "rules[0].limit.per_tool")),
        ({"limit": {"per_tool": {"x": 0}, "per": "day"}}, ("wrong_type", "rules[0].limit.per_tool.x")),
        ({"limit": {"tokens": 3, "per": "day"}, "when": "agents > 1"}, ("unknown_name", "rules[0].when")),
        ({"limit": {"cups": 3, "per": "day"}}, ("unknown_field", "rules[0].limit.cups")),
        ({"limit": "3 runs a day"}, ("wrong_type", "rules[0].limit")),
        ({"limit": {"runs": 3, "per": "day"}, "names": ["x"]}, ("unknown_field", "rules[0].names")),
    ],
)
def test_a_rule_that_is_not_understood_is_never_ignored(rule: Any, expected: tuple[str, str]) -> None:
    assert expected in findings(rule)


def test_all_problems_are_reported_at_once() -> None:
    found = findings({"deny": "tol", "names": ["x"]}, DENY, {**DENY, "when": "("}, require={"budgets": ["agent:*"]})

    assert [code for code, _ in found] == ["unknown_action", "bad_condition", "unknown_field"]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"rules": []}, "missing_field"),
        ({"weft": "policy/2", "rules": []}, "unknown_format"),
        ({"weft": "policy/1", "rule": []}, "unknown_field"),
        ({"weft": "policy/1", "rules": {}}, "wrong_type"),
        ({"weft": "policy/1", "rules": [DENY] * 1001}, "too_many_rules"),
        ({"weft": "policy/1", "require": {"budget": "everybody"}}, "bad_subject"),
        ({"weft": "policy/1", "rules": [{**DENY, "names": [object()]}]}, "not_json"),
    ],
)
def test_a_document_that_is_no_policy_is_refused(document: dict[str, Any], code: str) -> None:
    with pytest.raises(weft.BadPolicy) as caught:
        load_policy(document)

    assert caught.value.code == f"policy.{code}"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("weft: policy/1\nrules:\n  - {deny: tool, names: [x}\n", "yaml", 3),
        ("weft: policy/1\nrules:\n  - {deny: shell, names: [x]}\n", "unknown_action", 3),
        ("weft: policy/1\nweft: policy/1\n", "duplicate_key", 2),
        ("- deny\n", "wrong_type", 1),
        ("", "yaml", 0),
        (b"\xff\xfe", "yaml", 0),
    ],
)
def test_a_problem_in_a_file_has_its_line(tmp_path: Path, text: str | bytes, code: str, line: int) -> None:
    file = tmp_path / "policy.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(weft.BadPolicy) as caught:
        load_policy(file)

    listed: Any = caught.value.context["findings"]
    found = listed[0]
    assert (found.code, found.line, found.file) == (f"policy.{code}", line, "policy.yaml")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(weft.NotFound, match="nowhere"):
        load_policy("nowhere.yaml")


def test_the_error_for_one_problem_suggests_the_right_word() -> None:
    with pytest.raises(weft.BadPolicy, match=r'rules\[0\]\.deny: there is no action .tol.*Did you mean "tool"'):
        load_policy({"weft": "policy/1", "rules": [{"deny": "tol", "names": ["x"]}]})


def test_a_text_in_json_is_read_like_yaml() -> None:
    read = parse_policy('{"weft": "policy/1", "rules": [{"deny": "tool", "names": "shell"}]}', version="3")

    assert str(read.policy.rules[0]) == "deny tool shell"
    assert read.policy.rules[0].version == "3"
