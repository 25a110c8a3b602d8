"""Documents that refer to blobs: configurations, schemas, and what happens when one is not there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import weft

NOTHING = "cas://sha256:" + "0" * 64


def app_at(folder: Path) -> weft.App:
    app = weft.App(f"sqlite:///{folder}/weft.db")

    @app.step(retries=0)
    def fetch(url: str, depth: int = 1) -> dict[str, Any]:
        return {"url": url, "depth": depth}

    return app


def put(app: weft.App, content: bytes) -> str:
    async def keep() -> str:
        async with app:
            return f"cas://sha256:{await app.service.store.blobs.put(content)}"

    return asyncio.run(keep())


def outputs(app: weft.App, run: str) -> list[Any]:
    async def read() -> list[Any]:
        async with app:
            return [event.data["output"] async for event in app.get(run).events() if event.kind == "task_succeeded"]

    return asyncio.run(read())


def test_a_configuration_in_a_blob_brings_arguments(tmp_path: Path) -> None:
    app = app_at(tmp_path)
    reference = put(app, b'{"url": "https://example.org", "depth": 2}')
    whole = app.graph({"name": "g", "nodes": [{"id": "fetch", "type": "task", "config_ref": reference}]})
    over = app.graph(
        {"name": "h", "nodes": {"fetch": {"step": "fetch", "config_ref": {"cas_ref": reference}, "with": {"depth": 3}}}}
    )

    app.run(whole, {}, id="g-1")
    app.run(over, {}, id="h-1")

    assert outputs(app, "g-1") == [{"url": "https://example.org", "depth": 2}]
    assert outputs(app, "h-1") == [{"url": "https://example.org", "depth": 3}]


def test_a_schema_in_a_blob_decides_like_one_in_place(tmp_path: Path) -> None:
    app = app_at(tmp_path)
    reference = put(app, b'{"type": "object", "required": ["url"]}')

    assert app.run(branching(app, reference), {}) == {"good": True}


@pytest.mark.parametrize("reference", [NOTHING, {"type_url": "svc/Config@1", "cas_ref": NOTHING}])
def test_a_configuration_that_is_not_there_is_refused_with_the_document(tmp_path: Path, reference: Any) -> None:
    with pytest.raises(weft.BadGraph, match="there is no blob cas://sha256:000") as refused:
        app_at(tmp_path).graph({"name": "g", "nodes": [{"id": "fetch", "type": "task", "config_ref": reference}]})
    (finding,) = refused.value.context["findings"]  # type: ignore[misc]
    assert (finding.code, finding.path.startswith("nodes.fetch.config_ref")) == ("graph.no_blob", True)


def test_a_group_without_an_app_has_no_store_to_look_into() -> None:
    group = weft.Group("mine")
    group.graph({"name": "g", "nodes": {"fetch": {"step": "fetch", "config_ref": NOTHING}}})


def test_a_schema_that_is_not_there_is_refused_with_the_document(tmp_path: Path) -> None:
    with pytest.raises(weft.BadGraph):
        branching(app_at(tmp_path), NOTHING)


def branching(app: weft.App, schema_ref: str) -> weft.Graph:
    when = {"type": "schema_validation", "schema_ref": schema_ref}
    return app.graph(
        {
            "name": "g",
            "nodes": {
                "fetch": {"step": "fetch", "with": {"url": "x"}, "next": [{"when": when, "to": "good"}]},
                "good": {"pass": True, "save": {"state.good": True}},
            },
        }
    )
