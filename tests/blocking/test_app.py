"""An app without an event loop: ``app.sync``."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_overloads

import pytest

import weft
from tests.blocking.shop import make_shop


@pytest.fixture
def app() -> Iterator[weft.App]:
    made = make_shop("memory://")
    yield made
    made.sync.close()


def host_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("weft-host", "weft-client"))]


def test_a_run_is_started_and_waited_for(app: weft.App) -> None:
    handle = app.sync.start("order", {"item": "soup"}, id="o-1")
    assert handle.id == "o-1"
    assert handle.result() == "box of soup"
    assert handle.status() == "completed"
    assert app.sync.get("o-1").result() == "box of soup"


def test_the_same_id_finds_the_same_run(app: weft.App) -> None:
    first = app.sync.start("order", {"item": "soup"}, id="o-1")
    assert app.sync.start("order", {"item": "soup"}, id="o-1").id == first.id
    with pytest.raises(weft.IdTaken):
        app.sync.start("order", {"item": "cake"}, id="o-1")


def test_the_first_call_hosts_and_close_leaves_no_thread(app: weft.App) -> None:
    assert host_threads() == []
    app.sync.start("order", {"item": "soup"}).result()
    assert host_threads() == ["weft-host"]
    app.sync.close()
    assert host_threads() == []
    app.sync.close()


def test_it_can_be_opened_again_and_handles_go_on(tmp_path: Path) -> None:
    app = make_shop(f"sqlite:///{tmp_path}/weft.db")
    with app.sync:
        handle = app.sync.start("greeted", id="g-1")
    assert host_threads() == []
    with app.sync:
        handle.send("name", "ann")
        assert handle.result() == "hello ann"


def test_a_nested_with_stays_open_until_the_outer_one_ends(app: weft.App) -> None:
    with app.sync:
        with app.sync as inner:
            assert inner is app.sync
        assert host_threads() == ["weft-host"]
    assert host_threads() == []


def test_messages_answers_and_commands_reach_the_run(app: weft.App) -> None:
    greeted = app.sync.start("greeted")
    greeted.pause()
    assert greeted.status() == "paused"
    greeted.resume()
    greeted.send("name", "ann")
    assert greeted.result(timeout="1m") == "hello ann"
    asked = app.sync.start("approved")
    for event in asked.events(follow=True):
        if event.kind == "ask_opened":
            break
    assert asked.explain().waiting[0].kind == "ask"
    asked.decide("ship", approved=True, by="ann")
    assert asked.result() is True


def test_failures_are_raised_as_themselves(app: weft.App) -> None:
    with pytest.raises(weft.RunFailed, match="negative"):
        app.sync.start("order", {"item": "soup", "cents": -1}).result()
    waiting = app.sync.start("greeted")
    with pytest.raises(weft.TimedOut):
        waiting.result(timeout=0)
    waiting.cancel("no longer wanted")
    with pytest.raises(weft.RunCancelled, match="no longer wanted"):
        waiting.result()
    with pytest.raises(weft.UnknownWorkflow):
        app.sync.start("missing")
    with pytest.raises(weft.NotFound):
        app.sync.get("missing").status()


def test_logs_lists_forks_and_diffs(app: weft.App) -> None:
    first = app.sync.start("order", {"item": "soup"}, id="o-1")
    first.result()
    second = first.fork(input={"item": "cake"})
    assert second.result() == "box of cake"
    assert next(event.kind for event in first.events()) == "run_started"
    assert {handle.id for handle in app.sync.list(workflow="order")} == {first.id, second.id}
    assert next(app.sync.list(status="completed")).result() in {"box of soup", "box of cake"}
    assert app.sync.diff(first.id, second.id).equal is False


def test_bulks_schedules_and_versions(app: weft.App) -> None:
    waiting = app.sync.start("greeted")
    bulk = app.sync.bulk("cancel", waiting.id)
    assert (bulk.verb, bulk.matched, bulk.would_apply) == ("cancel", 1, 1)
    assert bulk.apply(reason="cleaning up").result().applied == 1
    added = app.sync.schedules.add("nightly", "order", {"item": "soup"}, cron="0 3 * * *")
    assert added.name == "nightly"
    assert [schedule.name for schedule in app.sync.schedules.list()] == ["nightly"]
    assert app.sync.schedules.trigger("nightly").result() == "box of soup"
    assert {found.name for found in app.sync.workflows.list()} >= {"order", "greeted"}


def test_many_threads_share_one_host(app: weft.App) -> None:
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: app.sync.start("order", {"item": str(n)}).result(), range(64)))
        assert host_threads() == ["weft-host"]
    assert results == [f"box of {n}" for n in range(64)]


def test_inside_a_running_loop_it_is_refused_before_anything_is_started(app: weft.App) -> None:
    @app.workflow
    async def empty() -> None: ...

    async def wrong() -> None:
        with pytest.raises(weft.LoopRunning, match=r"await app\.start") as refused:
            app.sync.start(empty())
        assert refused.value.code == "usage.loop_running"
        with pytest.raises(weft.LoopRunning):
            app.sync.open()
        with pytest.raises(weft.LoopRunning):
            app.sync.get("x").result()
        with pytest.raises(weft.LoopRunning):
            list(app.sync.list())

    asyncio.run(wrong())
    assert host_threads() == []


def test_a_thread_of_a_hosted_app_uses_the_host_that_is_there(app: weft.App) -> None:
    """A plain ``def`` endpoint of FastAPI runs in such a thread."""

    async def hosted() -> str:
        async with app:
            return await asyncio.to_thread(lambda: app.sync.start("order", {"item": "soup"}).result())

    assert asyncio.run(hosted()) == "box of soup"
    assert host_threads() == []


def test_a_plain_step_can_start_a_run_and_wait_for_it(app: weft.App) -> None:
    @app.step
    def outer() -> str:
        return str(app.sync.start("order", {"item": "soup"}).result())

    @app.workflow
    async def nested() -> str:
        return await outer()

    assert app.sync.start(nested()).result() == "box of soup"


def test_a_step_cannot_close_its_own_engine(app: weft.App) -> None:
    @app.step(retries=0)
    def closes() -> None:
        app.sync.close()

    @app.workflow
    async def suicidal() -> None:
        await closes()

    with pytest.raises(weft.RunFailed, match="cannot close"):
        app.sync.start(suicidal()).result()


def test_a_call_that_waits_is_ended_by_close(app: weft.App) -> None:
    handle = app.sync.start("greeted")
    waiting = threading.Event()

    def follow() -> None:
        for _ in handle.events(follow=True):
            waiting.set()  # the next event never comes

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(follow)
        waiting.wait()
        app.sync.close()
        with pytest.raises(weft.NotRunning, match="closed"):  # while it waits, or just before
            followed.result()


def test_two_hosts_of_one_app_in_a_process_are_refused(app: weft.App) -> None:
    app.sync.open()

    @app.workflow
    async def empty() -> None: ...

    async def other_loop() -> None:
        with pytest.raises(weft.LoopRunning, match="already hosts"):
            async with app:
                pass
        with pytest.raises(weft.LoopRunning, match="already hosts"):
            await app.start(empty())

    asyncio.run(other_loop())
    with pytest.raises(weft.LoopRunning, match="already hosts"):
        app.run(empty())
    assert app.sync.start("order", {"item": "soup"}).result() == "box of soup"


def test_a_host_that_cannot_start_says_why(tmp_path: Path) -> None:
    app = make_shop(f"sqlite:///{tmp_path}/no/such/folder/weft.db")
    with pytest.raises(weft.WeftError):
        app.sync.start("order", {"item": "soup"})
    assert host_threads() == []


def test_elsewhere_an_app_that_is_not_hosted_is_refused_as_before(app: weft.App) -> None:
    @app.workflow
    async def empty() -> None: ...

    with pytest.raises(weft.NotRunning):
        asyncio.run(app.start(empty()))  # type: ignore[arg-type]  # a coroutine, whatever the overloads say


def parameters_of(function: Any) -> set[str]:
    """The names of all parameters, in the overloads too."""
    signatures = [inspect.signature(one) for one in (*get_overloads(function), function)]
    return {name for one in signatures for name in one.parameters} - {"self", "options", "call"}


@pytest.mark.parametrize(
    ("blocking", "target", "own"),
    [
        (weft.BlockingHandle, weft.Handle, {"codec", "read"}),
        (weft.BlockingClient, weft.Client, {"run_handle", "service"}),
        (weft.BlockingBulk, weft.Bulk, set()),
        (weft.BlockingSchedules, weft.Schedules, set()),
        (weft.BlockingApp, weft.App, None),
    ],
)
def test_every_method_has_a_blocking_form_with_the_same_parameters(
    blocking: type, target: type, own: set[str] | None
) -> None:
    """A method that is added to a handle or client must not be forgotten here."""
    for name, method in vars(target).items():
        if name.startswith("_") or not (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)):
            continue
        if own is None and name in {"check_live", "run_and_wait", "lifespan"}:
            continue
        found = getattr(blocking, name)
        assert not inspect.iscoroutinefunction(found)
        assert parameters_of(found) == parameters_of(method), name
    assert own is None or all(hasattr(target, name) for name in own)
