"""``weft run`` hosts a run and prints its result; ``weft start`` hands one to whoever hosts it."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft


def test_a_run_prints_its_result(weft: Weft) -> None:
    said = weft("run", "app.py", "hello", "name=17")

    assert (said.code, said.out, said.err) == (0, "hello 17\n", "")


def test_a_result_that_is_no_text_is_readable_json(weft: Weft) -> None:
    said = weft("run", "app.py", "order", "order_id=17", "n=2")

    assert said.json() == {"order": "17", "boxes": ["pay-b0-4200", "pay-b1-4200"], "note": None}
    assert said.out.startswith('{\n  "order"')


def test_with_json_a_text_is_json_too(weft: Weft) -> None:
    assert weft("run", "app.py", "hello", "name=a", "--json").out == '"hello a"\n'


def test_arguments_and_options_may_be_mixed(weft: Weft, folder: Path) -> None:
    (folder / "in.json").write_text('{"order_id": "o-1", "note": "x"}')

    said = weft("run", "app.py", "order", "n=1", "--id", "o-1", "--input", "in.json", "note=y", "--json")

    assert said.json() == {"order": "o-1", "boxes": ["pay-b0-4200"], "note": "y"}


def test_the_same_id_again_is_the_same_run(weft: Weft) -> None:
    weft("run", "app.py", "hello", "name=a", "--id", "h-1")

    said = weft("run", "app.py", "hello", "name=a", "--id", "h-1")

    assert said.out == "hello a\n"
    assert "h-1 completed" in said.err
    assert len(weft("list", "--json").json()["runs"]) == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["ordr"], 2, 'No workflow "ordr" in app.py. Did you mean "order"?'),
        (["order"], 2, "order() needs order_id."),
        (["order", "order_id=o", "n=many"], 2, 'order(n="many"): n must be an integer, got a string.'),
        (["order", "order_id=o", "m=1"], 2, 'order() has no parameter "m".'),
        (["order", "o-1"], 2, "'o-1' is not KEY=VALUE."),
        (["hello", "name=b", "--id", "h-1"], 1, 'h-1 exists with another input (name: "a" there, "b" here).'),
        (["order", "order_id=a", "--id", "h-1"], 1, "h-1 exists as a run of hello, not of order."),
        (["hello", "name=a", "--id", " x"], 2, "cannot be used as the id of a run"),
        (["hello", "name=a", "--id", ".."], 2, "cannot be used as the id of a run"),
        (["hello", "name=a", "--url", "sqlite:///nowhere/x.db"], 1, "There is no directory"),
        (["hello", "--input", "missing.json"], 2, "missing.json cannot be read"),
    ],
)
def test_bad_input_is_refused_and_starts_nothing(weft: Weft, words: list[str], code: int, problem: str) -> None:
    weft("run", "app.py", "hello", "name=a", "--id", "h-1")

    said = weft("run", "app.py", *words)

    assert said.code == code
    assert problem in said.err
    assert "Traceback" not in said.err
    assert len(weft("list", "--json").json()["runs"]) == 1  # type: ignore[index]


@pytest.mark.parametrize("way", ["project", "option"])
def test_the_file_may_be_named_by_the_project_or_an_option(weft: Weft, folder: Path, way: str) -> None:
    words = ["--app", "app.py"] if way == "option" else []
    if way == "project":
        (folder / "pyproject.toml").write_text('[tool.weft]\napp = "app.py"\n')

    assert weft("run", "hello", "name=a", *words).out == "hello a\n"
    assert weft("run", "app.py", "hello", "name=a", *words).out == "hello a\n"
    assert "names no workflow" in weft("run", "app.py", *words).err
    assert 'No workflow "helo" in app.py. Did you mean "hello"?' in weft("run", "helo", "name=a", *words).err


def test_without_one_the_file_is_asked_for(weft: Weft) -> None:
    said = weft("run", "hello", "name=a")

    assert said.code == 2
    assert "weft run hello names no file." in said.err


def test_a_run_that_fails_says_why_and_what_to_do(weft: Weft) -> None:
    said = weft("run", "app.py", "doomed", "order_id=o-1", "--id", "d-1")

    assert said.code == 1
    assert said.err.startswith("  Traceback (most recent call last):\n")
    assert "    raise ValueError(" in said.err
    assert "\nweft: d-1 failed: " in said.err
    assert "ValueError('declined o-1')" in said.err
    assert "weft retry d-1" in said.err
    assert not said.out


def test_the_url_of_the_command_line_goes_over_that_of_the_code(weft: Weft, folder: Path) -> None:
    weft("run", "app.py", "hello", "name=a", "--url", "sqlite:///other.db")

    assert (folder / "other.db").exists()
    assert not (folder / "weft.db").exists()


def test_a_run_may_be_kept_in_memory_only(weft: Weft, folder: Path) -> None:
    assert weft("run", "app.py", "hello", "name=a", "--url", "memory://").out == "hello a\n"
    assert not list(folder.glob("*.db"))


def test_a_started_run_waits_for_a_host_and_that_is_said(weft: Weft) -> None:
    said = weft("start", "hello", "name=a", "--id", "h-1")

    assert (said.code, said.out) == (0, "h-1\n")
    assert "no process hosts the run now" in said.err
    shown = weft("show", "h-1")
    assert '{"name":"a"}' in shown.out
    assert "No process hosts it now" in shown.out
    assert weft("run", "app.py", "hello", "name=b").out == "hello b\n"
    assert weft("show", "h-1", "--json").json()["result"] == "hello a"  # type: ignore[index]


def test_a_name_that_nobody_offers_is_pending_until_it_is_cancelled(weft: Weft) -> None:
    weft("start", "nobody", "--id", "n-1")
    weft("run", "app.py", "hello", "name=b")

    assert "n-1" in weft("list", "--status", "pending").out
    assert weft("explain", "n-1", "--json").json()["status"] == "pending"  # type: ignore[index]
    assert 'offers "nobody"' in weft("explain", "n-1").out
    assert weft("cancel", "n-1").code == 0
    assert weft("show", "n-1", "--json").json()["status"] == "cancelled"  # type: ignore[index]
    assert "n-1" not in weft("list", "--status", "pending").out


def test_a_goal_is_started_by_its_name(weft: Weft, folder: Path) -> None:
    (folder / "goals.py").write_text(
        'import weft\napp = weft.App()\n\n@app.step(gives="text")\ndef write(name: str) -> str:\n'
        '    return f"Dear {name}"\n\napp.goal("letter", write)\n\n@app.workflow\nasync def wait() -> None: ...\n'
    )
    assert weft("start", "letter", "name=Ada", "--id", "l-1").code == 0
    for _ in range(50):  # each is a host, if only for a moment
        assert weft("run", "goals.py", "wait").code == 0
        shown: Any = weft("show", "l-1", "--json").json()
        if shown["status"] == "completed":
            break
    assert shown["status"] == "completed"


def test_with_an_app_a_start_is_checked_by_the_signature(weft: Weft) -> None:
    said = weft("start", "hello", "name=17", "--id", "h-1", "--app", "app.py")

    assert said.code == 0
    assert weft("show", "h-1", "--json").json()["input"] == {"name": "17"}  # type: ignore[index]
    assert weft("start", "hello", "nam=1", "--app", "app.py").code == 2
    assert weft("start", "helo", "--app", "app.py").code == 2


def test_the_project_may_name_the_app_and_the_store(weft: Weft, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.weft]\napp = "app.py"\nurl = "sqlite:///shop.db"\n')

    weft("start", "order", "order_id=17", "--id", "o-1")

    assert weft("show", "o-1", "--json").json()["input"] == {"order_id": "17"}  # type: ignore[index]
    assert weft("list", "--json").json()["store"] == "sqlite:///shop.db"  # type: ignore[index]


def test_the_store_of_the_projects_app_is_used_if_nothing_else_is_said(
    weft: Weft, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shop.py").write_text('import weft\napp = weft.App("sqlite:///mine.db")\n')
    (folder / "pyproject.toml").write_text('[tool.weft]\napp = "shop:app"\n')

    def store(*words: str) -> object:
        return weft("list", "--json", *words).json()["store"]  # type: ignore[index]

    assert store() == "sqlite:///mine.db"
    monkeypatch.setenv("WEFT_URL", "sqlite:///env.db")
    assert store() == "sqlite:///env.db"
    assert store("--app", "shop.py") == "sqlite:///mine.db"
    assert store("--app", "shop.py", "--url", "sqlite:///typed.db") == "sqlite:///typed.db"


@pytest.mark.parametrize("options", [(), ("--app", "app.py")], ids=["by name", "with its app"])
def test_who_starts_a_run_is_recorded(weft: Weft, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")

    weft("start", "hello", "name=a", "--id", "h-9", *options)

    (run,) = weft("list", "--json").json()["runs"]  # type: ignore[index]
    assert run["attributes"]["weft.started_by"] == "ann"


STYLES = """
import weft

