"""Runbooks about work that fails, waits or is slow: dead letters, a full host, and a store that somebody keeps busy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests import servers
from tests.monitoring.files import metrics
from tests.runbooks.kit import Page, Site, until
from weft.cli import main
from weft.runtime.settings import Settings

FAILS = """
from pathlib import Path

@app.step(retries=0)
async def call(order_id: str) -> str:
    if not Path("repaired").exists():
        raise OSError("the provider is down")
    return order_id

app.graph({
    "weft": "graph/1",
    "name": "order",
    "input": {"order_id": "string"},
    "nodes": {"call": {"step": "call", "with": {"order_id": "${input.order_id}"}, "retry": 1}},
})
"""
SLOW = """
import asyncio
from pathlib import Path

@app.step
async def call(n: int) -> int:
    while not Path("repaired").exists():
        await asyncio.sleep(0.5)
    return n

@app.workflow
async def order(ctx: weft.Context, count: int) -> int:
    return len(await ctx.map("calls", call, range(count), width=count))
"""


def test_dead_letters_are_listed_with_their_cause_and_the_work_is_done_after_the_repair(site: Site) -> None:
    site.write("app.py", FAILS)
    host = site.serve("app.py")
    for number in range(5, 8):
        site.type(f"weft start order order_id=o-{number} --id order-{number}")
    until(lambda: host.metric("weft_dead_letters_total") == 3)
    until(lambda: {site.status(f"order-{n}") for n in range(5, 8)} == {"failed"})
    page = Page("dead-letters", site)

    said = page.look()

    assert said.count("the provider is down") == 3
    (token,) = re.findall(r"order-7:(\S+)", said)
    (site.folder / "repaired").touch()
    page.mend("dlq requeue", TOKEN=token)
    until(lambda: site.status("order-7") == "completed")
    page.mend("retry")
    until(lambda: {site.status(f"order-{n}") for n in range(5, 8)} == {"completed"})
    assert "No dead letters" in page.look()
    page.done()


@pytest.mark.proof
def test_a_host_without_free_slots_shares_its_work_with_another(site: Site) -> None:
    site.write("app.py", SLOW)
    host = site.serve("app.py")
    site.type(f"weft start order count={Settings().slots + 50} --id order-7")
    until(lambda: host.metric("weft_queue_age_seconds") >= 1)
    page = Page("backlog-old", site)

    said = page.look()

    assert re.search(r'"oldest_seconds":[1-9.]', said.replace(" ", ""))
    page.mend()
    until(lambda: site.hosts[-1].metric("weft_tasks_in_flight") > 0)
    until(lambda: host.metric("weft_queue_age_seconds") == 0)
    (site.folder / "repaired").touch()
    until(lambda: site.status("order-7") == "completed")
    page.done()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database with the tables of Weft, and the store of everything that is typed."""
    url = servers.database("runbooks")
    monkeypatch.setenv("WEFT_URL", url)
    assert main(["migrate"]) == 0
    servers.empty(url)
    yield url
    servers.execute(url, QUICK_AGAIN)


SLOW_DISK = """
CREATE FUNCTION weft.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.7); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON weft.events FOR EACH STATEMENT EXECUTE FUNCTION weft.slow();
"""
QUICK_AGAIN = "DROP FUNCTION IF EXISTS weft.slow() CASCADE"


@pytest.mark.proof
def test_commits_are_slow_while_the_database_is_and_quick_again_afterwards(site: Site, database: str) -> None:
    site.write("app.py", SLOW)
    (site.folder / "repaired").touch()
    site.serve("app.py")
    site.type("weft start order count=1 --id order-6")
    until(lambda: site.status("order-6") == "completed")
    page = Page("commit-slow", site)
    servers.execute(database, SLOW_DISK)
    site.type("weft start order count=1 --id order-7")
    until(lambda: site.status("order-7") == "completed")

    said = metrics(page.look().partition('{"')[0])

    slow = said["weft_commit_seconds_count"] - said['weft_commit_seconds_bucket{le="0.5"}']
    assert slow >= 2, "every commit of order-7 took longer than half a second"
    servers.execute(database, QUICK_AGAIN)
    assert '"ready"' in page.mend()
    site.type("weft start order count=1 --id order-8")
    until(lambda: site.status("order-8") == "completed")
    page.done()
