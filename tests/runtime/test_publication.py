"""Versions of graphs are made by patches, and a tag moves to them only from where the patch was written."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import BadPatch, NotFound, StaleBase
from weft.ports.tags import TagMove
from weft.runtime.publication import PublicationService, WorkflowPatch

WRITTEN = """\
# Says which it is.
weft: graph/1
name: pace
output: {is: slow}  # for now
nodes: {go: {pass: true}}
"""


def hosting(scenario: Any, tmp_path: Path) -> None:
    async def play() -> None:
        (tmp_path / "pace.yaml").write_text(WRITTEN)
        app = weft.App("memory://")
        app.graph(tmp_path / "pace.yaml")
        async with app:
            first = await app.start("pace")
            assert await first.result(timeout=200) == {"is": "slow"}
            await scenario(app)

    asyncio.run(play())


def replaced(value: str) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": "/output/is", "value": value}]


def test_a_patch_makes_a_version_and_moves_the_tag(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        (before,) = await app.workflows.list("pace")
        done = await app.workflows.patch("pace", replaced("fast"), tag="live", reason="faster")

        assert (done.base, done.moved) == (before.version, True)
        tagged = await app.start("pace:live")
        assert await tagged.result(timeout=200) == {"is": "fast"}
        plain = await app.start("pace")
        assert await plain.result(timeout=200) == {"is": "slow"}, "the hosted version is what it was"
        made = await app.workflows.get("pace", done.version)
        assert (made.base, made.ops, made.origin, made.text) == (before.version, replaced("fast"), "patch", "")
        (move,) = (await app.workflows.history("pace", "live")).history
        assert (move.before, move.after, move.reason) == (None, done.version, "faster")
        again = await app.workflows.patch("pace", [], tag="live")
        assert not again.moved

    hosting(scenario, tmp_path)


def test_a_graph_that_is_registered_later_is_stored_with_the_next_start(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        app.graph({"weft": "graph/1", "name": "later", "nodes": {"go": {"pass": True}}})
        assert await app.workflows.list("later") == [], "nothing has started since"
        for _ in range(2):
            await (await app.start("pace")).result(timeout=200)
        assert len(await app.workflows.list("later")) == 1

    hosting(scenario, tmp_path)


def test_a_document_is_stored_as_its_author_wrote_it(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        (before,) = await app.workflows.list("pace")
        assert (await app.workflows.get("pace", before.version)).text == WRITTEN
        text = WRITTEN.replace("slow", "swift")
        done = await app.workflows.patch("pace", document=text)
        assert (done.tag, (await app.workflows.get("pace", done.version)).text) == ("main", text)
        back = await app.start("pace~0")
        assert await back.result(timeout=200) == {"is": "swift"}
        with pytest.raises(NotFound):
            await app.start("pace~1")

    hosting(scenario, tmp_path)


def test_a_stale_base_is_refused_and_nothing_moves(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        (before,) = await app.workflows.list("pace")
        first = await app.workflows.patch("pace", replaced("fast"), base=before.version)
        with pytest.raises(StaleBase) as stale:
            await app.workflows.patch("pace", replaced("slower"), base=before.version)
        assert stale.value.context["version"] == first.version
        assert len((await app.workflows.history("pace", "main")).history) == 1
        second = await app.workflows.patch("pace", replaced("slower"), base=first.version)
        assert (await app.workflows.undo_tag("pace", "main")).version == first.version
        assert (await app.workflows.redo_tag("pace", "main")).version == second.version

    hosting(scenario, tmp_path)


def test_a_tag_that_moves_meanwhile_is_not_moved_over(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        service = app.service
        real = service.store.tags.write

        async def write(tag: Any, move: TagMove | None = None) -> bool:
            service.store.tags.write = real  # type: ignore[method-assign]
            await app.workflows.patch("pace", replaced("other"))
            return await real(tag, move)

        service.store.tags.write = write  # type: ignore[method-assign]
        with pytest.raises(StaleBase):
            await PublicationService(service).publish("pace", "main", WorkflowPatch(patch={"ops": replaced("mine")}))
        (move,) = (await app.workflows.history("pace", "main")).history
        assert (await app.workflows.get("pace", move.after)).ops == replaced("other")

    hosting(scenario, tmp_path)


@pytest.mark.parametrize(
    "patch",
    [
        {"ops": [{"op": "replace", "path": "/nowhere/x", "value": 1}]},
        {"ops": [], "drop": [{"node": "go"}], "reason": "x"},
        {"document": {"weft": "graph/1", "name": "other", "nodes": {"go": {"pass": True}}}},
        {"document": {"weft": "graph/1", "name": "pace", "nodes": {}}},
        {},
    ],
)
def test_what_is_no_patch_of_a_workflow(tmp_path: Path, patch: dict[str, Any]) -> None:
    async def scenario(app: weft.App) -> None:
        with pytest.raises((BadPatch, weft.BadGraph)):
            await PublicationService(app.service).publish("pace", "main", WorkflowPatch(patch=patch))
        assert len(await app.workflows.list("pace")) == 1
        assert await app.workflows.tags("pace") == []

    hosting(scenario, tmp_path)


def test_a_workflow_without_a_document_is_not_patched(tmp_path: Path) -> None:
    async def scenario(app: weft.App) -> None:
        with pytest.raises(NotFound):
            await app.workflows.patch("nothing", [])
        with pytest.raises(weft.UsageError):
            await app.workflows.patch("pace")

    hosting(scenario, tmp_path)
