"""The health of steps is looked after in the background, told to whoever asks, and decides nothing."""

import asyncio
from typing import Any

from aiohttp import web

import weft
from tests.steps.http_kit import HERE, serving
from weft.core.goal.catalogue import Checkup
from weft.core.goal.definitions import HttpWay, Script, ScriptWay, StepDef, StepWay
from weft.goals import load_steps
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.step_keeper import can_be_checked, check_scripts


def test_only_scripts_and_addresses_can_be_looked_at() -> None:
    assert can_be_checked(StepDef(id="a", way=ScriptWay(Script("return 1", "lua"))))
    assert can_be_checked(StepDef(id="a", way=StepWay("a"), when=Script("true")))
    assert can_be_checked(StepDef(id="a", way=HttpWay(url="https://a.example", health="https://a.example/ok")))
    assert not can_be_checked(StepDef(id="a", way=HttpWay(url="https://a.example")))
    assert not can_be_checked(StepDef(id="a", way=StepWay("a")))


def test_a_script_that_compiles_is_healthy_and_one_that_does_not_says_why() -> None:
    assert check_scripts(StepDef(id="a", way=ScriptWay(Script("return 1", "lua")))) == Checkup("healthy")

    broken = check_scripts(StepDef(id="a", way=StepWay("a"), when=Script("(+ 1", "ale")))
    assert broken.status == "unhealthy"
    assert broken.error.startswith("when: ")


def test_a_host_asks_the_servers_of_steps_and_notes_only_what_changes(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", HERE)
    asked: list[str] = []
    state = {"status": 200}

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"n": 1}, status=state["status"] if request.path == "/ok" else 200)

    async def scenario() -> None:
        async with serving(answer) as base:
            app = weft.App(f"sqlite:///{tmp_path}/weft.db")
            app.steps({"steps": {
                "count": {"http": {"url": f"{base}/count", "health": f"{base}/ok"}, "gives": ["n"]},
                "plain": {"http": f"{base}/plain"},
                "script": {"script": {"lua": "return {m = 1}"}, "gives": ["m"]},
            }})  # fmt: skip
            async with app:
                steps = app.service.steps
                assert steps is not None
                await steps.check_all(app.registered.planned()[:1])
                await steps.check_all(app.registered.planned()[:1])
                state["status"] = 503
                await steps.check_all([step for step in app.registered.planned() if can_be_checked(step)])
                catalogue = StoredCatalogue(app.service.store.definitions, app.service.clock)
                health = (await catalogue.catalogue()).health
                assert health["count"].status == "unhealthy"
                assert "503" in health["count"].error
                assert health["script"] == Checkup("healthy")
                assert "plain" not in health
                changes = [(one.event.step_id, one.event.status) for one in await catalogue.history()]  # type: ignore[union-attr]
                assert [change for change in changes if change[0] == "count"] == [
                    ("count", "healthy"),
                    ("count", "unhealthy"),
                ]
                # An unhealthy step is planned and performed like any other.
                handle = await app.start(app.goal("counted", "count"))
                assert (await handle.result(timeout=120))["n"] == 1

    asyncio.run(scenario())
    assert "/ok" in asked


def test_a_round_belongs_to_the_duties_of_a_host(tmp_path: Any) -> None:
    async def scenario() -> None:
        app = weft.App(f"sqlite:///{tmp_path}/weft.db")
        app.steps({"steps": {"script": {"script": {"lua": "return 1"}, "gives": ["result"]}}})
        async with app:
            steps = app.service.steps
            assert steps is not None
            await steps.begin_round()
            await asyncio.gather(*steps._background._tasks)
            assert steps.stored._known.health == {"script": Checkup("healthy")}

    asyncio.run(scenario())


def test_a_script_is_healthy_as_soon_as_it_is_registered(tmp_path: Any) -> None:
    async def scenario() -> None:
        app = weft.App(f"sqlite:///{tmp_path}/weft.db")
        async with app:
            steps = app.service.steps
            assert steps is not None
            document = {"steps": {"s": {"script": {"lua": "return 1"}}, "h": {"http": "https://a.example"}}}
            await steps.stored.register(load_steps(document, GOAL_LANGUAGES))
            assert (await steps.stored.catalogue()).health == {"s": Checkup("healthy")}

    asyncio.run(scenario())


def test_what_runs_others_is_as_healthy_as_they_are(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", HERE)
    state = {"status": 200}

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=state["status"])

    async def scenario() -> None:
        async with serving(answer) as base:
            app = weft.App(f"sqlite:///{tmp_path}/weft.db")

            @app.workflow
            async def coded(ctx: weft.Context) -> None:
                pass

            app.steps({"steps": {
                "count": {"http": {"url": f"{base}/count", "health": f"{base}/ok"}, "gives": ["n"]},
                "other": {"http": f"{base}/other", "gives": ["o"]},
                "inner": {"goal": ["count"], "gives": ["n2"]},
                "outer": {"goal": ["inner", "other"]},
                "alone": {"goal": ["other"]},
                "lost": {"goal": ["nobody"]},
                "drawn": {"workflow": "drawing"},
                "code": {"workflow": "coded"},
                "absent": {"workflow": "elsewhere"},
            }})  # fmt: skip
            app.graph({"name": "drawing", "nodes": {"a": {"step": "other", "next": "b"}, "b": {"goal": ["outer"]}}})
            async with app:
                steps = app.service.steps
                assert steps is not None
                for well in (True, False):
                    state["status"] = 200 if well else 503
                    await steps.check_all([step for step in app.registered.planned() if can_be_checked(step)])
                    health = (await steps.stored.catalogue()).health
                    expected = "healthy" if well else "unhealthy"
                    for step in ("count", "inner", "outer", "drawn"):
                        assert health[step].status == expected, step
                    assert (health["alone"], health["code"]) == (Checkup("healthy"), Checkup("healthy"))
                    assert health["lost"].status == "unhealthy"
                    assert "absent" not in health
                assert health["outer"].error.startswith("inner: count: ")

    asyncio.run(scenario())
