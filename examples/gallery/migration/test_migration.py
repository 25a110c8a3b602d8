import sqlite3
from pathlib import Path

import pytest
from migration import app, fill_old, migrate, move

from weft.testing import World


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fill_old()
    return tmp_path


def moved(folder: Path) -> tuple[int, int]:
    with sqlite3.connect(folder / "new.db") as new:
        return tuple(new.execute("SELECT count(*), sum(cents) FROM customer").fetchone())


def test_all_records_arrive_and_those_without_an_amount_are_named(folder: Path) -> None:
    world = World(app)
    report = world.run(migrate())
    assert report.moved == 9_990
    assert report.refused == list(range(1_000, 10_001, 1_000))
    assert moved(folder) == (9_990, sum(n for n in range(1, 10_001) if n % 1_000))
    assert len(world.calls(move)) == 21


def test_it_goes_on_where_it_was_when_the_process_died(folder: Path) -> None:
    world = World(app)
    world.crash(at="move", when="after")
    assert world.run(migrate()).moved == 9_990
    assert moved(folder)[0] == 9_990
    assert len(world.calls(move)) == 21
