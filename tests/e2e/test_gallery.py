"""Every application of the gallery passes its own tests, is typed, and is on the page that lists them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
APPLICATIONS = sorted(path.name for path in GALLERY.iterdir() if (path / "README.md").is_file())
OTHERS = ("cacheprovider", "schemathesis", "hypothesispytest", "xdist", "randomly", "timeout", "anyio")
SCREEN_LINES = 25


def test_there_are_twelve_and_the_page_lists_all() -> None:
    listed = re.findall(r"\]\((\w+)/README\.md\)", (GALLERY / "README.md").read_text(encoding="utf-8"))

    assert sorted(listed) == APPLICATIONS
    assert len(APPLICATIONS) == 12


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_has_a_program_a_test_and_a_page_of_one_screen(name: str) -> None:
    assert (GALLERY / name / f"{name}.py").is_file()
    assert (GALLERY / name / f"test_{name}.py").is_file()
    assert len((GALLERY / name / "README.md").read_text(encoding="utf-8").splitlines()) <= SCREEN_LINES


@pytest.mark.proof
def test_the_tests_of_all_applications_pass_as_they_stand(tmp_path: Path) -> None:
    shutil.copytree(GALLERY, tmp_path / "gallery")
    # The plugin of Weft is found by itself; those that others have installed take seconds.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", *(f"-pno:{name}" for name in OTHERS)]
    ran = subprocess.run(
        command, cwd=tmp_path / "gallery", env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert int(re.findall(r"(\d+) passed", ran.stdout)[0]) >= 2 * len(APPLICATIONS)
