"""Graph runs on the command line: drawn, explained, their letters and their versions."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft

APP = """
import weft

app = weft.App()


@app.step(retries=0)
def look(n: int) -> int:
    return n


@app.step(retries=0)
def doubt(n: int) -> int:
    if n > 5:
        raise ValueError(f"{n} is too much")
    return n


graph = app.graph({
    "weft": "graph/1",
    "name": "sorting",
    "input": {"n": "integer"},
    "nodes": {
        "look": {"step": "look", "with": {"n": "${input.n}"}, "next": [
            {"when": "output == 0", "to": "nothing"},
            {"to": "doubt"},
        ]},
        "doubt": {"step": "doubt", "with": {"n": "${output}"}, "save": {"state.n": "${output}"}},
        "nothing": {"pass": True},
    },
})
"""


@pytest.fixture
def sorting(weft: Weft, folder: Path) -> Weft:
    (folder / "sorting.py").write_text(APP)
    assert weft("run", "sorting.py", "sorting", "n=3", "--id", "good").code == 0
    assert weft("run", "sorting.py", "sorting", "n=9", "--id", "bad").code == 1
    return weft


def test_a_graph_is_run_like_any_workflow(sorting: Weft) -> None:
    assert sorting("run", "sorting.py", "sorting", "n=2", "--json").json() == {"n": 2}
    refused = sorting("run", "sorting.py", "sorting", "n=two")
    assert refused.code != 0
    assert "The input of sorting is not valid" in refused.err


def test_a_run_is_drawn_with_what_it_has_done(sorting: Weft) -> None:
    drawn = sorting("show", "bad").out

    assert "✓ look" in drawn
    assert "✗ doubt" in drawn
    assert "○ nothing" in drawn or "nothing" in drawn
    assert "failed in doubt: ValueError: 9 is too much" in drawn


def test_the_picture_can_be_had_as_svg_and_as_mermaid(sorting: Weft) -> None:
    assert ET.fromstring(sorting("show", "good", "--svg").out).tag.endswith("svg")
    assert "\nflowchart TD" in sorting("show", "good", "--mermaid").out


def test_a_run_of_code_has_no_picture(over: Weft) -> None:
    refused = over("show", "order-1", "--svg")

    assert refused.code != 0
    assert "has no picture" in refused.err


def test_what_was_recorded_is_listed_by_node(sorting: Weft) -> None:
    shown: Any = sorting("show", "good", "--json").json()

    assert [(entry["location"], entry["kind"], entry["status"]) for entry in shown["entries"]] == [
        ("look", "step", "done"),
        ("doubt", "step", "done"),
    ]
    assert "look" in sorting("show", "good", "--tree").out


def test_the_way_is_explained_with_the_values_that_decided_it(sorting: Weft) -> None:
    told = sorting("explain", "good").out

    assert "look → doubt" in told
    assert "nothing did not run: at look, output == 0 (output = 3) did not hold" in told
    explained: Any = sorting("explain", "good", "--json").json()
    assert explained["path"][0] == "the start → look"


def test_dead_letters_are_listed_put_away_and_tried_again(sorting: Weft) -> None:
    (letter,) = _letters(sorting)
    assert (letter["run"], letter["node"], letter["input"]) == ("bad", "doubt", {"n": 9})
    assert letter["id"] in sorting("dlq").out

    assert sorting("dlq", "requeue", letter["id"]).code == 0
    assert sorting("run", "sorting.py", "sorting", "n=1").code == 0  # hosts the other one meanwhile
    (again,) = _letters(sorting)
    assert sorting("dlq", "discard", again["id"]).code == 0
    assert _letters(sorting) == []
    assert "No dead letters" in sorting("dlq", "list").out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["dlq", "requeue"], "name a dead letter"),
        (["dlq", "burn", "x:y"], "none of list, requeue, discard"),
        (["dlq", "requeue", "bad"], "RUN:TOKEN"),
        (["dlq", "requeue", "bad:nonsense"], "no dead letter"),
        (["workflows", "tag"], "weft workflows tag NAME"),
        (["workflows", "tag", "sorting", "--undo"], "weft workflows tag NAME"),
        (["workflows", "--undo"], "are for tags"),
        (["workflows", "tag", "sorting", "live", "nonsense"], "nonsense"),
        (["workflows", "tag", "sorting", "live", "--undo"], "has no tag 'live'"),
        (["workflows", "patches", "sorting"], "none of list, show, tag, patch"),
        (["start", "sorting:live"], "has no tag 'live'"),
    ],
)
def test_what_makes_no_sense_is_refused(sorting: Weft, words: list[str], complaint: str) -> None:
    refused = sorting(*words)

    assert refused.code != 0
    assert complaint in refused.err


def test_check_of_an_app_knows_its_steps_and_what_they_take(weft: Weft, folder: Path) -> None:
    wrong = APP.replace('"step": "look", "with": {"n":', '"step": "loko", "with": {"n":')
    (folder / "wrong.py").write_text(wrong.replace('"with": {"n": "${output}"}', '"with": {"m": "${output}"}'))

    checked = weft("check", "wrong.py")

    assert checked.code == 1
    assert "sorting  3 nodes  refused" in checked.out
    assert 'nodes.look.step: no step "loko" is registered.' in checked.out
    assert 'Did you mean "look"?' in checked.out
    assert "nodes.doubt.with.m: doubt has no parameter m." in checked.out
    assert "nodes.doubt.with: doubt needs n." in checked.out


def test_check_of_a_document_knows_the_steps_of_the_app_that_is_named(sorting: Weft, folder: Path) -> None:
    (folder / "more.yaml").write_text(
        "name: more\n"
        "input: {n: integer}\n"
        "nodes:\n"
        '  a: {step: look, with: {n: "${input.n}"}, next: b}\n'
        "  b: {step: loko, next: c}\n"
        "  c: {workflow: more}\n"
    )

    assert sorting("check", "more.yaml").code == 0
    checked = sorting("check", "more.yaml", "--app", "sorting.py")

    assert checked.code == 1
    assert 'error  5 nodes.b.step: no step "loko" is registered.' in checked.out
    assert checked.out.count("error") == 1


JOINING = """
from pathlib import Path

