"""`weft hosts`, `weft queue`, `weft migrate`: who works on what, what queues allow, and the schema; on every store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests import servers
from tests.cli.conftest import Weft
from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.ports.new_run import NewRun
from weft.ports.tasks import KeyLimit
from weft.stores import open_store, url_without_password
from weft.stores.postgres.schema import MIGRATIONS
from weft.stores.sqlite.schema import FILES


@pytest.fixture(params=["postgres", "sqlite"])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    """A store that does not exist yet."""
    if request.param == "sqlite":
        return f"sqlite:///{folder}/other.db"
    found = servers.database("cli")
    servers.run(_forget(found))
    return found


async def _forget(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("DROP SCHEMA IF EXISTS weft CASCADE")
    await connection.close()


def test_migrate_says_what_it_applied_and_then_that_nothing_is_left(weft: Weft, url: str) -> None:
    first = f"{MIGRATIONS[0].number:03}_{MIGRATIONS[0].name}.sql" if url.startswith("postgresql") else FILES[0].name

    assert f"applied {first}, " in weft("migrate", "--url", url).err
    assert "nothing to do" in weft("migrate", "--url", url).err


def test_a_dry_run_prints_the_sql_and_changes_nothing(weft: Weft, url: str) -> None:
    printed = weft("migrate", "--dry-run", "--url", url)

    assert printed.code == 0
    assert "CREATE TABLE runs" in printed.out
    assert weft("migrate", "--dry-run", "--url", url).out == printed.out
    weft("migrate", "--url", url)
    assert weft("migrate", "--dry-run", "--url", url).out == ""


def test_a_store_in_memory_has_no_schema(weft: Weft) -> None:
    said = weft("migrate", "--url", "memory://")

    assert said.code == 2
    assert "--url postgresql://" in said.err


def test_hosts_are_listed_with_what_they_own(weft: Weft, url: str) -> None:
    about = {"machine": "m1", "pid": 77, "since": 0, "workflows": ["order"], "queues": ["default"]}
    host = HostId("a-host-of-mine")
    new: dict[str, Any] = {"workflow": "order", "version": "1", "style": "code", "created_at": Millis(1)}
    runs = [NewRun(uid=RunUid(f"u{n}"), id=RunId(f"r{n}"), owner=host, **new) for n in range(3)]
    store = open_store(url)
    with asyncio.Runner() as runner:
        runner.run(store.open())
        runner.run(store.hosts.join(host, lease_ms=60_000, about=about))
        runner.run(store.log.create(runs))
        shown, document = weft("hosts", "--url", url), weft("hosts", "--url", url, "--json")
        runner.run(store.close())

    (line,) = [line for line in shown.out.splitlines() if "m1:77" in line]
    assert line.split()[0] == "host-of-mine"
    assert "order, queue default" in line
    (found,) = document.json()["hosts"]  # type: ignore[index]
    assert (found["host"], found["runs"], found["tasks"], found["gone"]) == (host, 3, 0, False)


def test_without_hosts_it_says_how_to_start_one(weft: Weft, url: str) -> None:
    weft("migrate", "--url", url)

    assert "weft serve" in weft("hosts", "--url", url).out


def test_limits_of_steps_are_shown_with_the_queues(weft: Weft, url: str) -> None:
    async def declare() -> None:
        store = open_store(url)
        await store.open()
        await store.tasks.declare({"step/charge": KeyLimit(concurrency=2, rate=20, key="customer")})
        await store.close()

    asyncio.run(declare())

    shown = weft("queue", "--url", url).out
    assert "step charge" in shown
    assert "20/s" in shown
    assert weft("queue", "--url", url, "--json").json()["limits"] == [  # type: ignore[index]
        {
            "kind": "step",
            "name": "charge",
            "concurrency": 2,
            "rate": 20,
            "per_ms": 1000,
            "key": "customer",
            "waiting": 0,
            "running": 0,
            "keys": [],
        }
    ]


def test_limits_of_a_queue_are_set_shown_and_taken_away(weft: Weft, url: str) -> None:
    said = weft("queue", "mail", "--concurrency", "5", "--rate", "100/1m", "--priority", "-2", "--url", url)
    assert said.err == "weft: mail: 5 at once, 100/1m, priority -2\n"

    assert weft("queue", "--url", url, "--json").json()["queues"] == [  # type: ignore[index]
        {
            "queue": "mail",
            "waiting": 0,
            "in_hands": 0,
            "concurrency": 5,
            "rate": 100,
            "per_ms": 60_000,
            "priority": -2,
            "stream": False,
        }
    ]
    assert "100/1m" in weft("queue", "mail", "--url", url).out

    weft("queue", "mail", "--concurrency", "none", "--url", url)
    weft("queue", "mail", "--rate", "none", "--priority", "0", "--url", url)
    assert weft("queue", "--url", url, "--json").json()["queues"] == []  # type: ignore[index]
    assert "No queue has waiting tasks or limits" in weft("queue", "--url", url).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["queue", "mail", "--rate", "often"], "--rate 10/s"),
        (["queue", "mail", "--rate", "0/s"], "--rate 10/s"),
        (["queue", "mail", "--concurrency", "many"], "--concurrency none"),
        (["queue", "mail", "--priority", "high"], "higher comes first"),
        (["queue", "--concurrency", "3"], "name a queue"),
    ],
)
def test_what_is_no_limit_is_refused(weft: Weft, words: list[str], says: str) -> None:
    said = weft(*words)

    assert said.code == 2
    assert says in said.err


def test_a_password_is_shown_nowhere() -> None:
    assert url_without_password("postgresql://shop:secret@db/x?a=1") == "postgresql://shop:***@db/x?a=1"
    assert url_without_password("postgresql://shop@db/x") == "postgresql://shop@db/x"
    assert url_without_password("sqlite:///weft.db") == "sqlite:///weft.db"
    assert "secret" not in url_without_password("postgresql://shop:secret@[db/x")
