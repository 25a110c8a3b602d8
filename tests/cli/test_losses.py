"""What was lost with Redis: ``weft status`` shows it until somebody acknowledges it."""

import asyncio
from typing import Any

import pytest

from tests import servers
from tests.cli.conftest import Weft
from weft.core.ids import HostId, Millis, RunId
from weft.ports.wals import Loss, LossReason
from weft.stores.postgres import PostgresStore


@pytest.fixture
def url() -> str:
    """A store in which two runs of a dead host have lost their last steps."""
    found = servers.database("losses")
    servers.empty(found)
    asyncio.run(_lose(found))
    return found


async def _lose(url: str) -> None:
    store = PostgresStore(url, durability="fast")
    await store.open()
    host = HostId("dead-host")
    wal = await store.wals.open(host, "redis")
    runs = [RunId("order-1"), RunId("order-2")]
    loss = Loss(wal=wal, host=host, at=Millis(5_000), reason=LossReason.UNREACHABLE, batches=0, runs=runs)
    await store.wals.mark_drained(wal, forced=True, loss=loss)
    await store.close()


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_status_shows_what_was_lost_until_somebody_acknowledges_it(weft: Weft, url: str) -> None:
    shown = words(weft("status", "--url", url).out)

    assert "host dead-host may be lost: nobody could read it for a minute after its host had died." in shown
    assert "order-1, order-2" in shown
    assert "weft status --acknowledge-losses" in shown

    assert "1 loss acknowledged." in weft("status", "--acknowledge-losses", "--url", url).err
    assert "lost" not in weft("status", "--url", url).out
    assert "Nothing was lost." in weft("status", "--acknowledge-losses", "--url", url).err


def test_the_status_has_the_losses_as_json(weft: Weft, url: str) -> None:
    status: Any = weft("status", "--json", "--url", url).json()

    (loss,) = status["losses"]
    assert (loss["host"], loss["reason"], loss["batches"]) == ("dead-host", "unreachable", 0)
    assert (loss["runs"], loss["at"]) == (["order-1", "order-2"], "1970-01-01T00:00:05.000+00:00")
    assert weft("status", "--json", "--acknowledge-losses", "--url", url).json() == {"acknowledged": 1}


def test_a_store_in_a_file_has_lost_nothing(weft: Weft) -> None:
    weft("run", "app.py", "order", "order_id=o-1", "n=1")

    status: Any = weft("status", "--json").json()
    assert status["losses"] == []
    assert "Nothing was lost." in weft("status", "--acknowledge-losses").err
