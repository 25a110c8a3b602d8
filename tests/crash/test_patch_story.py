"""A graph with a bug and hundreds of runs inside it: check --live finds them, and one reviewed patch mends them.

The process that patches them is killed with kill -9 in the middle.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crash.patch_story import ODD, ids
from tests.crash.scenario import Ledger

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
RUNS = 400


def phase(folder: Path, name: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.patch_story", str(folder), str(RUNS), name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_a_graph_with_a_bug_is_mended_under_its_runs(tmp_path: Path) -> None:
    assert phase(tmp_path, "begin")[0] == 0

    code, found = phase(tmp_path, "patch")

    assert code == -signal.SIGKILL
    assert found["groups"] == [["not hosted", "price", RUNS]]
    assert found["would_apply"] == RUNS - ODD
    assert found["refused"] == [["patch.node_removed", ODD]]
    code, ended = phase(tmp_path, "end")
    assert code == 0
    assert (ended["applied"], ended["refused"]) == (RUNS - ODD, [["patch.node_removed", ODD]])
    assert ended["approved_by"] == ["bob"]
    assert ended["undone"] == [True, True]
    assert ended["outputs"] == [90]
    assert ended["revs"] == [1] * (RUNS - 1) + [3], "no run was patched twice, and one was undone and redone"
    performed = Counter(line[2] for line in Ledger(tmp_path / "ledger.txt").lines() if line[0] == "effect")
    assert performed == Counter(ids(RUNS)), "every run was priced once"
