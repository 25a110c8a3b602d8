"""Goals on the command line: plans with their reasons, the catalogue, goal runs as trees, frozen graphs."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cli.conftest import Weft, hosting

STEPS = """\
weft: steps/1
steps:
  lookup:
    script: {lua: "return {email = user .. '@example.com'}"}
    needs: {user: string}
    gives: {email: string}
    cache: 1h
  send:
    script: {ale: '(str "to " email)'}
    needs: {email: string, body: {default: hi}}
    gives: {sent: {type: string, name: result}}
  geocode:
    http: {url: "https://geo.example/{zip}", health: "https://geo.example/ok"}
    needs: [zip]
    gives: [city]
"""

APP = """
import weft

app = weft.App()


@app.step(gives="note", when="sent != 'nothing'", retries=0)
async def note(sent: str, loud: bool = False) -> str:
    if loud:
        raise ValueError("too loud")
    return f"noted {sent}"


@app.step(gives="shout", when="sent == 'never'")
async def shout(sent: str) -> str:
    return sent.upper()


@app.step
async def count(users: str) -> dict:
    return {"letters": len(users)}


app.steps({"steps": {"count": {
    "step": "count", "needs": {"users": {"type": "string[]", "each": True}}, "gives": {"letters": "integer"},
}}})

noting = app.goal("noting", "note", "shout")
counting = app.goal("counting", "count")


@app.workflow
async def outer(ctx: weft.Context, user: str) -> str:
    return (await ctx.achieve("note", given={"user": user}))["note"]
