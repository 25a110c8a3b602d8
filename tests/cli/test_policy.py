"""``weft policy``: show, set and test."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Weft

POLICY = """\
weft: policy/1
rules:
  - {deny: tool, names: ["shell*"]}   # never
  - {ask: tool, names: [refund], to: ["agent:support"], when: "args.cents > 5000", of: ["role:finance"]}
"""


def test_a_policy_is_set_shown_and_listed(weft: Weft, folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY)

    said = weft("policy", "set", "policy.yaml", "--reason", "safety first", "--by", "ann")

    assert (said.code, said.out.split(";")[0]) == (0, "version 1 of the policy holds")
    shown = weft("policy").out
    assert POLICY in shown
    assert "by ann: safety first" in shown
    assert weft("policy", "show", "1", "--json").json()["rules"][0] == "deny tool shell*"
    assert "safety first" in weft("policy", "show", "--history").out
    assert weft("policy", "show", "--history", "--json").json()["versions"][0]["version"] == 1
    assert weft("policy", "set", "policy.yaml", "--json").json()["version"] == 1


def test_without_a_policy_the_defaults_are_named(weft: Weft, folder: Path) -> None:
    assert weft("run", "app.py", "hello", "name=a").code == 0

    shown = weft("policy", "show").out
    assert "No policy is set in the store." in shown
    assert "The rules of a program: --app FILE" in shown
    assert "no rule in the store" in weft("policy", "test", "tool", "shell_exec").out
    assert "No policy is set." in weft("policy", "show", "--app", "app.py").out


def test_what_the_policy_says_is_tested(weft: Weft, folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY)
    assert weft("policy", "set", "policy.yaml").code == 0

    denied = weft("policy", "test", "tool", "shell_exec")
    assert (denied.code, denied.out) == (1, "deny  deny tool shell*\n")
    asked = weft("policy", "test", "tool", "refund", "--as", "agent:support", "--args", '{"cents": 9000}')
    assert asked.code == 0
    assert asked.out.startswith("ask  ask tool refund")
    assert "Asked: role:finance." in asked.out.replace("\n", " ")
    assert weft("policy", "test", "tool", "refund").out.startswith("allow  by default")
    host = weft("policy", "test", "host", "x.example", "--as", "agent:a", "--json")
    assert (host.code, msgspec.json.decode(host.out)) == (1, {"permission": "deny"})


def test_the_policy_of_a_program_is_shown_and_tested_with_it(weft: Weft, folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "guarded.py").write_text('import weft\n\napp = weft.App(policy="policy.yaml")\n')
    assert weft("run", "app.py", "hello", "name=a").code == 0

    assert "#   deny tool shell*" in weft("policy", "show", "--app", "guarded.py").out
    assert weft("policy", "test", "tool", "shell", "--app", "guarded.py").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "nowhere.yaml"), "nowhere.yaml cannot be read"),
        (("set", "bad.yaml"), "bad.yaml:1"),
        (("set",), "is not a command"),
        (("show", "newest"), "is not the number of a version"),
        (("show", "7"), "There is no version 7"),
        (("test", "tol", "x"), 'Did you mean "tool"'),
        (("test", "tool", "x", "--as", "somebody"), "is not one of tenant:NAME"),
        (("test", "tool", "x", "--args", "[]"), "is not a JSON object"),
        (("forget",), "is not a command"),
    ],
)
def test_what_cannot_be_understood_is_refused(weft: Weft, folder: Path, words: tuple[str, ...], message: str) -> None:
    assert weft("run", "app.py", "hello", "name=a").code == 0
    (folder / "bad.yaml").write_text("weft: policy/2")

    said = weft("policy", *words)

    assert said.code != 0
    assert message in said.err.replace("\n", " ")


def test_check_finds_what_the_policy_denies(weft: Weft, folder: Path) -> None:
    (folder / "guarded.py").write_text(
        "import weft\n\n"
        'app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "step", "names": ["wipe"]}]})\n\n'
        "@app.step\nasync def wipe() -> None: ...\n\n"
        'app.graph({"name": "clean", "nodes": {"first": {"step": "wipe"}}})\n'
    )

    said = weft("check", "guarded.py", "--json")

    (graph,) = msgspec.json.decode(said.out)["graphs"]
    assert said.code == 1
    assert [(found["code"], found["path"]) for found in graph["findings"]] == [("policy.denied", "nodes.first.step")]
