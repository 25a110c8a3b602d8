"""The tool ``openapi_action``: operations of OpenAPI documents, with credentials that no model, log or event sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import weft
from weft.agents.toolbox.openapi import find_operation, make_request, read_document
from weft.errors import BadValue, NotAllowed, UsageError
from weft.steps.http.auth_profiles import read_profile
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest, HttpResponse
from weft.steps.task_permissions import check_permitted
from weft.testing import World, calls, export_events

URL = "https://api.weather.example/v1/openapi.json"
DOCUMENT = {
    "openapi": "3.1.0",
    "servers": [{"url": "/v1"}],
    "paths": {
        "/cities/{city}/weather": {
            "parameters": [{"$ref": "#/components/parameters/city"}],
            "get": {"operationId": "getWeather", "parameters": [{"name": "unit", "in": "query"}]},
            "post": {"operationId": "reportWeather"},
        },
        "/odd": {"get": {"operationId": "odd", "parameters": [{"name": "c", "in": "cookie"}]}},
    },
    "components": {"parameters": {"city": {"name": "city", "in": "path", "required": True}}},
}
PROJECT = """
[tool.weft.auth.weather]
secret = "env:WEATHER_KEY"
in = "header"
name = "X-Api-Key"
hosts = ["api.weather.example"]
"""
SECRET = "very-secret-weather-key"
ALLOW = {"allow": "host", "names": ["*.weather.example"], "to": ["agent:helper"]}

Sent = list[HttpRequest]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sent:
    """The requests that were sent. The server echoes what it got."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEATHER_KEY", SECRET)
    requests: Sent = []

    async def send(_: HttpClient, request: HttpRequest, on_data: Callable[[bytes], bool] | None = None) -> HttpResponse:
        parts = urlsplit(request.url)
        check_permitted("host", f"{parts.hostname}:443")
        requests.append(request)
        body = DOCUMENT if request.url == URL else {"got": request.headers, "url": request.url}
        headers = {"content-type": "application/json", "set-cookie": "session=1"}
        return HttpResponse(status=200, reason="OK", headers=headers, body=json.dumps(body).encode(), request=request)

    monkeypatch.setattr(HttpClient, "send", send)
    return requests


def make_world(*rules: dict[str, Any]) -> tuple[World, Any]:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    app.model("fast", url="http://127.0.0.1:1/v1")
    return World(app), app.agent("helper", model="fast", tools=["openapi_action"])


def action(operation: str = "getWeather", **more: Any) -> Any:
    given = {"openapi_url": URL, "operation_id": operation, "params": {"city": "New York", "unit": "C"}, **more}
    return calls(openapi_action=given)


def told(world: World) -> Any:
    return json.loads(world.model_calls("fast")[1].messages[-1].text)


def test_an_operation_is_found_and_called(sent: Sent) -> None:
    world, agent = make_world(ALLOW)
    world.fake_model("fast", action(), "Sunny.")

    world.run(agent("weather?"))

    assert [(one.method, one.url) for one in sent] == [
        ("GET", URL),
        ("GET", "https://api.weather.example/v1/cities/New%20York/weather?unit=C"),
    ]
    assert told(world)["status"] == 200
    assert "set-cookie" not in told(world)["headers"]


def test_hosts_are_denied_unless_the_policy_allows_them(sent: Sent) -> None:
    world, agent = make_world()
    world.fake_model("fast", action(), "Sorry.")

    world.run(agent("weather?"))

    assert told(world)["error"]["code"] == "policy.denied"
    assert sent == []


def test_an_operation_that_changes_something_is_asked_for(sent: Sent) -> None:
    world, agent = make_world(ALLOW)
    world.fake_model("fast", action("reportWeather", params={"city": "Rome", "sky": "blue"}), "Done.")
    run = world.start(agent("report"))
    world.settle()
    assert len(sent) == 1, "only the document was read"

    run.answer("turn/~0/tools/0/approve", by="ann")
    run.result()

    assert (sent[1].method, sent[1].body) == ("POST", b'{"sky":"blue"}')


