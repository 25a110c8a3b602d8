"""Workflows and node types, health, numbers."""

import asyncio
import re

import pytest

import weft
from tests.server.kit import API, Server, covers, quoted, serving
from tests.server.shop import REMOTE, shop
from weft.steps.node_types import NodeType, register_node_type

register_node_type(NodeType("tests.server.shout", lambda _config, text: str(text).upper(), {"type": "object"}, "Loud."))


@covers("listWorkflows")
def test_all_workflows_are_listed_in_pages(server: Server) -> None:
    page = server.get(f"{API}/workflows?limit=4").json
    rest = server.get(f"{API}/workflows?limit=100&cursor={quoted(page['cursor'])}").json

    listed = {one["name"]: one for one in page["workflows"] + rest["workflows"]}
    assert set(listed) >= {"hello", "order", "ship", "picture", "unlucky"}
    assert (listed["hello"]["style"], listed["hello"]["hosted"]) == ("code", True)
    assert listed["hello"]["description"] == "Greets somebody."
    assert listed["picture"]["created_at"] is not None


def test_a_goal_is_listed_by_its_name_and_goals_without_one_are_not() -> None:
    app = weft.App("memory://")

    @app.step(gives="total")
    async def price(order_id: str) -> int:
        return await asyncio.get_running_loop().create_future()

    app.goal("priced", price)
    with serving(app) as server:
        started = server.post(f"{API}/runs", {"goals": ["price"], "input": {"order_id": "o-1"}, "id": "unnamed"})
        assert started.status == 201
        (listed,) = server.get(f"{API}/workflows").json["workflows"]
        assert (listed["name"], listed["style"], listed["hosted"]) == ("priced", "goal", True)
        server.post(f"{API}/runs/unnamed/cancel")  # or the host waits for its step


@covers("listVersions", "getVersion", "listTags", "getTag", "putTag", "undoTag", "redoTag", "startRun")
def test_a_tag_stands_for_a_version_and_runs_may_be_started_by_it() -> None:
    app = shop()
    with serving(app) as server:
        (old,) = server.get(f"{API}/workflows/picture").json["workflows"]
        assert server.ask("PUT", f"{API}/workflows/picture/tags/live", {"version": old["version"]}).status == 200
        assert server.ask("PUT", f"{API}/workflows/picture/tags/live", {"version": "none"}).status == 404
        assert server.get(f"{API}/workflows/picture").json["workflows"][0]["tags"] == ["live"]

        detail = server.get(f"{API}/workflows/picture/versions/{old['version']}").json
        assert (detail["version"], detail["tags"]) == (old["version"], ["live"])
        assert detail["source"]["nodes"] == REMOTE["nodes"]
        assert detail["input"]["properties"] == {"file": {"type": "string"}}

        started = server.post(f"{API}/runs", {"workflow": "picture:live", "input": {"file": "a"}})
        assert server.get(f"{API}/runs/{started.json['id']}").json["version"] == old["version"]
        first = server.get(f"{API}/runs/{started.json['id']}/events?limit=1").json["events"][0]
        assert first["data"]["tag"] == "live"
        assert server.get(f"{API}/workflows/picture").json["workflows"][0]["open_runs"] == 1

        tag = f"{API}/workflows/picture/tags/live"
        assert server.post(f"{tag}/redo", {}).code == "tag.no_move"
        undone = server.post(f"{tag}/undo", {"reason": "wrong", "by": "ann"}).json
        assert (undone["version"], undone["cursor"], undone["moves"], undone["reason"]) == (None, 0, 1, "wrong")
        assert undone["by"] == "ann"
        assert server.post(f"{API}/runs", {"workflow": "picture:live", "input": {"file": "a"}}).status == 404
        assert server.get(f"{API}/workflows/picture/tags").json["tags"] == []
        redone = server.post(f"{tag}/redo", {}).json
        assert (redone["version"], redone["by"]) == (old["version"], "local")
        assert [one["tag"] for one in server.get(f"{API}/workflows/picture/tags").json["tags"]] == ["live"]
        moves = server.get(tag).json["history"]
        assert [(move["before"], move["after"]) for move in moves] == [(None, old["version"])]


@covers("patchWorkflow")
def test_a_patch_makes_a_version_and_moves_a_tag() -> None:
    with serving(shop()) as server:
        (old,) = server.get(f"{API}/workflows/picture").json["workflows"]
        path = f"{API}/workflows/picture/patch"
        ops = [{"op": "add", "path": "/limits", "value": {"hops": 50}}]

        made = server.post(path, {"tag": "eu/live", "patch": {"base": old["version"], "ops": ops}, "reason": "safer"})
        assert (made.status, made.json["base"], made.json["moved"]) == (200, old["version"], True)
        tag = server.get(f"{API}/workflows/picture/tags/eu%2Flive").json
        assert (tag["version"], tag["history"][0]["reason"]) == (made.json["version"], "safer")
        stale = server.post(path, {"tag": "eu/live", "patch": {"base": old["version"], "ops": ops}})
        assert (stale.status, stale.code) == (409, "patch.stale_base")
        assert server.post(path, {"patch": {"ops": [{"op": "paint"}]}}).status == 422
        assert server.post(path, {"text": "name: other"}).status == 422
        assert server.post(f"{API}/workflows/nothing/patch", {"patch": {"ops": []}}).status == 404
        versions = server.get(f"{API}/workflows/picture").json["workflows"]
        assert [(one["origin"], one["base"]) for one in versions] == [("hosted", ""), ("patch", old["version"])]


