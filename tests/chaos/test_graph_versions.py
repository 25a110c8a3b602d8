"""Graphs are data: a run goes on wherever its steps are, also on a host that started before its version was made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

import weft
from tests import servers
from tests.crash.hosting import QUICK, hosting
from weft.core.ids import Millis
from weft.ports.definitions import Definition


@pytest.fixture
def url() -> Iterator[str]:
    found = servers.database("versions")
    servers.empty(found)
    yield found
    servers.empty(found)


def parcel(told: str, *, name: str = "parcel") -> dict[str, Any]:
    """Waits a little, then says which version it is."""
    return {
        "weft": "graph/1",
        "name": name,
        "nodes": {
            "hold": {"wait": "500ms", "next": "say"},
            "say": {"step": "say", "with": {"what": told}, "save": {"state.said": "${output}"}},
        },
        "output": {"said": "${state.said}"},
    }


def app_of(url: str, performed: list[str], who: str, *graphs: dict[str, Any]) -> weft.App:
    app = weft.App(url)

    @app.step
    async def say(what: str) -> str:
        performed.append(who)
        return what

    for graph in graphs:
        app.graph(graph)
    return app


@pytest.mark.parametrize("name", ["parcel", "letter"], ids=["another version", "another graph"])
def test_a_run_goes_on_at_a_host_that_started_before_its_version_was_published(url: str, name: str) -> None:
    performed: list[str] = []
    early = app_of(url, performed, "early", parcel("one"))
    late = app_of(url, performed, "late", parcel("two", name=name))

    async def scene() -> None:
        async with asyncio.timeout(200), AsyncExitStack() as stack:
            await stack.enter_async_context(hosting(early))
            async with hosting(late):
                await late.start(name, {}, id="new")
            client = await stack.enter_async_context(weft.Client(url))
            assert await client.get("new").result() == {"said": "two"}
            assert performed == ["early"]

    asyncio.run(scene())


def test_a_client_s_start_of_an_unseen_version_is_taken_by_whoever_has_its_steps(url: str) -> None:
    performed: list[str] = []
    early = app_of(url, performed, "early")
    late = app_of(url, performed, "late", parcel("two"))

    async def scene() -> None:
        async with asyncio.timeout(200), hosting(early):
            async with hosting(late):
                pass
            async with weft.Client(url) as client:
                late.bind(client.service)
                await late.start("parcel", {}, id="new")
                assert await client.get("new").result() == {"said": "two"}
                assert performed == ["early"]

    asyncio.run(scene())


def test_a_definition_that_cannot_be_read_holds_up_no_other(url: str) -> None:
    performed: list[str] = []
    early = app_of(url, performed, "early", parcel("one"))

    async def scene() -> None:
        async with asyncio.timeout(200), hosting(early):
            broken = Definition(name="parcel", version="torn", style="graph", body=b"{}", created_at=Millis(1))
            await early.service.store.definitions.put(broken)
            await asyncio.sleep(QUICK.scan_seconds * 2)
            async with weft.Client(url) as client:
                early.bind(client.service)
                await early.start("parcel", {}, id="whole")
                assert await client.get("whole").result() == {"said": "one"}

    asyncio.run(scene())