def test_credentials_are_sent_and_seen_nowhere(sent: Sent, caplog: pytest.LogCaptureFixture) -> None:
    world, agent = make_world(ALLOW)
    world.fake_model("fast", action(auth_profile="weather"), "Sunny.")
    run = world.start(agent("weather?"))
    run.result()

    assert sent[1].headers["x-api-key"] == SECRET
    assert "x-api-key" not in sent[0].headers
    messages = [message.text for call in world.model_calls("fast") for message in call.messages]
    seen = [*messages, str(export_events(run)), str(run.events), caplog.text]
    assert not any(SECRET in text for text in seen), "the server has echoed it"


def test_credentials_go_to_their_hosts_only(sent: Sent) -> None:
    world, agent = make_world({"allow": "host", "names": ["*"], "to": ["agent:*"]})
    (Path.cwd() / "pyproject.toml").write_text(PROJECT.replace("api.weather", "other"))
    world.fake_model("fast", action(auth_profile="weather"), "Sorry.")

    world.run(agent("weather?"))

    assert told(world)["error"]["code"] == "tool.wrong_host"
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"operation": "getWether"}, 'There is no operation "getWether". Did you mean "getWeather"?'),
        ({"params": {}}, "getWeather needs the parameter city"),
        ({"params": {"city": "Rome", "sky": "blue"}}, "getWeather has no parameter sky"),
        ({"operation": "odd", "params": {}}, "a parameter in cookie, which cannot be sent"),
        ({"auth_profile": "wether"}, 'There is no auth profile "wether"'),
    ],
)
def test_what_cannot_be_called_is_told_back(sent: Sent, given: dict[str, Any], expected: str) -> None:
    world, agent = make_world(ALLOW)
    world.fake_model("fast", action(**given), "Sorry.")

    world.run(agent("weather?"))

    assert expected in told(world)["error"]["message"]
    assert len(sent) == 1


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"paths": []}', b"openapi: 3.1.0", b"x" * (4 * 1024 * 1024 + 1)])
def test_what_is_no_document_is_refused(raw: bytes) -> None:
    with pytest.raises(BadValue, match="OpenAPI document"):
        read_document(raw)


def test_servers_have_variables_and_paths_are_quoted() -> None:
    servers = [{"url": "https://{region}.example/a/", "variables": {"region": {"default": "eu"}}}]
    operation = find_operation({**DOCUMENT, "servers": servers}, "getWeather", URL)

    assert make_request(operation, {"city": "../x"}).url == "https://eu.example/a/cities/..%2Fx/weather"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"secret": "plain text", "hosts": ["a.example"], "name": "x"},
        {"secret": "env:KEY", "name": "x"},
        {"secret": "env:KEY", "hosts": ["a.example"]},
        {"secret": "env:KEY", "hosts": ["a.example"], "in": "cookie", "name": "x"},
        {"secret": "env:KEY", "hosts": ["a.example"], "name": "x", "more": 1},
    ],
)
def test_a_profile_that_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"\[tool.weft.auth.weather\]"):
        read_profile("weather", given)


def test_a_secret_may_be_a_bearer_token_or_in_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", SECRET)
    bearer = read_profile("b", {"secret": "env:KEY", "in": "bearer", "hosts": ["a.example"]})
    query = read_profile("q", {"secret": "env:KEY", "in": "query", "name": "key", "hosts": ["a.example:443"]})

    assert bearer.credentials() == ({"authorization": f"Bearer {SECRET}"}, {})
    assert query.credentials() == ({}, {"key": SECRET})
    query.check_host("q", "https://a.example/x")
    with pytest.raises(NotAllowed):
        query.check_host("q", "http://a.example/x")


def test_answers_of_apis_are_words_of_strangers(sent: Sent) -> None:
    app = weft.App(policy={"weft": "policy/1", "rules": [ALLOW]})
    app.model("fast", url="http://127.0.0.1:1/v1")

    @app.step(effect="pure")
    async def post_note(text: str) -> str:
        """Post a note."""
        return text

    agent = app.agent("helper", model="fast", tools=["openapi_action", weft.tool(post_note, touches=["outside"])])
    world = World(app)
    world.fake_model("fast", action(), action(), calls(post_note={"text": "sunny"}), "Done.")
    run = world.start(agent("weather?"))
    world.settle()

    assert [one.location for one in run.waiting_for()] == ["turn/~2/tools/0/approve"]
