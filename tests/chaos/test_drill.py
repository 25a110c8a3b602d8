"""The disaster drill, small: a host and its disk are lost, and all that was acknowledged is completed at last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.drill import SITES, Drill, Outcome, Site, play, site_in


@pytest.mark.proof  # tests/cli/test_backup.py has a sample of it
@pytest.mark.parametrize("make", SITES, ids=lambda site: site.way)
def test_the_service_comes_back_from_a_backup(make: Callable[[Path], Site], tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "ledger").mkdir()

    async def drill() -> Outcome:
        async with site_in(tmp_path / "site", make) as site:
            return await play(site, Drill(rounds=3, starts=40), tmp_path / "ledger")

    outcome = asyncio.run(drill())
    print(outcome.line())
    assert outcome.acknowledged == 120
    # What was acknowledged before the last complete backup began is in it.
    assert outcome.lost_early == []
    # And all the rest is completed when its clients have repeated their starts.
    assert outcome.unfinished == []
