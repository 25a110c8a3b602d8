"""Compiles Weft and its tests once on a fresh clone, although every process of a parallel run collects all of them.

Each process compiles its share before it collects, and finds what the others have compiled.
"""

from __future__ import annotations

import importlib.util
import py_compile
import sys
from pathlib import Path

import pytest
from _pytest.assertion import AssertionState, rewrite
from _pytest.assertion.rewrite import assertstate_key

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src"


def compile_share(config: pytest.Config, share: int, shares: int) -> None:
    """Compile every n-th file that is not compiled yet, in the order in which they are collected."""
    if sys.dont_write_bytecode:
        return
    state = config.stash[assertstate_key]
    for file in [*sorted(SOURCES.rglob("*.py")), *sorted(TESTS.rglob("*.py"))][share::shares]:
        if TESTS in file.parents and (file.name.startswith("test_") or file.name == "conftest.py"):
            _compile_test(config, state, file)
        elif not Path(importlib.util.cache_from_source(str(file))).exists():
            py_compile.compile(str(file))


def _compile_test(config: pytest.Config, state: AssertionState, file: Path) -> None:
    """Compile a file with the asserts of pytest, as its import hook does. It has no public function for that."""
    pyc = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
    if not pyc.exists() and rewrite.try_makedirs(pyc.parent):
        source_hash, code = rewrite._rewrite_test(file, config)
        rewrite._write_pyc(state, code, source_hash, pyc)