import weft

app = weft.App()


@app.step(retries=0)
def fail(n: int) -> int:
    if not Path("mended").exists():
        raise ValueError(f"no {n}")
    return n


app.graph({
    "weft": "graph/1",
    "name": "joining",
    "nodes": {
        "a": {"pass": True, "next": [{"to": ["b", "c", "d"]}]},
        "b": {"step": "fail", "with": {"n": 1}, "next": "j"},
        "c": {"step": "fail", "with": {"n": 2}, "next": "j"},
        "d": {"wait": "1h", "next": "j"},
        "j": {"join": {"at_least": 2}},
    },
})
"""


def test_explain_of_a_run_that_is_over_says_what_became_of_its_branches(weft: Weft, folder: Path) -> None:
    (folder / "joining.py").write_text(JOINING)
    assert weft("run", "joining.py", "joining", "--id", "j").code == 1

    explained = weft("explain", "j").out

    assert "not arrived yet" not in explained
    assert "j had 0 of 3 branches and needed 2; failed: branch 0 at b, branch 1 at c" in explained
    assert "stopped when the run ended: branch 2 at d" in explained
    assert explained.count("a dead letter") == 2

    (folder / "mended").touch()
    assert weft("retry", "j").code == 0
    assert "a dead letter" not in weft("explain", "j").out
    assert weft("dlq").out.count("ValueError") == 0


def test_a_failed_script_is_shown_with_its_node_and_without_lines_of_weft(weft: Weft, folder: Path) -> None:
    (folder / "scripted.py").write_text(
        "import weft\napp = weft.App()\n"
        "app.graph({'name': 'sums', 'nodes': {'add': {'script': {'lua': 'local x = nil\\nreturn x.y'}}}})\n"
    )
    said = weft("run", "scripted.py", "sums", "--id", "s-1")
    assert said.code == 1
    shown = weft("show", "s-1").out
    assert "failed in add: ScriptFailed: Lua script, line 2" in shown
    assert "Traceback" not in said.err + shown


def test_a_graph_is_checked_before_anything_runs(sorting: Weft, folder: Path) -> None:
    assert "sorting  3 nodes  sound" in sorting("check", "sorting.py").out
    (folder / "bad.yaml").write_text("weft: graph/1\nname: bad\nnodes:\n  a: {step: x, nxt: b}\n")

    refused = sorting("check", "bad.yaml")

    assert refused.code == 1
    assert 'Did you mean "next"?' in refused.out
    assert "cannot be read" in sorting("check", "nothing.yaml").err


def test_versions_are_listed_and_tagged(sorting: Weft, folder: Path) -> None:
    # Of another size: two files of one second are told apart by nothing else when Python looks for a compiled one.
    (folder / "sorting.py").write_text(APP.replace("output == 0", "output == 10"))
    assert sorting("run", "sorting.py", "sorting", "n=1").code == 0
    listed: Any = sorting("workflows", "--json").json()
    versions = [one["version"] for one in listed["workflows"]]

    assert len(set(versions)) == 2
    assert versions[0] in sorting("workflows").out
    assert sorting("workflows", "tag", "sorting", "live", versions[0], "--reason", "first").code == 0
    assert sorting("run", "sorting.py", "sorting:live", "n=1", "--id", "tagged").code == 0
    shown: Any = sorting("show", "tagged", "--json").json()
    assert shown["version"] == versions[0]

    assert sorting("workflows", "tag", "sorting", "live", versions[1]).code == 0
    assert sorting("run", "sorting.py", "sorting:live~1", "n=1", "--id", "back").code == 0
    assert sorting("workflows", "tag", "sorting", "live", "--undo").err.strip().endswith(versions[0])
    history: Any = sorting("workflows", "tag", "sorting", "live", "--json").json()
    assert [move["after"] for move in history["history"]] == [versions[1], versions[0]]
    assert (history["cursor"], history["history"][1]["reason"]) == (1, "first")
    assert "undone" in sorting("workflows", "tag", "sorting", "live").out
    assert versions[0] in sorting("workflows", "tag", "sorting").out
    assert "live" in sorting("workflows", "sorting").out
    assert sorting("start", f"sorting@{versions[1]}", "n=1", "--id", "started").code == 0
    waiting: Any = sorting("workflows", "sorting", "--json").json()
    assert [one["open_runs"] for one in waiting["workflows"]] == [0, 1]
    assert '"sorting"' in sorting("workflows", "show", "sorting:live").out

    (folder / "fix.yaml").write_text(f"weft: patch/1\nbase: {versions[0]}\nops: []\n")
    assert "already names" in sorting("workflows", "patch", "sorting:live", "fix.yaml").err
    (folder / "whole.yaml").write_text("# Mine.\nname: sorting\ninput: {n: integer}\nnodes: {a: {pass: true}}\n")
    made: Any = sorting("workflows", "patch", "sorting:live", "whole.yaml", "--reason", "simpler", "--json").json()
    assert (made["base"], made["moved"]) == (versions[0], True)
    assert sorting("workflows", "show", "sorting:live").out.startswith("# Mine.")
    assert sorting("run", "sorting.py", "sorting:live", "n=1", "--id", "patched").code == 0
    stale = sorting("workflows", "patch", "sorting:live", "fix.yaml")
    assert (stale.code, "was written against version" in stale.err) == (1, True)


def _letters(weft: Weft) -> list[Any]:
    found: Any = weft("dlq", "--json").json()
    return list(found["letters"])


ASKING = """
import weft

