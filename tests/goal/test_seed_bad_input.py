"""What the catalogue refuses, and what bad input does to the flow that has it and to no other."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

import weft
from tests.goal.seed_kit import FETCH, achieve, app_with, gives, needs, step
from tests.steps.http_kit import HERE, serving
from weft.core.goal.checks import BadStep
from weft.errors import NameTaken, RunFailed, UnknownStep
from weft.goals import load_steps
from weft.runtime.catalogue_log import StoredCatalogue
from weft.runtime.clock import SystemClock
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.stores.memory import MemoryStore
from weft.testing import World

# --- the catalogue -----------------------------------------------------------------------------------------------


def test_registering_is_idempotent_updating_is_not_registering_and_health_is_an_event() -> None:
    async def scenario() -> None:
        catalogue = StoredCatalogue(MemoryStore().definitions, SystemClock())
        one = load_steps(step("fetch", gives("user")), GOAL_LANGUAGES)
        other = load_steps(step("fetch", gives("user", "email")), GOAL_LANGUAGES)
        assert len(await catalogue.register(one)) == 1
        assert len(await catalogue.register(one)) == 0
        with pytest.raises(NameTaken):
            await catalogue.register(other)
        with pytest.raises(UnknownStep):
            await catalogue.update(load_steps(step("unheard", {}), GOAL_LANGUAGES))
        assert len(await catalogue.update(other)) == 1
        with pytest.raises(BadStep, match="user is number here and string in step fetch"):
            await catalogue.register(
                load_steps(step("b", {"user": {"role": "required", "type": "number"}}), GOAL_LANGUAGES)
            )

    asyncio.run(scenario())


def test_a_circle_of_three_is_refused_with_its_path() -> None:
    app = app_with(
        step("a", {**needs("from_b"), **gives("from_a")}),
        step("b", {**needs("from_c"), **gives("from_b")}),
    )
    with pytest.raises(BadStep, match="c -> a -> b -> c"):
        app.steps(step("c", {**needs("from_a"), **gives("from_c")}))


@pytest.mark.parametrize("language", ["lua", "ale"])
def test_a_script_that_does_not_compile_is_not_registered(language: str) -> None:
    app = weft.App("memory://")
    with pytest.raises(BadStep, match="does not compile"):
        app.steps(step("bad", {}, type="script", script={"language": language, "script": "((("}))
    assert app.registered.planned() == []


# --- bad input, and nobody else is disturbed ---------------------------------------------------------------------


def test_outputs_that_were_not_declared_are_dropped() -> None:
    app = app_with(FETCH)
    world = World(app)
    world.fake("fetch-user", {"email": "a@b", "name": "A", "password": "secret"})

    assert achieve(app, ["fetch-user"], {"user_id": "1"}, world).result().result == {"email": "a@b", "name": "A"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [({"email": 3}, "bad_output: email"), (["a@b"], "bad_output: email"), ("a@b", "bad_output: email")],
)
def test_outputs_of_the_wrong_type_fail_their_step_for_good(answer: Any, message: str) -> None:
    app = app_with(FETCH)
    world = World(app)
    world.fake("fetch-user", answer)
    with pytest.raises(RunFailed, match=message):
        achieve(app, ["fetch-user"], {"user_id": "1"}, world).result()

    assert len(world.calls("fetch-user")) == 1


def test_an_empty_array_gives_an_empty_list_and_ten_thousand_and_one_items_are_too_many() -> None:
    app = weft.App("memory://")

    @app.step
    async def one(ns: int) -> dict[str, int]:
        return {"m": ns}

    app.steps(step("one", {"ns": {"role": "required", "type": "array", "for_each": True}, **gives("m", type="number")}))
    world = World(app)
    assert achieve(app, ["one"], {"ns": []}, world).result()["m"] == []
    with pytest.raises(RunFailed, match="too_many_items"):
        achieve(app, ["one"], {"ns": list(range(10_001))}, world).result()

    assert achieve(app, ["one"], {"ns": [1]}, world).result()["m"] == [{"ns": 1, "m": 1}]


HOSTILE = {
    "endless_lua": {"language": "lua", "script": "while true do end"},
    "endless_ale": {"language": "ale", "script": "(let* ([f (lambda (g) (g g))]) (f f))"},
    "greedy_lua": {"language": "lua", "script": "local t = {} while true do t[#t + 1] = ('x'):rep(100000) end"},
    "greedy_ale": {"language": "ale", "script": '(let* ([a (lambda (g s) (g g (str s s)))]) (a a "xxxxxxxxxxxxxxxx"))'},
}


def test_hostile_scripts_and_servers_fail_their_own_flow_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", HERE)

    async def answer(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/hangs":
                await asyncio.sleep(60)
            case "/garbage":
                return web.Response(body=b"\xff\x00 not json", content_type="application/json")
            case "/private":
                raise web.HTTPFound("http://127.0.0.2:9/secret")
            case "/huge":
                return await _flood(request)
        return web.json_response({"fine": True})

    async def scenario() -> dict[str, str]:
        async with serving(answer) as base:
            app = weft.App("memory://")
            hostile = [step(name, {}, type="script", script=script) for name, script in HOSTILE.items()]
            for name in ("hangs", "garbage", "private", "huge", "fine"):
                http = {"endpoint": f"{base}/{name}", "timeout": 10_000 if name != "hangs" else 300}
                hostile.append(step(name, gives("fine", type="boolean"), type="sync", http=http))
            once = {"work_config": {"max_retries": 1, "backoff_ms": 1}}
            app.steps({"steps": [{**one, **once} for one in hostile]})
            async with app:
                started = {one["id"]: await app.start(app.goal(f"g-{one['id']}", one["id"])) for one in hostile}
                return {name: await _end(handle) for name, handle in started.items()}

    ends = asyncio.run(asyncio.wait_for(scenario(), 120))
    assert ends.pop("fine") == "completed"
    assert set(ends.values()) == {"failed"}, ends


async def _flood(request: web.Request) -> web.StreamResponse:
    """A gigabyte, as far as anybody reads it."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    try:
        for _ in range(1024):
            await response.write(b" " * 1024 * 1024)
    except (ConnectionError, OSError):
        pass
    return response


async def _end(handle: weft.Handle[Any]) -> str:
    try:
        await handle.result(timeout=120)
    except RunFailed:
        return "failed"
    return "completed"
