"""Runbooks about the store: a disk that fills, one that takes nothing, and a run whose row and log do not agree."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sqlite3
from collections.abc import Iterator

import pytest

from tests.damage import damage, mend
from tests.runbooks.kit import Host, Page, Site, until

DAYS_40_MS = 40 * 86_400_000
OLDER = "UPDATE runs SET created_at = created_at - :by, ended_at = ended_at - :by WHERE ended_at IS NOT NULL"
WAITS = """
@app.step
async def charge(order_id: str) -> str:
    return f"receipt-{order_id}"

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    receipt = await charge(order_id)
    await ctx.receive("packed")
    return receipt
"""
WORKS = """
import asyncio
from pathlib import Path

@app.step
async def charge(order_id: str) -> str:
    while not Path("repaired").exists():
        await asyncio.sleep(0.1)
    return f"receipt-{order_id}"

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    return await charge(order_id)
"""


def start(site: Site, number: int) -> None:
    site.type(f"weft start order order_id=o-{number} --id order-{number}")
    until(lambda: "packed" in site.type(f"weft explain order-{number}"))


@pytest.mark.proof
def test_old_runs_are_counted_and_deleted_when_the_disk_is_almost_full(site: Site) -> None:
    site.write("app.py", WAITS)
    host = site.serve("app.py")
    for number in (6, 7):
        start(site, number)
        site.type(f"weft send order-{number} packed")
        until(lambda number=number: site.status(f"order-{number}") == "completed")
    start(site, 8)
    with contextlib.closing(sqlite3.connect(site.folder / "weft.db")) as plain, plain:
        plain.execute(OLDER, {"by": DAYS_40_MS})
    free = shutil.disk_usage(site.folder).free
    assert host.metric("weft_store_free_bytes") == pytest.approx(free, rel=0.2)
    assert host.metric("weft_store_bytes") > 0
    page = Page("disk-low", site)

    said = page.look()

    assert "disk    " in said
    assert "2 runs in 2 trees would be deleted" in said
    page.mend()
    until(lambda: host.metric('weft_runs{status="completed"}') == 0)
    assert site.status("order-8") == "running", "what is open stays"
    page.done()


@contextlib.contextmanager
def no_room(host: Host) -> Iterator[None]:
    """The host can write nothing to files, as on a disk without room."""
    pid, limit = host.process.pid, resource.RLIMIT_FSIZE
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, limit, before)


@pytest.mark.proof
def test_a_host_that_cannot_write_says_so_and_goes_on_by_itself(site: Site) -> None:
    site.write("app.py", WAITS)
    host = site.serve("app.py")
    start(site, 7)
    page = Page("store-unwritable", site)
    with no_room(host):
        site.type("weft send order-7 packed")
        until(lambda: host.metric("weft_store_writable") == 0)
        assert "not ready" in page.look()
    until(lambda: '"ready"' in host.get("/readyz"))

    assert '"ready"' in page.mend()
    until(lambda: site.status("order-7") == "completed")
    until(lambda: host.metric("weft_store_writable") == 1)
    page.done()


@pytest.mark.proof
def test_a_run_that_lacks_what_its_row_counts_is_set_aside_and_goes_on_after_it_is_restored(site: Site) -> None:
    site.write("app.py", WORKS)
    first = site.serve("app.py")
    for number in (7, 8):
        site.type(f"weft start order order_id=o-{number} --id order-{number}")
    until(lambda: first.metric("weft_tasks_in_flight") == 2)
    first.kill()
    file, copy = site.folder / "weft.db", site.folder / "backup.db"
    site.type("weft backup backup.db")
    for number in (7, 8):
        damage(file, f"order-{number}", "missing")
    host = site.serve("app.py")
    until(lambda: host.metric("weft_runs_unreadable") == 2)
    page = Page("counter-divergence", site)

    said = page.look()

    assert "is missing: the log ends at event" in said
    (site.folder / "repaired").touch()
    mend(file, copy, "order-7")
    page.mend("resume")
    until(lambda: site.status("order-7") == "completed")
    page.mend("restore")
    assert "charge" in page.mend("events", order_7="order-8")
    page.mend("cancel", order_7="order-8")
    until(lambda: site.status("order-8") == "cancelled")
    until(lambda: host.metric("weft_runs_unreadable") == 0)
    page.done()
