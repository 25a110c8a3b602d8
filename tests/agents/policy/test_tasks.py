"""Where work is handed out and where bodies run: steps, hosts and secrets that the policy does not permit."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

import weft
from weft.agents.policy.verdicts import Asked
from weft.core.event_parts import Policy
from weft.core.secrets import references_in
from weft.runtime.policy import CurrentPolicy
from weft.runtime.task_policy import TaskPermits
from weft.steps.http.client import HttpClient
from weft.steps.http.exchange import HttpRequest
from weft.steps.task_permissions import PERMITS, check_permitted
from weft.stores.memory import MemoryStore
from weft.testing import World


def policy(*rules: dict[str, Any]) -> CurrentPolicy:
    app = weft.App(policy={"weft": "policy/1", "rules": list(rules)})
    return CurrentPolicy(MemoryStore().policies, app.catalogue().policy())


def permits(*rules: dict[str, Any], agent: str = "", is_built_in: bool = False) -> TaskPermits:
    return TaskPermits(policy(*rules), Asked(action="host", name="", agent=agent), is_built_in=is_built_in)


def is_permitted(given: TaskPermits, action: Any, name: str) -> bool:
    try:
        given.check(action, name)
    except weft.NotAllowed as error:
        return error.code != "policy.denied"
    return True


async def outcome_of(call: Awaitable[str]) -> str:
    """Return the result of a step, or the code of its failure and how often it was attempted."""
    try:
        return await call
    except weft.StepFailed as error:
        return f"{error.failure.code} after {error.failure.attempts}"


def test_a_step_that_is_denied_fails_for_good_and_is_never_performed() -> None:
    app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "step", "names": ["wipe*"], "when": "args.all"}]})
    performed: list[bool] = []

    @app.step(retries=5)
    async def wipe(all: bool) -> str:
        performed.append(all)
        return "wiped"

    @app.workflow
    async def clean(ctx: weft.Context, all: bool) -> str:
        return await outcome_of(wipe(all))

    world = World(app)
    assert world.run(clean(False)) == "wiped"
    assert world.run(clean(True)) == "policy.denied after 1"
    assert performed == [False]


def test_a_graph_may_catch_that_a_step_is_denied() -> None:
    app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "step", "names": ["wipe"], "when": "args.all"}]})

    @app.step
    async def wipe(all: bool) -> str:
        return "wiped"

    app.graph(
        {
            "name": "clean",
            "input": {"all": "boolean"},
            "state": {"said": "string"},
            "nodes": {
                "first": {
                    "step": "wipe",
                    "with": {"all": "${input.all}"},
                    "save": {"state.said": "${output}"},
                    "catch": [{"error": "policy.denied", "to": "refused"}],
                },
                "refused": {"pass": True, "save": {"state.said": "not permitted"}},
            },
            "output": {"said": "${state.said}"},
        }
    )

    world = World(app)
    assert world.run("clean", {"all": False}) == {"said": "wiped"}
    assert world.run("clean", {"all": True}) == {"said": "not permitted"}


def test_a_secret_that_is_denied_is_not_revealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPEN_KEY", "open-sesame")
    monkeypatch.setenv("SAFE_KEY", "never-tell")
    app = weft.App(policy={"weft": "policy/1", "rules": [{"deny": "secret", "names": ["env:SAFE_*"]}]})

    @app.step(retries=3)
    async def reveal(key: weft.Secret) -> str:
        return str(len(key.reveal()))

    @app.workflow
    async def peek(ctx: weft.Context, name: str) -> str:
        return await outcome_of(reveal(weft.Secret(f"env:{name}")))

    world = World(app)
    assert world.run(peek("OPEN_KEY")) == "11"
    assert world.run(peek("SAFE_KEY")) == "policy.denied after 1"


def test_authors_code_may_do_what_no_rule_denies() -> None:
    code = permits({"deny": "host", "names": ["evil.example"]})

    assert is_permitted(code, "host", "good.example:443")
    assert not is_permitted(code, "host", "evil.example:443")
    assert is_permitted(code, "secret", "env:ANY")


def test_a_tool_may_call_only_hosts_that_are_allowed() -> None:
    tool = permits({"allow": "host", "names": ["api.example"], "to": ["agent:support"]}, agent="support")

    assert is_permitted(tool, "host", "api.example:443")
    assert not is_permitted(tool, "host", "other.example:443")
    assert not is_permitted(permits(agent="support"), "host", "api.example:443"), "also without any policy"


def test_a_tool_may_reveal_what_its_author_bound_and_what_a_rule_allows() -> None:
    tool = permits({"allow": "secret", "names": ["env:SHARED"]}, agent="support")
    tool.bind(b'{"key": {"$secret": "env:BOUND"}, "deep": [{"x": {"$secret": "file:/k"}}]}')

    assert is_permitted(tool, "secret", "env:BOUND")
    assert is_permitted(tool, "secret", "file:/k")
    assert is_permitted(tool, "secret", "env:SHARED")
    assert not is_permitted(tool, "secret", "env:OTHER")


def test_built_in_tools_may_reveal_the_secrets_of_the_program() -> None:
    assert is_permitted(permits(agent="support", is_built_in=True), "secret", "env:MCP_TOKEN")
    denied = permits({"deny": "secret", "names": ["*"]}, agent="support", is_built_in=True)
    assert not is_permitted(denied, "secret", "env:MCP_TOKEN")


def test_references_to_secrets_are_found_at_any_depth() -> None:
    assert references_in(b'{"a": 1}') == frozenset()
    assert references_in(b'[{"$secret": "env:A"}, {"b": {"$secret": "env:B"}}]') == {"env:A", "env:B"}


def test_a_recorded_task_says_which_agent_asked_for_it() -> None:
    assert Policy().agent == ""
    assert Policy(agent="support") != Policy()


@pytest.fixture
def redirecting() -> Iterator[int]:
    """A server that sends everybody to another name of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{server.server_port}/there")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_every_request_and_redirect_asks_for_its_host(redirecting: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1,localhost")
    given = permits({"allow": "host", "names": ["127.0.0.1"]}, agent="support")

    async def go() -> None:
        client = HttpClient()
        PERMITS.set(given)
        try:
            await client.send(HttpRequest(method="GET", url=f"http://127.0.0.1:{redirecting}/"))
        finally:
            await client.close()

    with pytest.raises(weft.NotAllowed, match=rf"The host localhost:{redirecting} of support is not permitted"):
        asyncio.run(go())


def test_without_permits_everything_is_permitted() -> None:
    check_permitted("host", "anything.example:443")


def test_an_agent_without_a_budget_does_not_begin_if_the_policy_requires_one() -> None:
    app = weft.App(policy={"weft": "policy/1", "require": {"budget": ["agent:spender"]}})
    app.model("fast", url="http://127.0.0.1:9/v1")
    spender = app.agent("spender", model="fast")
    saver = app.agent("saver", model="fast")
    world = World(app)
    world.fake_model("fast", "Hello.")

    assert world.run(saver("Hi")).output == "Hello."
    with pytest.raises(weft.RunFailed, match="requires a budget"):
        world.run(spender("Hi"))

    assert len(world.model_calls("fast")) == 1
