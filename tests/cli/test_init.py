"""``weft init`` makes a project that runs as it stands."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Weft


@pytest.mark.proof
def test_a_new_project_runs_and_its_tests_pass(weft: Weft, folder: Path, executable: str) -> None:
    said = weft("init", "shop")
    assert said.code == 0, said.err
    assert "cd shop && weft run order order_id=o-1" in said.err
    shop = folder / "shop"
    assert sorted(one.name for one in shop.iterdir()) == sorted(
        [".dockerignore", ".gitignore", "Dockerfile", "README.md", "app.py", "pyproject.toml", "test_app.py"]
    )
    ran = subprocess.run(
        [executable, "run", "order", "order_id=o-1"], cwd=shop, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "receipt-o-1-4200\n"
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=shop,
        # The plugins of everything that is installed for these tests take seconds.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "weft.testing.plugin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout


@pytest.mark.proof
def test_the_app_of_a_new_project_satisfies_the_type_checker(weft: Weft, folder: Path) -> None:
    weft("init", "shop")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "app.py"],
        cwd=folder / "shop",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_names_of_a_project_fit_every_tool(weft: Weft, folder: Path) -> None:
    assert weft("init", "My Shop (2)").code == 0
    assert 'name = "my-shop-2"' in (folder / "My Shop (2)" / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ['"""', "a\\", "x\ny", "$(touch owned)"])
def test_a_project_with_any_name_can_be_read(weft: Weft, folder: Path, name: str) -> None:
    said = weft("init", name)
    assert said.code == 0
    ast.parse((folder / name / "app.py").read_text())
    if "$" in name:
        assert "cd '$(touch owned)' && " in said.err


def test_an_empty_directory_and_this_one_will_do(weft: Weft, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "empty" / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder / "empty")
    said = weft("init")
    assert said.code == 0
    assert "Run it: weft run order order_id=o-1" in said.err


def test_a_directory_with_files_is_left_alone(weft: Weft, folder: Path) -> None:
    before = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    said = weft("init")
    assert said.code == 1
    assert "is not empty: it has app.py" in said.err
    assert {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()} == before


def test_a_file_is_no_directory(weft: Weft, folder: Path) -> None:
    assert weft("init", "app.py").code == 2


def test_a_place_that_cannot_be_written_is_said(weft: Weft) -> None:
    said = weft("init", "/proc/shop")
    assert said.code == 2
    assert "cannot be written" in said.err


def test_a_name_that_no_file_system_takes(weft: Weft) -> None:
    said = weft("init", "x" * 300)
    assert said.code == 2
    assert "cannot be written: File name too long" in said.err
