"""Workflows as screens show them: by name, their pictures, sources, differences and tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.kit import API, Server, covers, serving
from tests.server.shop import shop
from weft.observe.box_standing import BoxStanding
from weft.observe.pictures import Arrow, Box, Picture
from weft.observe.workflow_activity import add_standings, join_pictures

FIRST = """\
weft: graph/1
name: leads    # ours
nodes:
  look: {step: greet, with: {name: ann}, next: tell}
  tell: {step: greet, with: {name: bob}}
"""
SECOND = """\
weft: graph/1
name: leads    # ours
nodes:
  look: {step: greet, with: {name: eve}, next: tell}
  tell: {step: greet, with: {name: bob}, next: note}
  note: {step: greet, with: {name: zoe}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    app = shop()
    file = tmp_path_factory.mktemp("graphs") / "leads.yaml"
    file.write_text(FIRST)
    app.graph(file)

    @app.step(gives="total")
    async def price(order_id: str) -> int:
        return len(order_id)

    app.goal("priced", price)
    with serving(app) as running:
        for number in range(3):
            running.result(running.start("hello", f"hello-{number}", name="ann"))
        running.result(running.start("fragile", "fragile-1", n=1))
        running.start("order", "o-1", order_id="o-1")
        running.until("o-1", "message_awaited")
        yield running


def summaries(server: Server) -> dict[str, Any]:
    return {one["name"]: one for one in server.get(f"{API}/workflow-summaries").json["workflows"]}


@covers("listWorkflowSummaries")
def test_workflows_are_listed_by_name_with_what_their_runs_did(server: Server) -> None:
    found = summaries(server)

    hello = found["hello"]
    assert (hello["style"], hello["hosted"], hello["newest"], hello["versions"]) == ("code", True, "1", 1)
    assert (hello["open_runs"], hello["day_runs"], hello["day_failed"], hello["more"]) == (0, 3, 0, False)
    assert hello["median_seconds"] >= 0
    assert hello["last_run"]["id"] == "hello-2"
    assert hello["description"] == "Greets somebody."
    assert (found["fragile"]["day_failed"], found["order"]["open_runs"]) == (1, 1)
    assert (found["leads"]["style"], found["leads"]["last_run"]) == ("graph", None)
    assert found["priced"]["style"] == "goal"


def test_workflows_are_found_by_the_beginning_of_their_names_and_in_pages(server: Server) -> None:
    assert [one["name"] for one in server.get(f"{API}/workflow-summaries?q=hel").json["workflows"]] == ["hello"]
    page = server.get(f"{API}/workflow-summaries?limit=2").json
    assert len(page["workflows"]) == 2
    rest = server.get(f"{API}/workflow-summaries?limit=100&cursor={page['cursor']}").json["workflows"]
    assert [one["name"] for one in [*page["workflows"], *rest]] == list(summaries(server))


@covers("getWorkflow")
def test_a_workflow_says_what_it_takes_and_where_its_code_is(server: Server) -> None:
    about = server.get(f"{API}/workflows/hello/about").json

    assert about["input"]["required"] == ["name"]
    assert "shop.py:" in about["where"]
    assert server.get(f"{API}/workflows/nothing/about").status == 404


@covers("getVersionPicture", "getVersionStanding")
def test_code_is_drawn_from_what_its_runs_recorded(server: Server) -> None:
    picture = server.get(f"{API}/workflows/hello/versions/1/picture").json
    standing = server.get(f"{API}/workflows/hello/versions/1/standing").json

    assert [box["id"] for box in picture["boxes"]] == ["", "greet"]
    assert standing["boxes"] == {"": {"mark": "done"}, "greet": {"mark": "done", "done": 3}}
    assert (standing["runs"], standing["more"], standing["arrows"]) == (3, False, {">greet": 3})
    assert {arrow["id"] for arrow in picture["arrows"]} == set(standing["arrows"])


def test_code_that_did_not_run_has_no_picture(server: Server) -> None:
    answer = server.get(f"{API}/workflows/family/versions/1/picture")

    assert answer.status == 404
    assert "no run within a day" in answer.json["detail"]


def newest(server: Server) -> str:
    return str(server.get(f"{API}/workflows/leads/about").json["newest"])


@covers("getVersionPicture")
def test_a_graph_and_a_goal_are_drawn_without_any_run(server: Server) -> None:
    graph = server.get(f"{API}/workflows/leads/versions/{newest(server)}/picture").json
    goal = server.get(f"{API}/workflows/priced/versions/1/picture").json

    assert {box["id"] for box in graph["boxes"]} >= {"look", "tell"}
    assert "price" in {box["id"] for box in goal["boxes"]}
    assert not any(box["id"].startswith("?") for box in goal["boxes"]), "a start gives what nothing provides"


@covers("getVersionSource")
def test_the_source_is_the_text_as_it_was_written(server: Server) -> None:
    found = server.get(f"{API}/workflows/leads/versions/{newest(server)}/source").json
    assert found == {"text": FIRST, "is_written": True, "language": "yaml", "where": ""}

    code = server.get(f"{API}/workflows/hello/versions/1/source").json
    assert (code["text"], code["language"]) == ("", "python")
    assert "shop.py:" in code["where"]


@covers("diffVersions")
def test_two_versions_are_compared_as_text_and_as_a_picture(server: Server) -> None:
    first = newest(server)
    assert server.ask("PUT", f"{API}/workflows/leads/tags/live", {"version": first}).status == 200
    patched = server.post(f"{API}/workflows/leads/patch", {"tag": "live", "patch": {"base": first}, "text": SECOND})
    assert patched.status == 200, patched.raw
    second = patched.json["version"]

    diff = server.get(f"{API}/workflows/leads/diff/{first}/{second}").json

    assert not diff["equal"]
    assert [(line["change"], line["text"].split(":")[0].strip()) for line in diff["lines"] if "change" in line] == [
        ("removed", "look"),
        ("removed", "tell"),
        ("added", "look"),
        ("added", "tell"),
        ("added", "note"),
    ]
    assert diff["boxes"] == {"note": "added", "look": "changed", "tell": "changed"}
    assert diff["arrows"] == {"tell>note": "added"}
    assert {box["id"] for box in diff["picture"]["boxes"]} >= {"look", "tell", "note"}
    assert "adds the node note" in diff["sentences"]
    same = server.get(f"{API}/workflows/leads/diff/{second}/{second}").json
    assert (same["equal"], same["boxes"]) == (True, {})
    assert server.get(f"{API}/workflows/hello/diff/1/1").status == 409


@covers("removeTag")
def test_a_tag_that_is_removed_names_nothing_until_that_is_undone(server: Server) -> None:
    path = f"{API}/workflows/hello/tags/old"
    assert server.ask("PUT", path, {"version": "1"}).status == 200
    assert summaries(server)["hello"]["tags"] == [{"tag": "old", "version": "1"}]

    assert server.ask("DELETE", path, {"reason": "not used"}).json["version"] is None

    assert summaries(server)["hello"]["tags"] == []
    assert server.ask("DELETE", path).status == 404
    started = server.post(f"{API}/runs", {"workflow": "hello:old", "input": {"name": "ann"}})
    assert started.status == 404
    assert server.post(f"{path}/undo", {}).json["version"] == "1"


def test_the_standings_of_several_runs_are_added() -> None:
    newest = BoxStanding(mark="waiting", open=1)
    older = BoxStanding(mark="failed", failed=1, badges=["attempt 2 of 4"])

    both = add_standings(add_standings(None, newest), older)
    with_done = add_standings(both, BoxStanding(mark="done", done=2))

    assert both == BoxStanding(mark="waiting", open=1, failed=1)
    assert with_done == BoxStanding(mark="done", open=1, done=2, failed=1)


def test_joined_pictures_have_everything_once() -> None:
    a = Picture("a", (Box(""), Box("x", mark="done", times=2)), (Arrow("", "x", id=">x", times=3, taken=True),))
    b = Picture("b", (Box("x"), Box("y")), (Arrow("x", "y", id="x>y"),))

    joined = join_pictures("both", [a, b])

    assert [(box.id, box.mark, box.times) for box in joined.boxes] == [
        ("", "idle", 0),
        ("x", "idle", 0),
        ("y", "idle", 0),
    ]
    assert [(arrow.id, arrow.times) for arrow in joined.arrows] == [(">x", 0), ("x>y", 0)]
