"""The pytest plugin, as a user's project meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def pytest_in(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "WEFT"))}
    environment |= variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def project(folder: Path, test: str, ini: str = "") -> subprocess.CompletedProcess[str]:
    """Only this plugin is loaded: the ones that others have installed take seconds, and the examples load them all."""
    (folder / "greeter.py").write_text(APP, "utf-8")
    (folder / "test_greeter.py").write_text(test, "utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = .\n{ini}", "utf-8")
    return pytest_in(folder, "-p", "weft.testing.plugin", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")


def test_the_programs_of_the_surface_pass_as_they_stand() -> None:
    """``--rootdir`` keeps the settings of this project away: users have their own."""
    done = pytest_in(ROOT / "examples", "-c", os.devnull, "test_p13_order.py")
    assert "3 passed" in done.stdout, done.stdout + done.stderr


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


def test_a_planned_crash_that_never_came_fails_the_test(tmp_path: Path) -> None:
    done = project(
        tmp_path,
        "from greeter import hello\n\ndef test_it(weft_world):\n    weft_world.crash(at='gret')\n"
        "    weft_world.run(hello('you'))\n",
        "weft_app = greeter:app\n",
    )
    assert "never came: after gret" in done.stdout


def test_who_does_not_use_it_does_not_pay_for_it(tmp_path: Path) -> None:
    code = (
        "import sys, weft.testing.plugin; "
        "loaded = [name for name in sys.modules if name.startswith('weft.') and 'testing' not in name]; "
        "sys.exit(', '.join(loaded) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
