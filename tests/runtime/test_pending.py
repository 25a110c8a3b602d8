"""Starting by name through a store: no guess is written, and the host that takes the run up resolves the name."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.authoring.client import Client
from weft.observe.explain import explain

GRAPH = """
name: letter
nodes:
  write: {step: write, with: {name: "${input.name}"}}
"""


def build(url: str) -> weft.App:
    app = weft.App(url)

    @app.step(gives="text")
    async def write(name: str = "x") -> str:
        return f"Dear {name}"

    @app.workflow(timeout="1h", version="3")
    async def flow(ctx: weft.Context, n: int, by: int = 2) -> int:
        return n * by

    @app.workflow
    async def outer() -> Any:
        return await flow(1)

    app.goal("texts", write)
    return app


def plain(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/weft.db"


async def seen(client: Client, id: str) -> Any:
    return await client.service.row(id)  # type: ignore[arg-type]


@plain
async def test_a_start_by_name_writes_no_guess(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("flow", {"n": 4}, id="one")
        row = await seen(client, "one")
        assert (row.status, row.seq, row.version, row.style) == ("pending", 0, "", "")
        assert await run.status() == "pending"
        assert [found.id async for found in client.list(status="pending")] == ["one"]


@pytest.mark.parametrize(
    ("name", "given", "result", "kind"),
    [("flow", {"n": 4}, 8, ("3", "code")), ("texts", {}, {"text": "Dear x"}, ("1", "goal"))],
)
@plain
async def test_the_host_that_takes_it_up_resolves_the_name(
    url: str, name: str, given: Any, result: Any, kind: tuple[str, str]
) -> None:
    async with Client(url) as client:
        run = await client.start(name, given, id="one")
        async with build(url):
            found = await run.result(timeout=200)
        assert (found["facts"] if "goal" in kind else found) == result
        row = await seen(client, "one")
        assert (row.status, row.version, row.style) == ("completed", *kind)


@plain
async def test_a_graph_that_is_not_hosted_yet(url: str, tmp_path: Path) -> None:
    (tmp_path / "letter.yaml").write_text(GRAPH)
    async with Client(url) as client:
        run = await client.start("letter", {"name": "Ada"}, id="one")
        app = build(url)
        app.graph(tmp_path / "letter.yaml")
        async with app:
            await run.result(timeout=200)
        row = await seen(client, "one")
        assert (row.status, row.style) == ("completed", "graph")


@plain
async def test_a_name_that_no_host_offers_stays_pending_and_explain_says_so(url: str) -> None:
    async with Client(url) as client:
        await client.start("nobody", {}, id="one")
        async with build(url) as app:
            assert await (await app.start("flow", {"n": 1})).result() == 2
            await app.service.local._claims.scan()  # type: ignore[union-attr]
        row = await seen(client, "one")
        assert row.status == "pending"
        told = await explain(client.service, row)
        assert told.status == "pending"
        assert 'no running host offers "nobody"' in told.summary
        assert "weft cancel one" in told.hint


@plain
async def test_an_input_that_does_not_fit_becomes_a_run_that_failed_in_its_first_append(url: str) -> None:
    async with Client(url) as client:
        runs = [
            await client.start("flow", {"n": "four"}, id="wrong type"),
            await client.start("flow", {"m": 4}, id="unknown"),
            await client.start("flow", {"n": "x" * 500_000}, id="large"),
        ]
        async with build(url):
            for run in runs:
                with pytest.raises(weft.RunFailed) as caught:
                    await run.result(timeout=200)
                assert caught.value.failure.code == "value.wrong_type"
                assert (await seen(client, run.id)).seq == 2


@plain
async def test_the_deadline_of_the_workflow_and_its_defaults_hold(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("flow", {"n": 4}, id="one")
        async with build(url):
            await run.result(timeout=200)
        started = await anext(run.events())
        assert started.data["due"] > 0
        assert started.data["defaults"] == {"by": 2}


@plain
async def test_the_same_start_twice_is_one_run(url: str) -> None:
    async with Client(url) as client:
        await client.start("flow", {"n": 4}, id="one")
        await client.start("flow", {"n": 4}, id="one")
        with pytest.raises(weft.IdTaken):
            await client.start("flow", {"n": 5}, id="one")
        async with build(url) as app:
            assert await (await app.start("flow", {"n": 4}, id="one")).result() == 8


@plain
async def test_a_version_that_is_named_is_waited_for(url: str) -> None:
    async with Client(url) as client:
        await client.start("flow", {"n": 4}, id="old", version="2")
        run = await client.start("flow", {"n": 4}, id="new", version="3")
        async with build(url) as app:
            assert await run.result(timeout=200) == 8
            await app.service.local._claims.scan()  # type: ignore[union-attr]
        row = await seen(client, "old")
        assert (row.status, row.version) == ("pending", "2")


@plain
async def test_a_pending_run_says_that_it_cannot_be_patched_yet(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("flow", {"n": 1}, id="one")
        for change in (lambda: run.patch(to="4"), lambda: run.patch(to="4", dry_run=True), run.undo_patch):
            with pytest.raises(weft.Refused, match="has not begun") as refused:
                await change()
            assert refused.value.code == "patch.not_begun"


@plain
async def test_a_pending_run_is_cancelled_without_a_host(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("nobody", {}, id="one")
        await run.send("hello", 1)
        await run.cancel("not wanted")
        assert await run.status() == "cancelled"
        with pytest.raises(weft.RunCancelled, match="not wanted"):
            await run.result(timeout=1)
        assert [event.kind async for event in run.events()] == [
            "run_started",
            "message_received",
            "cancel_requested",
            "run_cancelled",
        ]
        with pytest.raises(weft.RunFinished):
            await run.cancel()


@plain
async def test_a_run_that_was_cancelled_before_it_began_is_neither_patched_nor_forked(url: str) -> None:
    """Nobody has resolved its workflow, so no host could go on with a fork of it."""
    async with Client(url) as client:
        run = await client.start("flow", {"n": 1}, id="one")
        await run.cancel()
        for change in (lambda: run.patch(to="4"), lambda: run.patch(to="4", dry_run=True), run.undo_patch):
            with pytest.raises(weft.RunFinished, match="never began"):
                await change()
        async with build(url):
            with pytest.raises(weft.Refused, match="never began") as refused:
                await run.fork()
            assert refused.value.code == "fork.not_possible"
            bulk = await client.bulk("fork", "one")
            assert [(group.code, group.count) for group in bulk.refused] == [("fork.not_possible", 1)]


@plain
async def test_the_parent_of_a_pending_child_hears_that_it_was_cancelled(url: str) -> None:
    app = weft.App(url)
    other = weft.App(url)

    @other.workflow
    async def child() -> None: ...

    @app.workflow
    async def parent(ctx: weft.Context) -> str:
        try:
            await child()
        except weft.RunCancelled:
            return "heard"
        return "?"

    async with app:
        run = await app.start(parent(), id="one")
        async with Client(url) as client:
            async with asyncio.timeout(200):
                while (row := await client.service.store.directory.find("one.child")) is None:  # type: ignore[arg-type]
                    await asyncio.sleep(0.01)
            assert row.status == "pending"
            await client.get("one.child").cancel()
        assert await run.result(timeout=200) == "heard"


@plain
async def test_a_pause_that_reaches_a_pending_run_is_kept_for_it(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("flow", {"n": 4}, id="one")
        await run.pause()
        async with build(url):
            async with asyncio.timeout(200):
                while await run.status() == "pending":
                    await asyncio.sleep(0.01)
            assert await run.status() in ("paused", "completed")


def test_a_refusal_names_a_pending_run_and_its_state(tmp_path: Path) -> None:
    async def scene() -> None:
        async with weft.Client(f"sqlite:///{tmp_path}/weft.db") as client:
            run = await client.start("later", {}, id="p-1")
            with pytest.raises(weft.Refused, match=r"^p-1 is pending: no host has claimed it"):
                await run.retry()
            with pytest.raises(weft.Refused, match="p-1"):
                await run.decide("ok", approved=True)

    asyncio.run(scene())


NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NEVER_BEGAN: dict[str, Any] = {"flow": {"n": "four"}, "needy": {}, "strict": {"name": 3}}


@pytest.mark.parametrize("workflow", NEVER_BEGAN)
@plain
async def test_a_run_that_was_refused_at_its_start_can_only_be_started_anew(url: str, workflow: str) -> None:
    app = build(url)
    sign = app.step(name="sign", gives="signed")(lambda pen: pen)
    app.goal("needy", sign)
    app.graph({"name": "strict", "input": NAMED, "nodes": {"write": {"step": "write"}}})
    async with Client(url) as client:
        run = await client.start(workflow, NEVER_BEGAN[workflow], id="one")
        async with app:
            with pytest.raises(weft.RunFailed) as failed:
                await run.result(timeout=200)
            assert "weft retry" not in str(failed.value)
            assert "It never began, so it cannot be retried. Start a new run with another id" in failed.value.hint
            for handle in (run, app.get("one")):
                with pytest.raises(weft.Refused, match=r"^one never began") as refused:
                    await handle.retry()
                assert refused.value.hint == f"Start a new run under another id: weft start {workflow} --input FILE"
        assert await run.status() == "failed"


@plain
async def test_a_run_that_was_cancelled_before_it_began_can_only_be_started_anew(url: str) -> None:
    async with Client(url) as client:
        run = await client.start("nobody", {}, id="one")
        await run.cancel()
        with pytest.raises(weft.Refused, match="one is cancelled") as refused:
            await run.retry()
        assert refused.value.hint == "Start a new run under another id: weft start nobody --input FILE"
