"""Tests in several processes: each runs once, what goes wrong is told, and a process that dies fails its test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BROKEN = """
import os, signal, warnings, pytest

@pytest.fixture
def gone():
    yield
    raise RuntimeError("the teardown failed")

def test_fails(): assert 1 + 1 == 3
def test_is_skipped(): pytest.skip("not here")
def test_is_torn_down(gone): pass
def test_warns(): warnings.warn("beware", DeprecationWarning)
"""
DYING = "import os, signal\n\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
SHARED = """
import pytest

@pytest.fixture(scope="session")
def shared():
    yield
    with open("closed", "a") as file:
        file.write("x")
"""
GOOD = """
import os
import pytest

@pytest.mark.parametrize("n", range(3))
def test_notes(n, shared, tmp_path, capfd):
    os.write(1, b"said")
    assert capfd.readouterr().out == "said"
    with open("notes", "a") as file:
        file.write(f"{__name__} {n} {os.getpid()} {tmp_path.parent}\\n")
"""


def _pytest(folder: Path, **files: str) -> tuple[int, str]:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(SHARED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "tests.parallel", "-p", "no:cacheprovider", "-ra"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_test_runs_once_and_all_that_went_wrong_is_told(tmp_path: Path) -> None:
    status, said = _pytest(tmp_path, broken=BROKEN, one=GOOD, two=GOOD)

    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    assert status == 1
    assert sorted(note[:2] for note in notes) == [[f"test_{at}", str(n)] for at in ("one", "two") for n in range(3)]
    assert (
        len({note[2] for note in notes}) == len({note[3] for note in notes}) == len((tmp_path / "closed").read_text())
    )
    assert "assert (1 + 1) == 3" in said
    assert "the teardown failed" in said
    assert "DeprecationWarning: beware" in said
    assert re.search(r"1 failed, 8 passed, 1 skipped, 1 warning, 1 error in", said)


def test_a_process_that_dies_fails_its_test_and_names_those_that_were_not_run(tmp_path: Path) -> None:
    status, said = _pytest(tmp_path, dying=f"{DYING}\ndef test_behind_it(): pass\n", other=GOOD)

    assert status == 1
    assert "The process of this test ended by signal 9 while it ran." in said
    assert "not run, as a process died: test_dying.py::test_behind_it" in said
    assert "1 failed, 3 passed in" in said


def test_a_process_that_is_interrupted_tells_where(tmp_path: Path) -> None:
    interrupted = "def test_is_interrupted(): raise KeyboardInterrupt\n"

    status, said = _pytest(tmp_path, interrupted=interrupted, other=GOOD)

    assert status == 1
    assert "The process of this test ended with status 0 while it ran." in said
    assert re.search(r"test_interrupted\.py.*test_is_interrupted", said)
    assert "KeyboardInterrupt" in said
