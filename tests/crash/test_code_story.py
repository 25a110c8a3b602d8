"""A workflow changes under many open runs: check --live says before the deploy which ones diverge, and each ends right.

The process that moves them to the new version is killed with kill -9 in the middle. A ledger outside the store shows
that nothing irreversible was done twice.
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

from tests.crash.code_story import GIFTS, STAYING, ids
from tests.crash.scenario import Ledger

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
RUNS = 100


def phase(folder: Path, name: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.code_story", str(folder), str(RUNS), name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_a_workflow_changes_under_its_runs_and_each_comes_to_its_end(tmp_path: Path) -> None:
    assert phase(tmp_path, "begin")[0] == 0

    code, found = phase(tmp_path, "hasty")

    assert code == 0
    assert found["groups"] == [["diverges", "wrap", GIFTS], ["fits", "", RUNS - GIFTS]]
    assert found["saved"] == ["order-1-diverges-wrap.zip", "order-1-fits.zip"]
    code, found = phase(tmp_path, "move")
    assert code == -signal.SIGKILL
    refused = [["patch.diverges", "held", 1], ["patch.diverges", "running", GIFTS - 1]]
    assert found["groups"] == [["diverges", "wrap", GIFTS], ["fits", "", RUNS - GIFTS]]
    assert (found["would_apply"], found["refused"]) == (RUNS - GIFTS, refused)
    code, ended = phase(tmp_path, "end")
    assert code == 0
    assert 0 < ended["moved_before"] < RUNS - GIFTS, "it was killed in the middle"
    assert (ended["applied"], ended["refused"]) == (RUNS - GIFTS, refused)
    assert ended["notes"] == ["The run is held. It goes on with this version."]
    assert ended["revs"] == [1], "no run was patched twice"
    assert ended["left"] == []
    old = [f"ship {run}" for run in ids(RUNS)[1 : 1 + STAYING]]
    new = [f"courier {run}" for run in ids(RUNS) if f"ship {run}" not in old]
    assert ended["results"] == sorted([*old, *new])
    performed = Counter(tuple(line[1:]) for line in Ledger(tmp_path / "ledger.txt").lines())
    assert set(performed.values()) == {1}, "nothing irreversible was done twice"
    wrapped = [("wrap", run) for run in ids(RUNS)[:GIFTS]]
    sent = [tuple(result.split(" ")) for result in ended["results"]]
    assert set(performed) == {*(("charge", run) for run in ids(RUNS)), *wrapped, *sent}
