"""Programs without an event loop, on a store that many machines share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import weft
from tests import servers
from tests.blocking.shop import make_shop


def test_an_engine_and_a_client_in_threads_of_one_process() -> None:
    url = servers.database("blocking")
    with make_shop(url).sync as app, weft.Client(url).sync as client, ThreadPoolExecutor(8) as pool:
        started = [pool.submit(app.start, "order", {"item": str(n)}) for n in range(8)]
        asked = [pool.submit(client.start, "order", {"item": str(n)}) for n in range(8)]
        results = [each.result().result(timeout="2m") for each in (*started, *asked)]
    assert results == [f"box of {n}" for n in range(8)] * 2
    with make_shop(url).sync as again:
        assert {handle.status() for handle in again.list(workflow="order")} == {"completed"}
