"""kill -9 at every named boundary, and again during the recovery.

Nothing acknowledged is lost, nothing recorded is repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.scale import first, scaled

ROOT = Path(__file__).parents[2]
PAIRS = 20


def sweep(*words: str, url: str = "") -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.sweep", *words],
        cwd=ROOT,
        env=os.environ | {"WEFT_CRASH_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("style", "stride"),
    first(
        1,
        [
            ("code", 16),
            ("schedule", 32),
            ("hook", 16),
            ("start", 16),
            ("code", 1),
            ("goal", 1),
            ("graph", 1),
            ("schedule", 1),
            ("start", 1),
            ("bulk", 1),
            ("hook", 1),
            ("fork", 1),
            ("asked", 1),
            ("patch", 1),
            ("graph-patch", 1),
            ("set", 1),
            ("move", 1),
            ("import", 1),
            ("delete", 1),
        ],
    ),
)
def test_killed_at_a_boundary_it_goes_on_and_ends_right(tmp_path: Path, style: str, stride: int) -> None:
    """A stride of one is every boundary."""
    found = sweep(str(tmp_path), style, "single", str(stride))

    assert int(str(found["points"])) > 40 // stride
    boundaries = found["boundaries"]
    assert isinstance(boundaries, dict)
    assert {"commit.before", "commit.after", "effect.before", "step.before", "step.after"} <= set(boundaries)


@pytest.mark.proof
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("style", ["code", "graph"])
def test_killed_again_while_it_recovers_it_still_ends_right(tmp_path: Path, style: str, seed: int) -> None:
    assert sweep(str(tmp_path), style, "pairs", str(PAIRS), str(seed))["pairs"] == PAIRS


@pytest.mark.proof
@pytest.mark.parametrize(
    ("style", "stride"),
    [
        ("code", 8),
        ("goal", 6),
        ("graph", 10),
        ("schedule", 8),
        ("start", 8),
        ("bulk", 8),
        ("hook", 8),
        ("fork", 8),
        ("patch", 8),
        ("graph-patch", 8),
        ("set", 4),
        ("move", 4),
        ("asked", 8),
        ("import", 8),
        ("delete", 8),
    ],
)
def test_killed_on_postgres_it_goes_on_and_ends_right(tmp_path: Path, style: str, stride: int) -> None:
    """At every boundary only in ``make soak``, because a death shows there only when a lease is over."""
    stride = scaled(stride, stride, soak=1)

    found = sweep(str(tmp_path), style, "single", str(stride), url=servers.database(f"crash_{style.replace('-', '_')}"))

    assert int(str(found["points"])) > 8


@pytest.mark.parametrize(("style", "pairs"), first(1, [("goal", 1), ("goal", 3), ("code", 3), ("graph", 3)]))
def test_killed_again_while_it_recovers_on_postgres_it_still_ends_right(tmp_path: Path, style: str, pairs: int) -> None:
    found = sweep(str(tmp_path), style, "pairs", str(pairs), "1", url=servers.database(f"crash_{style}"))

    assert found["pairs"] == pairs


@pytest.mark.proof
@pytest.mark.parametrize(("how", "stride"), [("single", 12), ("takeover", 16)])
def test_a_killed_agent_pays_once_and_keeps_its_budget(tmp_path: Path, how: str, stride: int) -> None:
    """Once the same program goes on in SQLite, and once another host takes over in Postgres.

    ``python -m tests.crash.sweep FOLDER agent takeover 1`` kills at every boundary.
    """
    url = servers.database("crash_agent") if how == "takeover" else ""
    found = sweep(str(tmp_path), "agent", how, str(stride), url=url)

    assert int(str(found["points"])) > 3
    assert found["ends"]
