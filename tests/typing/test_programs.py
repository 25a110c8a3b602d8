"""Both checkers, at their strictest, accept the programs of the examples and report every planted mistake by its line.

The files are copied to an empty folder and checked there against the installed package, as in a user's own project.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PROGRAMS = ["p0[1-9]_*.py", "p1[01]_*.py", "test_p13_order.py", "demo.py"]
MARK = "# wrong: "

Complaints = Mapping[str, Mapping[int, str]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for pattern in PROGRAMS:
        for path in (ROOT / "examples").glob(pattern):
            shutil.copy(path, folder)
    for path in [*Path(__file__).parent.glob("right_*.py"), *Path(__file__).parent.glob("wrong_*.py")]:
        shutil.copy(path, folder)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    return folder


def by_mypy(project: Path) -> Complaints:
    # The cache is kept between runs; it holds what is known about Weft, which is most of the work.
    cache = ROOT / ".mypy_cache" / "programs"
    command = [str(BIN / "mypy"), "--strict", "--python-version=3.11", f"--python-executable={sys.executable}"]
    ran = subprocess.run(
        [*command, f"--cache-dir={cache}", "."], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    found: dict[str, dict[int, str]] = {}
    for name, line, text in re.findall(r"^([^:\n]+):(\d+): error: (.*)$", ran.stdout, re.MULTILINE):
        found.setdefault(Path(name).name, {})[int(line)] = text
    return found


def by_pyright(project: Path) -> Complaints:
    command = [str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["summary"]["filesAnalyzed"] >= len(list(project.glob("*.py")))
    found: dict[str, dict[int, str]] = {}
    for one in answer["generalDiagnostics"]:
        found.setdefault(Path(one["file"]).name, {})[one["range"]["start"]["line"] + 1] = one["message"]
    return found


@pytest.mark.proof
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_each_checker_reports_the_planted_mistakes_and_nothing_else(project: Path, check: object) -> None:
    assert callable(check)
    reported: Complaints = check(project)
    for path in sorted(project.glob("*.py")):
        lines = path.read_text().splitlines()
        planted = {number for number, line in enumerate(lines, 1) if MARK in line}
        found = reported.get(path.name, {})
        unexpected = [f"{path.name}:{number}: {found[number]}" for number in sorted(set(found) - planted)]
        missed = [f"{path.name}:{number}: {lines[number - 1].strip()}" for number in sorted(planted - set(found))]
        assert not unexpected, "reported, though nothing is wrong:\n" + "\n".join(unexpected)
        assert not missed, "wrong, but not reported:\n" + "\n".join(missed)


def test_the_checked_files_are_the_ones_that_are_meant() -> None:
    """A wrong pattern would let the test above pass with nothing looked at."""
    programs = [path.name for pattern in PROGRAMS for path in (ROOT / "examples").glob(pattern)]
    assert len(programs) == 13
    planted = sum(path.read_text().count(MARK) for path in Path(__file__).parent.glob("wrong_*.py"))
    assert planted >= 90
