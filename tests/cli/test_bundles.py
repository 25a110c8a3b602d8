"""Export, import and replay on the command line."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft

APP = """
import weft

app = weft.App()


@app.step
def double(n: int) -> int:
    return n * 2


@app.workflow
async def order(ctx: weft.Context, n: int) -> int:
    return await double(n)
"""


def test_a_run_goes_from_one_folder_to_another(weft: Weft, folder: Path) -> None:
    (folder / "app.py").write_text(APP)
    assert weft("run", "app.py", "order", "n=4", "--id", "o-1").code == 0

    assert weft("export", "o-1", "-o", "o.zip").code == 0
    taken = weft("import", "o.zip", "--url", "sqlite:///other.db")
    assert (taken.code, taken.out.strip()) == (0, "o-1")
    listed: Any = weft("list", "--imported", "--json", "--url", "sqlite:///other.db").json()
    assert [(run["id"], run["status"]) for run in listed["runs"]] == [("o-1", "imported")]
    assert weft("list", "--json", "--url", "sqlite:///other.db").json()["runs"] == []  # type: ignore[index,call-overload]
    assert "imported, was completed" in weft("list", "--imported", "--url", "sqlite:///other.db").out
    failed: Any = weft("list", "--imported", "--status", "failed", "--json", "--url", "sqlite:///other.db").json()
    assert failed["runs"] == []
    assert "imported" in weft("show", "o-1", "--url", "sqlite:///other.db").out
    refused = weft("cancel", "o-1", "--url", "sqlite:///other.db")
    assert (refused.code, "was imported" in refused.err) == (1, True)

    assert weft("export", "o-1", "--json", "-o", "o.events.json").code == 0
    for file in ("o.zip", "o.events.json", "o-1"):
        assert weft("replay", file, "--app", "app.py").code == 0, file
    (folder / "app.py").write_text(APP.replace("await double(n)", "await double(n + 1)"))
    for file in ("o.zip", "o.events.json", "o-1"):
        diverged = weft("replay", file, "--app", "app.py")
        assert (diverged.code, "double" in diverged.out) == (1, True), (file, diverged.err)


@pytest.mark.parametrize("options", [[], ["--json"], ["--move"]], ids=["bundle", "json", "move"])
def test_a_file_that_exists_is_not_written_over(asked: Weft, folder: Path, options: list[str]) -> None:
    (folder / "p.zip").write_text("mine")
    said = asked("export", "p-1", "-o", "p.zip", *options)
    assert (said.code, "p.zip exists already, and was not changed." in said.err) == (1, True)
    assert "weft help backup.file_exists" in said.err
    assert [file.name for file in folder.glob("p.zip*")] == ["p.zip"]
    assert (folder / "p.zip").read_text() == "mine"
    assert asked("export", "p-1", "-o", "other.zip").code == 0  # also after --move was refused


def test_a_run_that_was_moved_asks_nobody_here_and_says_where_it_went(asked: Weft, folder: Path) -> None:
    assert asked("export", "p-1", "--move", "-o", "p.zip", "--to", "other.db").code == 0
    (folder / "patch.yaml").write_text("to: '2'")

    assert asked("inbox", "--json").json()["questions"] == []
    assert asked("explain", "p-1", "--json").json()["waiting"] == []
    assert "moved to other.db" in asked("show", "p-1").out
    for words in (["patch.yaml"], ["patch.yaml", "--dry-run"], ["--undo"]):
        refused = asked("patch", "p-1", *words)
        assert (refused.code, "p-1 was moved to other.db; the patch was not delivered" in refused.err) == (1, True)


def test_a_run_is_moved_from_one_store_to_another(waiting: Weft, folder: Path) -> None:
    moved = waiting("export", "p-1", "--move", "-o", "p.zip", "--to", "other.db", "--reason", "nearer")
    assert (moved.code, "weft import p.zip --adopt" in moved.err) == (0, True), moved.err
    assert not Path("p.zip.part").exists()
    refused = waiting("send", "p-1", "quote", "1")
    assert (refused.code, "moved to other.db" in refused.err) == (1, True)
    assert "moved" in waiting("show", "p-1").out
    taken = waiting("import", "p.zip", "--adopt", "--url", "sqlite:///other.db")
    assert (taken.code, taken.out.strip(), "1 run adopted" in taken.err) == (0, "p-1", True)
    assert waiting("send", "p-1", "quote", "1", "--url", "sqlite:///other.db").code == 0
    twice: Any = waiting("import", "p.zip", "--adopt", "--json", "--url", "sqlite:///other.db").json()
    assert [run["created"] for run in twice["runs"]] == [False]
    home = waiting("import", "p.zip", "--adopt")
    assert (home.code, "moved away from here" in home.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "nobody"], "There is no store"),
        (["import", "nothing.zip"], "cannot be read"),
        (["patch", "x", "nothing.yaml"], "cannot be read"),
        (["import", "app.py"], "cannot be imported"),
        (["export", "x", "--json", "--tree"], "without children"),
        (["export", "x", "--move", "--tree"], "the whole tree"),
        (["replay", "o.zip"], "--app"),
    ],
)
def test_what_cannot_be(weft: Weft, folder: Path, words: list[str], said: str) -> None:
    (folder / "app.py").write_text(APP)
    refused = weft(*words)
    assert refused.code != 0
    assert "run.not_found" not in refused.err or words[0] == "export"
    assert said in refused.err
