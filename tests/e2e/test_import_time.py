"""`import weft` and `weft --help` are quick: byte-compiled first, and one of three times is enough.

Processor time is measured, which is what importing consists of, and compared with that of libraries which any program
has: neither another program on the machine nor a slow machine must fail the test.
"""

import compileall
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# In times of what the libraries take, with room for a machine that is starved in between.
# Measured: `import weft` 0.3, an app 2.8 to 3.8, `weft --help` 1.1.
IMPORT_TIMES_MAX = 1
APP_TIMES_MAX = 10
HELP_TIMES_MAX = 5
TIMES = 3
# Big, and only needed once a run or a type of theirs is there.
HEAVY = {"pydantic", "pydantic_core", "typer", "click", "rich", "apsw", "asyncio", "jsonschema_rs"}


@pytest.fixture(scope="module")
def compiled() -> dict[str, str]:
    """An environment in which everything that is imported has been compiled."""
    compileall.compile_dir(ROOT / "src", quiet=1)  # what is new; the rest is compiled already
    forbidding = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "COVERAGE_PROCESS_START")
    return {name: value for name, value in os.environ.items() if name not in forbidding}


def taken_ms(environment: dict[str, str], *command: str) -> float:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (used.ru_utime + used.ru_stime) * 1000


def is_quick(environment: dict[str, str], limit_ms: float, *command: str) -> bool:
    return any(taken_ms(environment, *command) < limit_ms for _ in range(TIMES))


@pytest.fixture(scope="module")
def libraries(compiled: dict[str, str]) -> float:
    """What the libraries take that Weft cannot do without."""
    return min(taken_ms(compiled, sys.executable, "-c", "import asyncio, inspect, msgspec") for _ in range(TIMES))


def test_importing_weft_is_quick(compiled: dict[str, str], libraries: float) -> None:
    assert is_quick(compiled, libraries * IMPORT_TIMES_MAX, sys.executable, "-c", "import weft")


def test_making_an_app_is_quick(compiled: dict[str, str], libraries: float) -> None:
    """What is loaded at first use must not make the first use slow."""
    code = "import weft; weft.App(); weft.Context; weft.task"
    assert is_quick(compiled, libraries * APP_TIMES_MAX, sys.executable, "-c", code)


def test_help_is_quick(compiled: dict[str, str], libraries: float) -> None:
    assert is_quick(compiled, libraries * HELP_TIMES_MAX, str(Path(sys.executable).with_name("weft")), "--help")


def test_import_weft_brings_nothing_heavy(compiled: dict[str, str]) -> None:
    code = "import sys, weft; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], env=compiled, check=True, capture_output=True, text=True)
    assert not HEAVY & {name.split(".")[0] for name in loaded.stdout.split()}


def test_an_app_does_not_bring_pydantic(compiled: dict[str, str]) -> None:
    code = "import sys, weft; weft.App(); print('pydantic' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], env=compiled, check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "False"
