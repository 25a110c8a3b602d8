"""A run that cannot be read, at the terminal."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from tests.damage import KINDS, damage


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_cannot_be_read(waiting: Weft, folder: Path, kind: str) -> None:
    damage(folder / "weft.db", "p-1", kind)

    for words in (
        ["send", "p-1", "quote", "1"],
        ["cancel", "p-1"],
        ["pause", "p-1"],
        ["resume", "p-1"],
        ["retry", "p-1"],
        ["decide", "p-1:Go", "approve"],
    ):
        said = waiting(*words)
        assert said.code == 1, words
        assert "p-1 cannot be read" in said.err
        assert "weft cancel p-1 --force" in said.err
    for words in (["show", "p-1"], ["explain", "p-1"]):
        said = waiting(*words)
        assert said.code == 0, said.err
        assert "p-1 cannot be read" in said.out
    assert waiting("show", "p-1", "--json").code == 0
    assert "its log cannot be read" in waiting("list").out
    for words in ([], ["--sample", "1"]):
        checked = waiting("check", "app.py", "--live", *words, "--json")
        groups = json.loads(checked.out)["groups"]
        assert (checked.code, [one["verdict"] for one in groups]) == (1, ["unreadable"])

    ended = waiting("cancel", "p-1", "--force")
    assert ended.code == 0, ended.err
    assert "nothing that it did was undone" in ended.err
    assert "cancelled" in waiting("show", "p-1").out
