"""The policy over HTTP: shown, set and tested by the operator; starts over a limit wait."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from tests.server.kit import API, Server, covers, serving

NO_SHELL = "weft: policy/1\nrules: [{deny: tool, names: [shell]}]\n"
ONE_RUN = "weft: policy/1\nrules: [{limit: {runs: 1, per: day}}, {deny: workflow, names: [secret]}]\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    own = {"weft": "policy/1", "rules": [{"deny": "host", "names": ["evil.example"]}]}
    app = weft.App(f"sqlite:///{tmp_path}/weft.db", durability="fast", policy=own)

    @app.workflow
    async def hello(ctx: weft.Context) -> str:
        return "hello"

    @app.workflow
    async def secret(ctx: weft.Context) -> str:
        return "secret"

    with serving(app) as found:
        yield found


def put(server: Server, text: str) -> int:
    answer = server.ask("PUT", f"{API}/policy", {"text": text, "by": "ann", "reason": "because"})
    assert answer.status == 200, answer.raw
    return int(answer.json["version"])


@covers("getPolicy", "setPolicy", "listPolicies")
def test_a_policy_is_set_shown_and_kept_in_versions(server: Server) -> None:
    empty = server.get(f"{API}/policy").json
    assert (empty["version"], empty["text"], empty["program"]) == (0, "", ["deny host evil.example"])

    assert [put(server, text) for text in (NO_SHELL, NO_SHELL, ONE_RUN)] == [1, 1, 2]

    now = server.get(f"{API}/policy").json
    assert (now["version"], now["text"], now["by"], now["reason"]) == (2, ONE_RUN, "ann", "because")
    assert now["rules"] == ["deny workflow secret", "limit 1 run per day"]
    assert server.get(f"{API}/policy?version=1").json["text"] == NO_SHELL
    assert server.get(f"{API}/policy?version=3").code == "policy.not_found"
    first = server.get(f"{API}/policy/versions?limit=1").json
    assert [one["version"] for one in first["versions"]] == [2]
    rest = server.get(f"{API}/policy/versions?cursor={first['cursor']}").json
    assert ([one["version"] for one in rest["versions"]], rest["cursor"]) == ([1], None)


def test_a_policy_that_cannot_be_read_is_refused_with_what_is_wrong(server: Server) -> None:
    answer = server.ask("PUT", f"{API}/policy", {"text": "weft: policy/1\nrules:\n  - {deny: tol, names: [x]}\n"})

    assert (answer.status, answer.code) == (422, "policy.unknown_action")
    (found,) = answer.json["findings"]
    assert (found["path"], found["line"]) == ("rules[0].deny", 3)
    assert server.get(f"{API}/policy").json["version"] == 0


@covers("testPolicy")
def test_a_policy_is_tested(server: Server) -> None:
    put(server, NO_SHELL)

    def said(**question: object) -> tuple[str, str]:
        found = server.post(f"{API}/policy/test", question).json
        return found["permission"], found.get("rule", "")

    assert said(action="tool", name="shell", agent="a") == ("deny", "deny tool shell")
    assert said(action="tool", name="other", agent="a") == ("allow", "")
    assert said(action="host", name="evil.example") == ("deny", "deny host evil.example")
    assert server.post(f"{API}/policy/test", {"action": "walk", "name": "x"}).status == 422


def test_a_start_over_a_limit_is_told_when_to_come_again(server: Server) -> None:
    put(server, ONE_RUN)
    assert server.post(f"{API}/runs", {"workflow": "hello"}).status == 201

    answer = server.post(f"{API}/runs", {"workflow": "hello"})

    assert (answer.status, answer.code) == (429, "policy.limit")
    assert 0 < int(answer.headers["retry-after"]) <= 86_400


def test_a_start_that_is_denied_is_forbidden(server: Server) -> None:
    put(server, ONE_RUN)

    answer = server.post(f"{API}/runs", {"workflow": "secret"})

    assert (answer.status, answer.code) == (403, "policy.denied")