app = weft.App()
app.graph({
    "name": "reviews",
    "nodes": {
        "each": {"pass": True, "next": [{"to": "review", "copies": 2}]},
        "review": {"ask": {"title": "Well?"}, "next": "all"},
        "all": {"join": "all", "merge": {"how": "append", "into": "state.answers"}},
    },
})


@app.workflow
async def hello(ctx: weft.Context) -> None: ...
"""


def test_an_answer_that_names_a_node_with_several_questions_is_refused(weft: Weft, folder: Path) -> None:
    (folder / "reviews.py").write_text(ASKING)

    def host() -> None:
        assert weft("run", "reviews.py", "hello").code == 0

    assert weft("start", "reviews", "--id", "r", "--app", "reviews.py").code == 0
    host()
    found = [one["id"] for one in json.loads(weft("inbox", "--json").out)["questions"]]
    assert len(found) == 2

    refused = weft("decide", "r:review", "approve")
    assert refused.code == 1
    assert all(place in refused.err for place in found)
    assert weft("inbox", "r:review").code == 2

    assert weft("decide", found[0], "approve").code == 0
    host()
    again = weft("decide", found[0], "approve")
    assert (again.code, "is already decided" in again.err) == (1, True)
    assert weft("decide", "r:review", "reject").code == 0
    host()
    assert json.loads(weft("show", "r", "--json").out)["status"] == "completed"
