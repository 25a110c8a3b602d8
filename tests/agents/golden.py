"""Record the golden history of the loop: `python -m tests.agents.golden` writes it for a new version of the loop.

A history that was recorded once never changes: runs of that time go on with the code of today.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.agents.test_agent_crashes import app, lead, script
from weft.runtime.bundles.service import BundleService
from weft.testing import World, calls

FOLDER = Path(__file__).parents[1] / "golden/agents"
VERSION = "1"


def record() -> bytes:
    """Run an agent with parallel tools, a child agent, an approval and a compaction, and return it as a bundle."""
    world = World(app)
    world.fake_model("fast", *[script] * 20)
    world.fake_model("small", calls(read={"page": 9}), "helped")
    run = world.start(lead("o-1 was cold"), id="golden")
    run.answer("turn/~2/tools/1/approve", by="fin")
    assert run.result().output == "Done."
    with patch("asyncio.to_thread", _here):  # a simulated world has no threads
        return world.perform(lambda: BundleService(app.service).export(run.id, tree=True))


async def _here(work: Callable[..., bytes], *arguments: Any) -> bytes:
    return work(*arguments)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"loop-{VERSION}.zip").write_bytes(record())
