"""The goal programs of `examples/` run as they stand, and one tree of all three styles survives and stops as one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import RunCancelled
from weft.testing import World, crash_everywhere

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(name: str, folder: Path) -> str:
    """What a program prints when a user starts it."""
    command = [sys.executable, str(EXAMPLES / name)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_p10_shows_its_plan_and_reaches_its_goal(tmp_path: Path) -> None:
    out = printed("p10_goal.py", tmp_path)

    assert out.splitlines()[0].startswith("send_invoice")
    assert "load_customer -> country, email" in out
    assert out.splitlines()[-1] == "https://…"


def tree() -> dict[str, Any]:
    """The three styles of p11, without its walk being a real minute."""
    namespace: dict[str, Any] = {"__name__": "p11"}
    program = EXAMPLES / "p11_three_styles.py"
    exec(compile(program.read_text(), str(program), "exec"), namespace)
    return namespace


def test_p11_runs_code_in_a_graph_in_a_goal_in_code() -> None:
    p11 = tree()
    world = World(p11["app"])

    assert world.run(p11["fulfil"]("o-1")) == "sent picked o-1"


def test_p11_ends_right_wherever_it_is_killed() -> None:
    p11 = tree()

    def scenario(world: World) -> None:
        assert world.run(p11["fulfil"]("o-1"), id="fulfil-o-1") == "sent picked o-1"
        assert len({call.key for call in world.calls("announce")}) == 1

    assert crash_everywhere(p11["app"], scenario) >= 20


def test_one_cancel_stops_the_whole_tree_wherever_it_is_killed() -> None:
    p11 = tree()

    def scenario(world: World) -> None:
        run = world.start(p11["fulfil"]("o-1"), id="fulfil-o-1")
        world.advance("10s")
        run.cancel("changed my mind")
        with pytest.raises(RunCancelled):
            run.result()
        world.settle()
        assert {row.status for row in world._store.content.runs.values()} == {"cancelled"}
        assert not world.calls("announce")
        world.advance("2m")
        assert not world.calls("announce"), "nothing of it goes on later"

    assert crash_everywhere(p11["app"], scenario) >= 20


def test_one_cancel_stops_the_whole_tree() -> None:
    p11 = tree()
    world = World(p11["app"])
    run = world.start(p11["fulfil"]("o-1"), id="fulfil-o-1")
    world.advance("10s")
    rows = {row.id: row for row in world._store.content.runs.values()}
    assert len(rows) == 4, "code, goal, graph, code"
    run.cancel("changed my mind")

    with pytest.raises(RunCancelled):
        run.result()
    world.settle()
    assert {row.status for row in world._store.content.runs.values()} == {"cancelled"}
    assert isinstance(p11["app"], weft.App)
