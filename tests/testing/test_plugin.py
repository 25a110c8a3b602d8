"""The pytest plugin, as a user's project meets it; that the tests of the examples pass with it is seen in `e2e`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

APP = """
import weft

app = weft.App()


@app.step
async def greet(name: str) -> str:
    return "hello " + name


@app.workflow
async def hello(name: str) -> str:
    return await greet(name)
"""


def project(folder: Path, test: str, ini: str = "") -> subprocess.CompletedProcess[str]:
    """Only this plugin is loaded: those that others have installed take seconds, and the examples are run with all."""
    (folder / "greeter.py").write_text(APP, "utf-8")
    (folder / "test_greeter.py").write_text(test, "utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\n{ini}", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "weft.testing.plugin"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "WEFT"))}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [*command, "--rootdir", str(folder)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_ini_file_names_the_app(tmp_path: Path) -> None:
    done = project(
        tmp_path,
        "from greeter import hello\n\n"
        "def test_it(weft_world):\n    assert weft_world.run(hello('you')) == 'hello you'\n",
        "weft_app = greeter:app\n",
    )
    assert "1 passed" in done.stdout, done.stdout


def test_without_an_app_it_says_what_to_do(tmp_path: Path) -> None:
    done = project(tmp_path, "def test_it(weft_world):\n    pass\n")
    assert "weft_world needs an app" in done.stdout


@pytest.mark.proof
def test_a_planned_crash_that_never_came_fails_the_test(tmp_path: Path) -> None:
    done = project(
        tmp_path,
        "from greeter import hello\n\ndef test_it(weft_world):\n    weft_world.crash(at='gret')\n"
        "    weft_world.run(hello('you'))\n",
        "weft_app = greeter:app\n",
    )
    assert "did not happen: after gret" in done.stdout


def test_who_does_not_use_it_does_not_pay_for_it(tmp_path: Path) -> None:
    code = (
        "import sys, weft.testing.plugin; "
        "loaded = [name for name in sys.modules if name.startswith('weft.') and 'testing' not in name]; "
        "sys.exit(', '.join(loaded) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
