"""What is built: the wheel has the web UI, compressed and small, and the source distribution what it is built from."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from weft.server.web.files import INDEX, STATIC, STORED_PLAIN, read_files

ROOT = Path(__file__).parents[2]
FOLDER = "weft/server/web/static/"
BYTES_MAX = 1_000_000
BUILT = pytest.mark.skipif(not (STATIC / INDEX).is_file(), reason="the web UI is not built: make ui")


@BUILT
def test_only_compressed_forms_are_stored_and_all_of_them_are_small() -> None:
    stored = [file for file in STATIC.rglob("*") if file.is_file()]

    suffixes = {file.suffix for file in stored if file.name != INDEX}
    assert suffixes <= {".br", ".gz", *STORED_PLAIN}
    assert sum(file.stat().st_size for file in stored) <= BYTES_MAX


@BUILT
def test_the_page_loads_only_files_that_are_there() -> None:
    web = read_files(STATIC)

    assert web.index is not None
    assert '<base href="__BASE__"' in web.index
    named = [part.split('"')[0] for part in web.index.split('="./')[1:]]
    assert len(named) >= 2
    assert [name for name in named if name not in web.files] == []


def build(target: str, folder: Path, **variables: str) -> Path:
    """Build a distribution of this clone."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.mark.proof
def test_the_web_ui_adds_at_most_a_megabyte_to_the_wheel(tmp_path: Path) -> None:
    with_ui = build("wheel", tmp_path / "with", WEFT_SKIP_UI="")
    without = build("wheel", tmp_path / "without", WEFT_SKIP_UI="1")

    names = zipfile.ZipFile(with_ui).namelist()
    inside = [name.removeprefix(FOLDER) for name in names if name.startswith(FOLDER)]
    assert INDEX in inside
    assert {Path(name).suffix for name in inside if name != INDEX} <= {".br", ".gz", *STORED_PLAIN}
    assert with_ui.stat().st_size - without.stat().st_size <= BYTES_MAX
    assert not [name for name in zipfile.ZipFile(without).namelist() if name.startswith(FOLDER)]


@pytest.mark.proof
def test_the_source_distribution_has_what_the_web_ui_is_built_from(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as made:
        names = {name.partition("/")[2] for name in made.getnames()}

    assert {"hatch_build.py", "ui/build.py", "ui/package.json", "ui/package-lock.json", "ui/index.html"} <= names
    assert not [name for name in names if "node_modules" in name or "web/static" in name]