"""


@pytest.fixture
def steps(weft: Weft, folder: Path) -> Weft:
    """A store with three steps in its catalogue, and an app that plans with them."""
    (folder / "steps.yaml").write_text(STEPS)
    (folder / "goals.py").write_text(APP)
    assert weft("steps", "register", "steps.yaml").code == 0
    return weft


def test_steps_are_listed_with_their_health_and_where_they_come_from(steps: Weft) -> None:
    said = steps("steps", "--app", "goals.py")
    lines = {line.split()[0]: line for line in said.out.splitlines() if line.strip()}

    assert "healthy" in lines["lookup"]
    assert "store" in lines["lookup"]
    assert "unknown" in lines["geocode"]
    assert "app" in lines["note"]
    listed: Any = steps("steps", "--json").json()
    assert [(one["id"], one["health"], one["from"]) for one in listed["steps"]] == [
        ("geocode", "unknown", "store"),
        ("lookup", "healthy", "store"),
        ("send", "healthy", "store"),
    ]


def test_without_a_store_there_are_no_steps(weft: Weft, folder: Path) -> None:
    said = weft("steps")

    assert "No steps" in said.out
    assert not (folder / "weft.db").exists(), "looking makes no store"


def test_registering_again_changes_nothing_and_something_else_is_refused(steps: Weft, folder: Path) -> None:
    assert "nothing to do" in steps("steps", "register", "steps.yaml").err
    (folder / "steps.yaml").write_text(STEPS.replace("hi", "hello"))
    refused = steps("steps", "register", "steps.yaml")
    assert refused.code == 2
    assert "send is registered with another definition" in refused.err
    assert "updated send" in steps("steps", "update", "steps.yaml").err
    assert "unregistered geocode" in steps("steps", "unregister", "geocode").err
    assert "No step" in steps("steps", "unregister", "geocode").err


def test_every_mistake_of_a_file_is_told_with_its_line(weft: Weft, folder: Path) -> None:
    (folder / "bad.yaml").write_text("steps:\n  a: {stp: x}\n  b: {step: b, needs: {n: nmber}}\n")
    said = weft("steps", "register", "bad.yaml")

    assert said.code == 2
    assert "bad.yaml:2 steps.a.stp" in said.err
    assert "bad.yaml:3 steps.b.needs.n.type" in said.err
    assert not (weft("steps", "--json").json())["steps"]  # type: ignore[index]


def test_a_plan_is_a_tree_with_reasons(steps: Weft) -> None:
    said = steps("plan", "send", "--given", "user=bob")

    assert said.code == 0
    assert "email (string): from" in said.out
    assert "lookup -> email  [lua]" in said.out
    assert "user (string): given" in said.out


def test_a_plan_that_could_not_start_says_what_is_missing_and_for_whom(steps: Weft) -> None:
    said = steps("plan", "geocode", "send")

    assert said.code == 1
    assert "zip, needed by geocode" in said.out
    assert "user, needed by lookup" in said.out


def test_a_plan_for_programs_has_all_its_parts(steps: Weft) -> None:
    plan: Any = steps("plan", "send", "--given", "email", "--json").json()

    assert list(plan["steps"]) == ["send"]
    assert plan["excluded"]["lookup"] == {"why": "satisfied", "by": ["email"]}
    assert (plan["required"], plan["missing"], plan["reuse"]) == ([], {}, {})


def test_a_plan_is_drawn(steps: Weft) -> None:
    svg = ET.fromstring(steps("plan", "send", "--svg").out)
    assert svg.tag.endswith("svg")
    flow = steps("plan", "send", "--mermaid").out
    assert "flowchart" in flow
    assert "missing" in flow


def test_an_unknown_goal_is_named_with_the_nearest(steps: Weft) -> None:
    said = steps("plan", "sned")

    assert said.code == 2
    assert 'Did you mean "send"?' in said.err


def test_without_an_app_it_is_said_that_its_steps_are_not_known(steps: Weft) -> None:
    for said in (steps("plan", "note").err, steps("plan", "send", "--given", "user").out, steps("steps").out):
        assert "To include the steps of an app, add --app FILE" in said
    for words in (("plan", "note", "--given", "user"), ("steps",)):
        assert "To include the steps" not in steps(*words, "--app", "goals.py").out


def test_steps_of_the_store_run_with_those_of_the_app(steps: Weft) -> None:
    said = steps("run", "goals.py", "noting", "user=bob", "--id", "n-1", "--json")

    assert said.json() == {"note": "noted to bob@example.com"}
    shown = steps("show", "n-1").out
    assert "✓ note" in shown
    assert "✓ lookup" in shown
    assert "skipped: predicate returned false" in shown
    assert 'email  "bob@example.com"' in shown


def test_a_cached_step_is_told_to_be_answered_from_before(steps: Weft) -> None:
    steps("run", "goals.py", "noting", "user=bob", "--id", "n-1")
    assert "lookup: as in n-1" in steps("plan", "send", "--given", "user=bob").out
    assert "as in n-1" not in steps("plan", "send", "--given", "user=eve").out
    steps("run", "goals.py", "noting", "user=bob", "--id", "n-2")
    assert "(as in n-1)" in steps("show", "n-2").out


def test_a_goal_run_is_explained_step_by_step(steps: Weft) -> None:
    steps("run", "goals.py", "noting", "user=bob", "loud=true", "--id", "n-1")
    said = steps("explain", "n-1").out

    assert "lookup completed: gave email" in said
    assert "note failed: too loud" in said
    assert "what did not run" in said
    explained: Any = steps("explain", "n-1", "--json").json()
    assert any(sentence.startswith("shout was skipped") for sentence in explained["skipped"])


def test_items_of_a_fan_out_stand_below_their_step(steps: Weft) -> None:
    steps("run", "goals.py", "counting", 'users=["ann","bob"]', "--id", "c-1")
    tree = steps("show", "c-1", "--tree").out

    assert "✓ count  2 items" in tree
    assert "✓ 0" in tree
    assert "✓ 1" in tree
    entries: Any = steps("show", "c-1", "--json").json()
    assert [entry["location"] for entry in entries["entries"]] == ["count", "count/0", "count/1"]


def test_a_goal_inside_a_workflow_hangs_below_it(steps: Weft) -> None:
    assert steps("run", "goals.py", "outer", "user=ann", "--id", "o-1").code == 0
    tree = steps("show", "o-1", "--tree").out

    assert "run o-1.goal" in tree
    assert tree.index("run o-1.goal") < tree.index("✓ lookup") < tree.index("✓ note")


def test_a_goal_run_is_drawn(steps: Weft) -> None:
    steps("run", "goals.py", "noting", "user=bob", "--id", "n-1")
    svg = ET.fromstring(steps("show", "n-1", "--svg").out)

    assert svg.tag.endswith("svg")
    assert "n-1" in steps("show", "n-1", "--mermaid").out


def test_the_log_of_a_goal_run_names_its_steps(steps: Weft) -> None:
    steps("run", "goals.py", "counting", 'users=["ann","bob"]', "--id", "c-1")
    said = steps("events", "c-1").out

    assert "count/0" in said
    assert "step_completed" in said


def test_a_plan_is_frozen_into_a_graph_that_any_host_of_its_steps_runs(steps: Weft) -> None:
    said = steps("plan", "send", "--given", "user", "--freeze", "sending")
    assert said.code == 0
    assert "sending is stored as a graph" in said.err
    listed: Any = steps("workflows", "--json").json()
    assert [one["name"] for one in listed["workflows"]] == ["sending"]
    assert steps("start", "sending", "user=eve", "--id", "s-1").code == 0
    for _ in range(3):  # each hosts everything for its time, which is enough for a step
        steps("run", "goals.py", "noting", "user=eve")

    shown: Any = steps("show", "s-1", "--json").json()
    assert (shown["status"], shown["result"]) == ("completed", {"sent": "to eve@example.com"})


@pytest.mark.parametrize("name", ["noting", "outer"])
def test_a_plan_is_not_frozen_under_the_name_of_a_workflow_of_the_app(steps: Weft, name: str) -> None:
    said = steps("plan", "send", "--given", "user", "--freeze", name, "--app", "goals.py")

    assert said.code == 2
    assert f'"{name}" is the name of a workflow that is not a graph' in said.err
    listed: Any = steps("workflows", "--json").json()
    assert listed["workflows"] == []


def test_what_cannot_be_frozen_says_why(steps: Weft, folder: Path) -> None:
    (folder / "more.yaml").write_text("steps: {a: {step: a, needs: {email: {match: value != ''}}}}")
    steps("steps", "register", "more.yaml")
    said = steps("plan", "a", "--given", "email", "--freeze", "x")

    assert said.code == 2
    assert "a cannot be frozen: email is a gate" in said.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["plan"], "Missing argument"),
        (["steps", "add"], "none of list, register"),
        (["steps", "register"], "name a file with steps"),
        (["plan", "send", "--given", "=3"], "names no fact"),
    ],
)
def test_what_is_asked_wrongly_is_said(steps: Weft, words: list[str], problem: str) -> None:
    said = steps(*words)

    assert said.code != 0
    assert problem in said.err


def test_a_tree_of_all_three_styles_is_drawn_to_its_leaves(weft: Weft, folder: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "p11_three_styles.py"
    (folder / "p11.py").write_text(program.read_text().replace('"1m"', '"10ms"'))
    assert weft("run", "p11.py", "fulfil", "order_id=o-1", "--id", "f-1").out == "sent picked o-1\n"
    tree = weft("show", "f-1", "--tree").out
    lines = [line.rstrip() for line in tree.splitlines() if "✓" in line]

    assert [line.split("✓")[1].split()[0] for line in lines] == ["goal", "packing", "pick", "walk", "announce"]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    assert indents[0] < indents[1] < indents[2] < indents[3]
    assert indents[4] == indents[1]


def test_start_hands_over_a_run_for_goals(folder: Path, weft: Weft) -> None:
    (folder / "steps.yaml").write_text(STEPS)
    (folder / "goals.py").write_text(APP)
    assert weft("steps", "register", "steps.yaml").code == 0

    started = weft("start", "--goal", "send,lookup", "user=17", "--id", "s-1")
    assert (started.code, started.out.strip()) == (0, "s-1")
    assert weft("start", "--goal", "send", "--goal", "lookup", "user=17", "--id", "s-1").code == 0
    assert "goals" in weft("start", "--goal", "send", "user=17", "--id", "s-1").err
    assert "user" in weft("start", "--goal", "send,lookup", "--id", "s-1").err

    planned = weft(
        "start", "--app", "goals.py", "--goal", "note", "user=bob", "--id", "s-2", "--url", "sqlite:///weft.db"
    )
    assert planned.code == 0, planned.err
    lacking = weft("start", "--app", "goals.py", "--goal", "note", "--url", "sqlite:///weft.db")
    assert lacking.code != 0
    assert "user" in lacking.err

    host = "import asyncio, goals\nasync def main():\n    async with goals.app:\n        for id in ('s-1', 's-2'):\n"
    host += "            await goals.app.get(id).result(timeout=200)\nasyncio.run(main())"
    environment = {**os.environ, "WEFT_URL": "sqlite:///weft.db"}
    subprocess.run([sys.executable, "-c", host], check=True, timeout=240, env=environment)
    shown = cast("dict[str, Any]", weft("show", "s-1", "--json").json())
    assert shown["status"] == "completed"
    assert "to 17@example.com" in str(shown)  # the fact is declared as text, so 17 is text


def test_start_names_a_workflow_or_goals(folder: Path, weft: Weft) -> None:
    assert weft("start").code == 2
    assert weft("start", "--goal", ",").code == 2


def test_a_registered_step_keeps_the_policies_of_its_function(folder: Path, weft: Weft) -> None:
    policies = (
        "import weft\napp = weft.App()\n@app.step(effect='irreversible')\nasync def charge(n: int) -> dict: ...\n"
    )
    (folder / "shop.py").write_text(policies)
    (folder / "charge.yaml").write_text("steps:\n  pay: {step: charge, needs: {n: integer}, gives: [paid]}\n")

    assert weft("steps", "register", "charge.yaml", "--app", "shop.py", "--url", "sqlite:///weft.db").code == 0
    (step,) = cast("dict[str, Any]", weft("steps", "--json", "--url", "sqlite:///weft.db").json())["steps"]
    assert (step["policy"]["effect"], step["policy"]["attempts_max"]) == ("irreversible", 1)


def test_the_steps_of_running_hosts_are_known_without_their_app(steps: Weft, folder: Path) -> None:
    (folder / "app.py").write_text(APP)
    assert "note" not in steps("steps").out
    with hosting(folder):
        listed = {line.split()[0]: line for line in steps("steps").out.splitlines() if line.strip()}
        planned = steps("plan", "note", "--given", "user")
        named = steps("steps", "--app", "goals.py", "--json")
    assert "hosts" in listed["note"]
    assert "store" in listed["lookup"]
    assert planned.code == 0
    assert "note" in planned.out
    assert "and of its running hosts" in planned.out
    assert {step["id"]: step["from"] for step in cast("Any", named.json())["steps"]}["note"] == "app"
    assert "note" not in steps("steps").out