app = weft.App()


@app.workflow
async def order(sku: str, n: int = 1) -> str:
    return f"{n} x {sku}"


@app.step
def take(sku: str, n: int) -> str:
    return f"{n} x {sku}"


@app.step(gives="text")
def write(sku: str, n: int) -> str:
    return f"{n} x {sku}"


app.goal("letter", write)
app.graph({
    "name": "path",
    "input": {"properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}},
    "nodes": {"take": {"step": "take", "with": {"sku": "${input.sku}", "n": "${input.n}"}}},
})


@app.workflow
async def wait() -> None: ...
"""


@pytest.mark.parametrize(
    "start", [["order"], ["path"], ["letter"], ["--goal", "write"]], ids=["code", "graph", "goal", "goals"]
)
def test_without_an_app_the_host_reads_arguments_by_their_types(weft: Weft, folder: Path, start: list[str]) -> None:
    (folder / "styles.py").write_text(STYLES)

    assert weft("start", *start, "sku=007", "n=3", "--id", "s-1").code == 0
    assert weft("show", "s-1", "--json").json()["input"] == {"sku": "007", "n": "3"}  # type: ignore[index]
    assert weft("start", *start, "sku=007", "n=3", "--id", "s-1").code == 0
    for _ in range(50):  # each is a host, if only for a moment
        assert weft("run", "styles.py", "wait").code == 0
        shown: Any = weft("show", "s-1", "--json").json()
        if shown["status"] == "completed":
            break
    assert shown["status"] == "completed", shown
    assert shown["input"] == {"sku": "007", "n": 3}
    assert "3 x 007" in str(shown)
    assert weft("start", *start, "sku=007", "n=3", "--id", "s-1").code == 0
    refused = weft("start", *start, "sku=7", "n=3", "--id", "s-1")
    assert (refused.code, 'sku: "007" there, "7" here' in refused.err) == (1, True), refused


def test_a_start_with_a_priority_is_shown_with_it(weft: Weft) -> None:
    assert weft("start", "hello", "name=a", "--id", "urgent", "--priority", "7").code == 0
    weft("start", "hello", "name=a", "--id", "plain")

    assert "priority 7" in weft("show", "urgent").out
    assert "pending, priority 7" in weft("list").out
    assert "priority" not in weft("show", "plain").out
    assert [run["priority"] for run in weft("list", "--json").json()["runs"]] == [0, 7]  # type: ignore[index, call-overload]
    assert weft("start", "hello", "name=a", "--priority", "high").code == 2
