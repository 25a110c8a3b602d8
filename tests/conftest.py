"""What every test may rely on: an unchanged process, no store of the developer, the same examples on every machine."""

import gc
import itertools
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from tests import memory_folder, scale

# Only the proof has tests that this plugin makes; to load it takes every process a second.
pytest_plugins = ["tests.parallel", *scale.scaled([], ["schemathesis.pytest.plugin"])]

# Before any test asks for a temporary folder.
memory_folder.use()

# A developer's own WEFT_URL would send the tests' runs to a real database.
os.environ.pop("WEFT_URL", None)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.default_int_handler(number, frame)


# A job started in the background by a shell ignores Ctrl-C, and so would every process that a test starts. It is not
# Python's own handler: only in place of that one does asyncio.run put another, for each of ten thousand loops.
signal.signal(signal.SIGINT, _interrupt)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

# Examples derive from the test, not from a clock or a local database, so a failure here is a failure everywhere.
settings.register_profile("weft", derandomize=True, database=None, deadline=None, max_examples=scale.scaled(10, 100))
settings.load_profile("weft")

IN_THE_PROOF = ("mark.proof", "tests.scale", "import scale", "hypothesis", "schemathesis")
"""A file of tests with none of these words has nothing for the proof, except those that run once per store."""

ONLY_IN_THE_PROOF = "\npytestmark = pytest.mark.proof\n"

# What is imported and collected stays: to look through all of it for garbage, over and over, costs seconds.
gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what has nothing for the proof, or nothing for the rest: each process would do it again."""
    asked = config.option.markexpr
    if asked not in ("proof", "not proof") or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if asked == "not proof":
        return True if ONLY_IN_THE_PROOF in text else None
    if not scale.IS_PROOF or collection_path.parent.name == "contract" or any(word in text for word in IN_THE_PROOF):
        return None
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add every test with generated examples to the proof, where it has more of them."""
    if scale.IS_PROOF:
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.proof)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """From here on there is garbage, but none of it among the thousands of collected tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def unchanged_process() -> Iterator[None]:
    """Take back what a test changed in its process, so that the order of tests does not matter."""
    environment, path, folder = _environment(), list(sys.path), Path.cwd()
    newest_module, root = next(reversed(sys.modules)), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    if _environment() != environment:
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})
    sys.path[:] = path
    os.chdir(folder)
    root.handlers[:] = handlers
    root.setLevel(level)
    # New modules are the last ones; there are thousands of others.
    for name in list(itertools.takewhile(lambda each: each != newest_module, reversed(sys.modules))):
        if _is_temporary(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def _environment() -> dict[bytes, bytes]:
    """Return the environment without the name of the running test, which pytest keeps there and changes itself."""
    found: dict[bytes, bytes] = os.environ._data.copy()  # as it is kept: every test would decode all of it twice
    found.pop(b"PYTEST_CURRENT_TEST", None)
    return found


def _is_temporary(file: object) -> bool:
    """Whether a module came from a test's own folder."""
    return isinstance(file, str) and "pytest-of-" in file
