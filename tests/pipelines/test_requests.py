"""The request of a pipeline against a real server: what it sends, and what it makes of each kind of answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from tests.steps.http_kit import FixedClock, calling, go, serving
from weft.errors import NotAllowed
from weft.pipelines.faults import PipelineFailed
from weft.pipelines.pipeline import read_pipeline
from weft.steps.pipelines.failures import is_final_failure
from weft.steps.pipelines.run import PipelineRunner

T = TypeVar("T")
KEY = "very-secret-weather-key"
PROFILES = """
[tool.weft.auth]
head = {secret = "env:WEATHER_KEY", in = "header", name = "X-Api-Key", hosts = ["127.0.0.1"]}
query = {secret = "env:WEATHER_KEY", in = "query", name = "key", hosts = ["127.0.0.1"]}
other = {secret = "env:WEATHER_KEY", in = "bearer", hosts = ["api.example"]}
unset = {secret = "env:NO_SUCH_KEY", in = "bearer", hosts = ["127.0.0.1"]}
"""


@pytest.fixture
def profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROFILES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEATHER_KEY", KEY)


class Inline:
    """Runs functions where they are called."""

    async def in_thread(self, body: Callable[[], T]) -> T:
        return body()

    async def in_process(self, body: Callable[..., T], *arguments: Any) -> T:
        return body(*arguments)


async def run(handler: Any, *steps: dict[str, Any], data: Any = None) -> Any:
    async with serving(handler) as base, calling() as client:
        placed = [{**step, "url": step["url"].replace("$", base)} if "url" in step else step for step in steps]
        runner = PipelineRunner(lambda: client, FixedClock())
        return json.loads(await runner.run(read_pipeline(placed), json.dumps(data).encode(), Inline()))


def answer(value: Any, **options: Any) -> Any:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.json_response(value, **options)

    return handler


def fetch(**arguments: Any) -> dict[str, Any]:
    return {"step": "http_request", "url": "$/x", **arguments}


def test_the_answer_replaces_the_data_and_flows_on() -> None:
    rows = [{"v": 2}, {"v": 1}]
    steps = ({"step": "top_k", "k": 1}, fetch(), {"step": "table_sort", "field": "v"})

    assert go(run(answer(rows), *steps, data=[{"old": 1}])) == [{"v": 1}, {"v": 2}]


def test_get_sends_params_as_query_and_post_as_json() -> None:
    seen: list[tuple[str, str, str, str | None]] = []

    async def note(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.query_string, await request.text(), request.headers.get("X-Key")))
        return web.json_response(1)

    params = {"a": [1, "b"], "c": True}
    go(run(note, fetch(params=params, headers={"X-Key": "k"}), fetch(params=params, method="POST")))

    assert seen == [("GET", "a=1&a=b&c=true", "", "k"), ("POST", "", '{"a":[1,"b"],"c":true}', None)]


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("profile", ["head", "query"])
def test_credentials_are_named_and_sent_and_never_seen(profile: str, method: str) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        sent = [request.headers.get("X-Api-Key"), request.query.get("key")]
        return web.json_response({"got_key": KEY in sent, "echo": sent, "params": request.query.get("a")})

    told = go(run(echo, fetch(auth_profile=profile, method=method, params={"a": "1"})))

    assert (told["got_key"], told["params"]) == (True, "1" if method == "GET" else None)
    assert KEY not in json.dumps(told)


@pytest.mark.usefixtures("profiles")
def test_credentials_go_to_no_other_host() -> None:
    asked: list[str] = []

    async def note(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response(1)

    with pytest.raises(NotAllowed, match=r"The auth profile other is not for 127\.0\.0\.1"):
        go(run(note, fetch(auth_profile="other")))
    for name, problem in (("heat", 'no auth profile "heat". Did you mean'), ("unset", "NO_SUCH_KEY")):
        with pytest.raises(PipelineFailed, match=problem) as failed:
            go(run(note, fetch(auth_profile=name)))
        assert (failed.value.code, failed.value.index) == ("pipeline.bad_argument", 0)
        assert is_final_failure(failed.value)
    assert asked == []


def test_what_is_not_json_is_text() -> None:
    async def plain(_: web.Request) -> web.StreamResponse:
        return web.Response(text="a,b\n1,2")

    assert go(run(plain, fetch())) == "a,b\n1,2"


@pytest.mark.parametrize(("status", "final"), [(400, True), (404, True), (429, False), (500, False), (503, False)])
def test_a_status_of_400_and_above_is_an_error(status: int, final: bool) -> None:
    with pytest.raises(PipelineFailed) as failed:
        go(run(answer({"detail": "no"}, status=status), {"step": "jq_transform", "query": "[]"}, fetch()))

    assert (failed.value.code, failed.value.index) == ("pipeline.http", 1)
    assert str(status) in failed.value.message
    assert is_final_failure(failed.value) is final


def test_a_server_says_when_to_ask_again() -> None:
    with pytest.raises(PipelineFailed) as failed:
        go(run(answer(1, status=503, headers={"Retry-After": "7"}), fetch()))

    assert failed.value.retry_after_ms == 7_000


def test_an_answer_that_is_too_large_is_refused() -> None:
    with pytest.raises(PipelineFailed) as failed:
        go(run(answer("x" * (17 << 20)), fetch()))

    assert failed.value.code == "pipeline.too_large"


def test_json_that_is_none_is_an_error() -> None:
    async def broken(_: web.Request) -> web.StreamResponse:
        return web.Response(text="{", content_type="application/json")

    with pytest.raises(PipelineFailed) as failed:
        go(run(broken, fetch()))
    assert failed.value.code == "pipeline.http"


@pytest.mark.parametrize("raw", ["{", "[" * 150 + "]" * 150])
def test_an_answer_to_a_post_that_cannot_be_kept_as_json_is_text(raw: str) -> None:
    """It was performed, so it must not be told as a failure."""

    async def odd(_: web.Request) -> web.StreamResponse:
        return web.Response(text=raw, content_type="application/json")

    assert go(run(odd, fetch(method="POST"))) == raw
    with pytest.raises(PipelineFailed):
        go(run(odd, fetch()))


def test_a_private_address_is_refused_whoever_asks() -> None:
    with pytest.raises(NotAllowed):
        go(run(answer(1), fetch(url="http://127.0.0.2:9/x")))


@pytest.mark.parametrize("url", ["http://u:p@example.com/", "http://exa mple.com", "https://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(PipelineFailed) as failed:
        go(run(answer(1), fetch(url=url)))

    assert (failed.value.code, failed.value.index) == ("pipeline.bad_argument", 0)
