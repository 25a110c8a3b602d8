"""Graph runs on the engine: what is read back, what is fetched while deciding, which version a run goes on with."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.code.desk import CALM, Desk
from tests.sim.shadow import Shadow
from weft.cli.entry import main
from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import RunId
from weft.observe.dead_letters import all_dead_letters
from weft.runtime.clock import SystemClock, TimeIds
from weft.runtime.programs import new_machine
from weft.runtime.service import RunService
from weft.runtime.settings import Settings
from weft.stores import open_store
from weft.testing import World, crash_everywhere

BIG = 40_000
TINY_CACHE = Settings(poll_seconds=5.0, drain_seconds=1.0, look_seconds=3600.0, blob_cache_bytes=1)
"""Only the newest blob stays in memory, so that nearly every decision about large values has to fetch them."""


def steps() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def bump(n: int) -> int:
        return n + 1

    @app.step
    async def blow(n: int) -> dict[str, Any]:
        return {"text": "x" * (BIG + n), "n": n}

    @app.step
    async def measure(text: str) -> int:
        return len(text)

    @app.step
    async def fail(n: int) -> int:
        raise weft.Critical("never")

    @app.step(retries=weft.Retry(20, backoff="fixed", delay="1s"))
    async def reserve(n: int) -> int:
        if n and weft.task().attempt == 1:
            raise RuntimeError("busy")
        return n

    @reserve.undo
    async def release(n: int) -> None: ...

    return app


def document(name: str, nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"weft": "graph/1", "name": name, "nodes": nodes, **fields}


# --- reading back ------------------------------------------------------------------------------------------------


def every_kind() -> tuple[weft.App, weft.Graph]:
    """A graph that leaves something in every field that its events have."""
    app = steps()
    nodes = {
        "begin": {"pass": True, "save": {"state.n": "${input.n}"}, "next": [{"to": "one", "for_each": "${[1, 2]}"}]},
        "one": {"step": "blow", "with": {"n": "${item}"}, "next": "meet"},
        "meet": {
            "join": "all", "merge": {"from": "output.text", "how": "append", "into": "state.texts"}, "pass": True,
            "next": [{"to": "much", "when": "size(state.texts[0]) > 1"}, {"to": "none"}],
        },
        "none": {"pass": True},
        "much": {"step": "fail", "with": {"n": "${input.n}"}, "catch": [{"to": "mend"}]},
        "mend": {
            "step": "measure", "with": {"text": "${state.texts[1]}"}, "save": {"state.n": "${output}"}, "next": "doze",
        },
        "doze": {"wait": "1s"},
    }  # fmt: skip
    return app, app.graph(document("kinds", nodes, output={"n": "${state.n}"}))


def test_a_graph_run_goes_on_from_every_write() -> None:
    app, graph = every_kind()

    def scenario(world: World) -> None:
        assert world.run(graph, {"n": 3}) == {"n": BIG + 2}

    assert crash_everywhere(app, scenario) > 10


def test_what_a_graph_run_writes_can_be_read_and_gives_the_state_that_was_lived() -> None:
    app, graph = every_kind()
    desk = Desk(app)

    async def scene() -> bytes:
        await app.start(graph, {"n": 3}, id="run")
        await asyncio.sleep(0.5)
        (actor,) = desk.host.runs.actors.values()
        return actor.machine.snapshot()

    lived = desk.play(scene, crash=True)
    shadow = Shadow(
        new_machine("graph", app.catalogue().program("kinds", graph.version), desk.store.content.ids["run"])
    )  # type: ignore[index]
    for stored in desk.stored():
        assert not list(shadow.take(e.decode(stored.body), stored.at))
    assert shadow.machine.snapshot() == lived
    assert not list(shadow.unbalanced())


# --- blobs fetched while deciding --------------------------------------------------------------------------------


def test_decisions_wait_for_large_values_that_have_left_memory() -> None:
    app, graph = every_kind()
    desk = Desk(app, settings=TINY_CACHE)

    async def scene() -> Any:
        return await (await app.start(graph, {"n": 3}, id="run")).result()

    assert desk.play(scene) == {"n": BIG + 2}


def large() -> tuple[weft.App, weft.Graph]:
    """A graph that keeps a large value, waits for long, and then looks into it."""
    app = steps()
    nodes = {
        "blow": {"step": "blow", "with": {"n": "${1}"}, "save": {"state.text": "${output.text}"}, "next": "doze"},
        "doze": {"wait": "1m", "next": "look"},
        "look": {"step": "measure", "with": {"text": "${state.text + input.more}"}, "save": {"state.n": "${output}"}},
    }
    return app, app.graph(document("large", nodes, output={"n": "${state.n}"}))


@pytest.mark.parametrize("settings", [CALM, TINY_CACHE], ids=["calm", "tiny cache"])
@pytest.mark.parametrize("crash", [True, False], ids=["crash", "rest"])
def test_a_large_value_is_fetched_by_the_process_that_goes_on(settings: Settings, crash: bool) -> None:
    app, graph = large()
    desk = Desk(app, settings=settings)

    async def before() -> None:
        await app.start(graph, {"more": "y"}, id="run")
        await asyncio.sleep(1)

    async def after() -> tuple[Any, bool]:
        text = hashlib.sha256(b'"' + b"x" * (BIG + 1) + b'"').hexdigest()
        assert desk.host.values.cached(text) is None
        found = await app.get("run", graph).result()
        return found, desk.host.values.cached(text) is not None

    desk.play(before, crash=crash)
    found, fetched = desk.play(after)
    assert found == {"n": BIG + 2}
    assert fetched or settings is TINY_CACHE


def test_a_run_whose_large_value_is_gone_fails_and_others_go_on() -> None:
    app, graph = large()
    desk = Desk(app)

    async def before() -> None:
        await app.start(graph, {"more": "y"}, id="run")
        await asyncio.sleep(1)

    async def after() -> Any:
        await asyncio.sleep(120)
        return await (await app.start(graph, {"more": "z"}, id="other")).result()

    desk.play(before, crash=True)
    desk.store.content.blobs.clear()
    assert desk.play(after) == {"n": BIG + 2}
    failed = next(event for event in desk.log() if isinstance(event, e.FailureRaised))
    assert "blob" in failed.failure.message
    assert desk.status() == "failed"


def test_a_code_run_whose_large_value_is_gone_is_set_aside_and_others_go_on() -> None:
    app = weft.App("memory://")

    @app.step
    async def blow(n: int) -> str:
        return "x" * (BIG + n)

    @app.workflow
    async def keep(ctx: weft.Context, n: int) -> int:
        text = await blow(n)
        await ctx.sleep("1m")
        return len(text)

    desk = Desk(app)

    async def before() -> None:
        await app.start(keep(1), id="run")
        await asyncio.sleep(1)

    async def after() -> int:
        await asyncio.sleep(120)
        return await (await app.start(keep(2), id="other")).result()

    desk.play(before, crash=True)
    desk.store.content.blobs.clear()
    assert desk.play(after) == BIG + 2
    run = desk.store.content.runs[desk.store.content.ids["run"]]  # type: ignore[index]
    assert (run.status, run.fault is not None) == ("held", True)


# --- versions ----------------------------------------------------------------------------------------------------


def waiting(step: str, **fields: Any) -> dict[str, Any]:
    nodes = {
        "doze": {"wait": "1h", "next": "work"},
        "work": {"step": step, "with": {"n": "${input.n}"}, "save": {"state.b": "${output}"}},
    }
    return document("versioned", nodes, output={"b": "${state.b}", "a": "${1}"}, **fields)


def edition(shape: dict[str, Any]) -> tuple[weft.App, weft.Graph]:
    app = steps()

    @app.step
    async def double(n: int) -> int:
        return 2 * n

    return app, app.graph(shape)


def test_a_run_goes_on_with_its_version_after_the_document_has_changed() -> None:
    old, first = edition(waiting("bump"))
    new, second = edition(waiting("double"))
    desk = Desk(old)

    async def before() -> None:
        await old.start(first, {"n": 10}, id="run")
        await asyncio.sleep(1)

    async def after() -> tuple[Any, Any]:
        fresh = await new.start(second, {"n": 10}, id="fresh")
        return await new.get("run", second).result(), await fresh.result()

    desk.play(before, crash=True)
    pinned, fresh = desk.play(after, app=new)
    assert (pinned, fresh) == ({"b": 11, "a": 1}, {"b": 20, "a": 1})
    assert list(pinned) == ["b", "a"], "a result has the order of its author, also when its version was read back"


def test_a_document_that_says_the_same_in_other_words_is_hosted_as_the_version_that_is_there() -> None:
    old, first = edition(waiting("bump"))
    new, second = edition(waiting("bump", description="the same"))
    assert first.version == second.version
    desk = Desk(old)

    async def run(app: weft.App, graph: weft.Graph) -> Any:
        return await (await app.start(graph, {"n": 1})).result()

    assert desk.play(lambda: run(old, first)) == desk.play(lambda: run(new, second), app=new)


def test_a_graph_registered_while_its_host_runs_is_kept_for_the_next_one() -> None:
    app = steps()
    desk = Desk(app)

    async def before() -> None:
        graph = app.graph(waiting("bump"))
        await app.start(graph, {"n": 1}, id="run")
        await asyncio.sleep(1)

    desk.play(before, crash=True)
    changed, graph = edition(waiting("double"))

    async def after() -> Any:
        return await changed.get("run", graph).result()

    assert desk.play(after, app=changed) == {"b": 2, "a": 1}


def test_tools_read_a_graph_run_without_its_app(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'weft.db'}"
    app, graph = edition(waiting("bump"))
    app.url = url

    async def host() -> None:
        async with app:
            run = await app.start(graph, {"n": 1}, id="run")
            while "timer_set" not in [event.kind async for event in run.events()]:
                await asyncio.sleep(0.01)

    asyncio.run(host())

    async def look() -> list[str]:
        store = open_store(url)
        await store.open()
        service = RunService(store, SystemClock(), TimeIds())
        state = await service.reader.state(await service.row(RunId("run")))
        await store.close()
        return [token.node for token in state.tokens.values()]  # type: ignore[attr-defined]

    assert asyncio.run(look()) == ["doze"]
    assert main(["show", "run", "--url", url]) == 0
    assert "doze" in capsys.readouterr().out
    assert main(["explain", "run", "--url", url]) == 0
    assert "doze" in capsys.readouterr().out


# --- ends --------------------------------------------------------------------------------------------------------


def test_the_result_of_a_run_can_be_had_after_its_letter_was_discarded() -> None:
    app = steps()
    graph = app.graph(document("sinking", {"only": {"step": "fail", "with": {"n": "${1}"}}}))
    desk = Desk(app)

    async def scene() -> str:
        handle = await app.start(graph, {}, id="run")
        with pytest.raises(weft.RunFailed):
            await handle.result()
        (letter,) = [found async for found in all_dead_letters(app.service)]
        token = letter.token
        await app.service.tell(RunId("run"), c.DiscardLetter(token))
        with pytest.raises(weft.RunFailed) as failed:
            await handle.result()
        return failed.value.failure.type

    assert desk.play(scene) == "Critical"
    assert desk.kinds()[-1] == "letter_discarded"


def test_a_paused_run_ends_at_its_deadline_although_a_task_of_it_waited_to_be_tried_again() -> None:
    app = steps()
    nodes = {"only": {"step": "reserve", "with": {"n": "${1}"}, "next": "doze"}, "doze": {"wait": "1h"}}
    graph = app.graph(document("hasty", nodes, limits={"time": "10s"}))
    desk = Desk(app)

    async def scene() -> str:
        handle = await app.start(graph, {}, id="run")
        await asyncio.sleep(0.5)
        await handle.pause()
        with pytest.raises(weft.RunFailed) as failed:
            await handle.result(timeout="1m")
        return failed.value.failure.type

    assert desk.play(scene) == "deadline"
    assert "undo_scheduled" in desk.kinds()