def test_a_graph_that_the_app_no_longer_has_runs_in_the_version_that_is_named(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    old = {"weft": "graph/1", "name": "pace", "output": {"is": "old"}, "nodes": {"go": {"pass": True}}}

    def app(document: dict[str, object]) -> weft.App:
        made = weft.App(url)
        made.graph(document)
        return made

    with serving(app(old)) as server:
        version = server.get(f"{API}/workflows/pace").json["workflows"][0]["version"]
        server.ask("PUT", f"{API}/workflows/pace/tags/stable", {"version": version})
    with serving(app({**old, "output": {"is": "new"}})) as server:
        for number, (named, wanted, given) in enumerate(
            (
                ("pace:stable", None, "old"),
                (f"pace@{version}", None, "old"),
                ("pace", version, "old"),
                ("pace", None, "new"),
            )
        ):
            new = {"workflow": named, "version": wanted, "id": f"pace-{number}"}
            assert server.post(f"{API}/runs", new).status == 201
            assert server.result(f"pace-{number}")["output"] == {"is": given}
        wrong = server.post(f"{API}/runs", {"workflow": "pace:stable", "id": " x"})
        assert wrong.code == "usage.invalid"


@pytest.mark.parametrize("path", ["workflows/nobody", "workflows/hello/versions/7", "workflows/nobody/versions/1"])
def test_a_workflow_that_is_not_there_is_not_found(server: Server, path: str) -> None:
    assert server.get(f"{API}/{path}").code == "run.not_found"


@pytest.mark.parametrize("cursor", ["x", "%00", "WzEuNV0", "bnVsbA"])
def test_a_cursor_that_is_none_is_refused(server: Server, cursor: str) -> None:
    assert server.get(f"{API}/workflows?cursor={cursor}").status == 422


@covers("listNodeTypes")
def test_node_types_that_were_added_are_listed(server: Server) -> None:
    listed = {one["name"]: one for one in server.get(f"{API}/node-types").json["node_types"]}

    assert listed["tests.server.shout"]["description"] == "Loud."
    assert listed["tests.server.shout"]["config"] == {"type": "object"}


@covers("alive", "ready")
def test_a_server_that_works_is_alive_and_ready(server: Server) -> None:
    assert server.get("/healthz").json["status"] == "alive"
    assert server.get("/readyz").json["status"] == "ready"
    assert server.ask("HEAD", "/healthz").status == 200


def test_a_server_that_stops_is_not_ready(server: Server) -> None:
    server.api.services.closing.set()
    try:
        assert server.get("/readyz").status == 503
        assert server.get("/healthz").status == 200
    finally:
        server.api.services.closing.clear()


@covers("metrics")
def test_numbers_are_there_and_their_labels_are_bounded(server: Server) -> None:
    for n in range(3):
        server.result(server.start("hello", name=f"secret name {n}"))
    server.result(server.start("fragile", n=99))
    server.get("/nowhere/at/all")

    answer = server.get("/metrics")
    text = answer.raw.decode()

    assert answer.headers["content-type"].startswith("text/plain")
    assert float(re.findall(r'weft_transitions_total\{kind="run_completed"\} (\S+)', text)[0]) >= 3
    assert float(re.findall(r'weft_tasks_total\{outcome="failed"\} (\S+)', text)[0]) >= 1
    assert float(re.findall(r'weft_runs\{status="completed"\} (\S+)', text)[0]) >= 3
    assert float(re.findall(r"weft_hop_seconds_count (\S+)", text)[0]) >= 3
    assert 'le="0.001"' in text
    for name in ("weft_commit_seconds_count", "weft_commit_bytes_sum", "weft_queue_age_seconds", "weft_retries_total"):
        assert re.search(rf"^{name} ", text, re.MULTILINE), name
    assert "secret name" not in text
    assert 'route="none",status="404"' in text
    assert set(re.findall(r"[{,](\w+)=", text)) <= {"kind", "outcome", "status", "route", "le", "state", "version"}


@covers("openapi")
def test_the_document_is_sent_as_it_is_made(server: Server) -> None:
    document = server.get("/openapi.json").json

    assert document["openapi"] == "3.1.0"
    assert f"{API}/runs/{{id}}/messages" in document["paths"]
