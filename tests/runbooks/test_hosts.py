"""Runbooks about hosts: one that ends, one whose runs were taken over, and runs that no host takes or performs."""

from __future__ import annotations

import pytest

from tests.runbooks.kit import Page, Site, until

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
HANGS = """
import asyncio

@app.step
async def charge(order_id: str) -> str:
    await asyncio.Event().wait()
    return order_id

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    return await charge(order_id)
"""
DRAWS = """
@app.step(queue="gpu")
async def draw(order_id: str) -> str:
    return f"picture of {order_id}"

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    return await draw(order_id)
"""


def start(site: Site, number: int = 7) -> None:
    site.type(f"weft start order order_id=o-{number} --id order-{number}")


@pytest.mark.proof
def test_a_host_that_died_is_listed_as_gone_and_its_runs_go_on_when_it_is_started_again(site: Site) -> None:
    site.write("app.py", WAITS)
    host = site.serve("app.py")
    start(site)
    until(lambda: "packed" in site.type("weft explain order-7"))
    host.kill()
    page = Page("host-down", site)

    said = page.look()

    assert "gone" in said
    assert "running 1" in said or "1 running" in said
    page.mend()
    site.type("weft send order-7 packed")
    until(lambda: site.status("order-7") == "completed")
    until(lambda: site.hosts[-1].metric('weft_hosts{state="gone"}') == 0)
    page.done()


@pytest.mark.proof
def test_runs_of_a_host_that_died_are_counted_and_their_logs_say_what_is_repeated(site: Site) -> None:
    site.write("app.py", HANGS)
    first = site.serve("app.py")
    start(site)
    until(lambda: first.metric("weft_tasks_in_flight") == 1)
    second = site.serve("app.py")
    assert second.metric("weft_takeovers_total") == 0
    first.kill()
    until(lambda: second.metric("weft_takeovers_total") == 1)
    until(lambda: second.metric("weft_tasks_in_flight") == 1)
    page = Page("takeovers", site)

    said = page.look()

    assert "task_lost" in said or "lost" in said
    assert "order-7" in said
    assert "charge" in page.mend()
    page.done()


@pytest.mark.proof
def test_a_run_that_no_host_has_the_version_of_is_brought_to_another_or_gets_its_old_host_back(site: Site) -> None:
    site.write("old.py", WAITS.replace("@app.workflow", '@app.workflow(version="1")'))
    site.write("app.py", WAITS.replace("@app.workflow", '@app.workflow(version="2")'))
    first = site.serve("old.py")
    for number in (7, 8):
        start(site, number)
        until(lambda number=number: "packed" in site.type(f"weft explain order-{number}"))
    first.stop()
    for number in (7, 8):
        site.type(f"weft send order-{number} packed")
    new = site.serve("app.py")
    until(lambda: new.metric("weft_stalled_seconds") > 0)
    page = Page("run-stalled", site)

    said = page.look()

    assert "version 1" in said
    page.mend("patch")
    until(lambda: site.status("order-7") == "completed")
    assert site.status("order-8") == "running"
    page.mend("serve")
    until(lambda: site.status("order-8") == "completed")
    until(lambda: new.metric("weft_stalled_seconds") == 0)
    page.done()


@pytest.mark.proof
def test_a_step_that_hangs_is_named_and_ended_by_hand(site: Site) -> None:
    site.write("app.py", HANGS)
    host = site.serve("app.py")
    start(site)
    until(lambda: host.metric("weft_attempt_age_seconds") > 0)
    page = Page("step-stuck", site)

    assert "charge" in page.look()
    page.mend()
    until(lambda: site.status("order-7") == "completed")
    until(lambda: host.metric("weft_attempt_age_seconds") == 0)
    page.done()


@pytest.mark.proof
def test_a_queue_that_nobody_serves_is_shown_and_gets_a_worker(site: Site) -> None:
    site.write("app.py", DRAWS)
    host = site.serve("app.py", "--queue", "default")
    start(site)
    until(lambda: host.metric("weft_shared_task_age_seconds") > 0)
    assert host.metric('weft_shared_tasks{state="waiting"}') == 1
    page = Page("queue-unserved", site)

    assert "gpu" in page.look()
    page.mend()
    until(lambda: site.status("order-7") == "completed")
    until(lambda: host.metric("weft_shared_task_age_seconds") == 0)
    page.done()


@pytest.mark.proof
def test_a_run_that_is_held_says_why_and_goes_on_with_the_right_code(site: Site) -> None:
    site.write("app.py", WAITS)
    first = site.serve("app.py")
    start(site)
    until(lambda: "packed" in site.type("weft explain order-7"))
    first.stop()
    site.write("app.py", WAITS.replace("charge", "charge_card"))
    second = site.serve("app.py")
    site.type("weft send order-7 packed")
    until(lambda: second.metric('weft_runs{status="held"}') == 1)
    page = Page("runs-held", site)

    said = page.look()

    assert "charge_card" in said
    second.stop()
    site.write("app.py", WAITS)
    third = site.serve("app.py")
    page.mend()
    until(lambda: site.status("order-7") == "completed")
    until(lambda: third.metric('weft_runs{status="held"}') == 0)
    page.done()
