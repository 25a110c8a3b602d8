"""Recorded runs of agents: they replay with the code of today, and their results can be used again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import weft
from tests.agents.golden import FOLDER
from tests.agents.shop import Shop
from tests.agents.test_agent_crashes import app
from tests.agents.test_loop import FIND, told
from weft.runtime.bundles.recorded import read_recorded
from weft.testing import World, calls, export_events, replay


@pytest.mark.parametrize("path", sorted(FOLDER.glob("loop-*.zip")), ids=lambda path: path.stem)
def test_a_golden_history_replays(path: Path) -> None:
    runs = read_recorded(path.read_bytes())
    kinds = {msgspec.json.decode(event.body)["kind"] for run in runs for event in run.events}
    assert {"ask_answered", "child_ended", "loop_turned", "run_completed", "value_recorded"} <= kinds
    assert len(runs) == 2
    replay(app, path)


def test_recorded_results_answer_the_tools_of_another_model() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", FIND, "It was delivered.")
    run = world.start(shop.support("Where?"))
    run.result()
    recorded = export_events(run)

    other = World(shop.app)
    other.fake_tools(recorded)
    other.fake_model("fast", FIND, calls(find_order={"order_id": "o-9"}), "Hm.")

    assert other.run(shop.support("Where, please?")).output == "Hm."
    assert told(other, 1) == '{"order_id":"o-1","state":"delivered"}'
    assert "nothing is performed live" in told(other, 2)


def test_a_bundle_without_results_is_refused(tmp_path: Path) -> None:
    world = World(Shop().app)
    with pytest.raises(weft.UsageError):
        world.fake_tools(tmp_path / "nothing.json")
