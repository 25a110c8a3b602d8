"""Sessions that the server cuts cost a moment and never a run."""

import asyncio
import logging

import pytest

from tests.chaos.cutting import cut_under_load
from tests.servers import Cluster, own_cluster  # noqa: F401  # a fixture


@pytest.mark.parametrize(
    ("cuts", "at_once"),
    [pytest.param(3, 10, id="sample"), pytest.param(40, 30, id="half a minute", marks=pytest.mark.proof)],
)
def test_every_run_completes_while_sessions_are_cut(
    own_cluster: Cluster,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
    cuts: int,
    at_once: int,
) -> None:
    with caplog.at_level(logging.ERROR, "weft"):
        started, completed = asyncio.run(cut_under_load(own_cluster, cuts, at_once))
    assert completed == started
    assert started > 0
    assert [record.getMessage() for record in caplog.records] == []
