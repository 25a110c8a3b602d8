"""A run whose version no host offers any more: every view says so, and what to do."""

import contextlib
import sqlite3
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Weft, hosting
from tests.cli.test_hosted import watched_until

WAITS = "version 1 of patient, which no host offers"
GRAPH = """
from pathlib import Path

import weft

app = weft.App()
if Path("letter.yaml").exists():
    app.graph("letter.yaml")
"""
LETTER = """
weft: graph/1
name: letter
nodes:
  wait: {receive: {name: go}}
"""


@pytest.mark.proof
@pytest.mark.parametrize("run", ["p-1", "pending"])
def test_a_version_that_no_host_offers(waiting: Weft, folder: Path, executable: str, run: str) -> None:
    app = folder / "app.py"
    newer = app.read_text().replace("@app.workflow\nasync def patient", '@app.workflow(version="2")\nasync def patient')
    app.write_text(newer)
    waiting("start", "patient", "--id", "pending")
    with contextlib.closing(sqlite3.connect(folder / "weft.db")) as plain, plain:
        # As a parent would have started it: with the version that it knew.
        plain.execute("UPDATE runs SET version = '1' WHERE id = 'pending'")
    with hosting(folder):
        for words in (["show", run], ["explain", run], ["list"]):
            said = waiting(*words)
            assert said.code == 0
            assert WAITS in " ".join(said.out.split()), words
        for words in (["show", run], ["explain", run]):
            assert '@app.workflow(version="1")' in " ".join(waiting(*words).out.split())
        assert f"it waits for {WAITS}" in watched_until(folder, executable, run, WAITS)
        waiting("start", "patient", "--id", "new")
        assert WAITS not in waiting("explain", "new").out


def test_a_graph_whose_definition_is_gone(weft: Weft, folder: Path, executable: str) -> None:
    (folder / "app.py").write_text(GRAPH)
    (folder / "letter.yaml").write_text(LETTER)
    weft("start", "letter", "--id", "g-1")
    with hosting(folder):
        weft("send", "g-1", "other", "1")
        while "message" not in weft("explain", "g-1").out:
            time.sleep(0.02)
    (folder / "letter.yaml").unlink()
    with contextlib.closing(sqlite3.connect(folder / "weft.db")) as plain, plain:
        (version,) = plain.execute("SELECT version FROM runs WHERE id = 'g-1'").fetchone()
        plain.execute("DELETE FROM definitions")
    waits = f"version {version} of letter, which is not in the store"

    for words in (["show", "g-1"], ["explain", "g-1"], ["list"], ["watch", "g-1"]):
        said = weft(*words)
        assert waits in " ".join(said.out.split()), words
        assert said.code == (words[0] == "watch")
    assert "weft cancel g-1 --force" in weft("explain", "g-1").out
    assert weft("show", "g-1", "--json").code == 0
    assert weft("cancel", "g-1").code == 1

    assert weft("cancel", "g-1", "--force").code == 0
    assert "cancelled" in weft("show", "g-1").out
