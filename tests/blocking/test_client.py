"""A client without an event loop: ``weft.Client(url).sync``."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import weft
from tests.blocking.shop import make_shop
from tests.server.kit import serving
from tests.server.shop import shop


def test_a_client_starts_runs_that_another_process_hosts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    with make_shop(url).sync, weft.Client(url).sync as client:
        handle = client.start("order", {"item": "soup"}, id="o-1")
        assert handle.result() == "box of soup"
        assert client.get("o-1").status() == "completed"
        assert [found.id for found in client.list(workflow="order")] == ["o-1"]
        greeted = client.start("greeted")
        greeted.send("name", "ann")
        assert greeted.result(timeout="1m") == "hello ann"


def test_many_threads_share_one_client(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    with make_shop(url).sync, weft.Client(url).sync as client, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: client.start("order", {"item": str(n)}).result(), range(16)))
    assert found == [f"box of {n}" for n in range(16)]


def test_the_first_call_opens_it_and_close_ends_its_thread(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    client = weft.Client(url).sync
    handle = client.start("order", {"item": "soup"})
    assert "weft-client" in {thread.name for thread in threading.enumerate()}
    client.close()
    assert "weft-client" not in {thread.name for thread in threading.enumerate()}
    assert handle.status() == "pending"
    client.close()


def test_a_client_keeps_to_its_own_connection(tmp_path: Path) -> None:
    """``client.sync`` and ``async with client`` may be used at the same time."""
    url = f"sqlite:///{tmp_path}/weft.db"
    client = weft.Client(url)
    assert client.sync is client.sync
    with client.sync:
        client.sync.start("order", {"item": "soup"})
        with pytest.raises(weft.NotRunning):
            _ = client.service


def test_a_client_of_a_server_blocks_too() -> None:
    with serving(shop()) as server, weft.Client(server.url).sync as client:
        handle = client.start("hello", {"name": "ann"})
        assert handle.result(timeout=120) == "hello ann!"
        assert handle.id in {found.id for found in client.list(workflow="hello")}
        assert next(handle.events()).kind == "run_started"
        assert handle.fork().result(timeout=120) == "hello ann!"
        with pytest.raises(weft.NotFound):
            client.get("missing").status()


def test_a_key_for_a_store_is_refused_at_once() -> None:
    with pytest.raises(weft.UsageError, match="only for a server"):
        weft.Client("sqlite:///weft.db", key="secret")
