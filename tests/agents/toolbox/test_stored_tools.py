"""Tools made of pipelines: shapes, holes, promotion, and what people do with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.steps.http_kit import FixedClock
from weft.agents.toolbox.shapes import shape_name, shape_of_pipeline
from weft.errors import BadValue, NameTaken, NotFound, UsageError
from weft.runtime.stored_tools import StoredTools
from weft.runtime.tool_settings import ToolSettings, read_tool_settings
from weft.stores.memory import MemoryStore

SORTED = {"step": "table_sort", "field": "price"}


def top(k: int) -> list[dict[str, Any]]:
    return [
        {"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": k}},
        SORTED,
        {"step": "top_k", "k": k},
    ]


def stored(store: MemoryStore | None = None, **settings: Any) -> StoredTools:
    return StoredTools((store or MemoryStore()).definitions, FixedClock(), ToolSettings(**settings))


async def promoted(tools: StoredTools, tenant: str = "") -> dict[str, str]:
    return {tool.name: tool.status for tool in (await tools.tools(tenant)).values()}


def test_pipelines_that_differ_in_values_have_one_shape() -> None:
    one, other = shape_of_pipeline(top(1)), shape_of_pipeline(top(5))

    assert one.digest == other.digest
    assert one.digest != shape_of_pipeline([*top(1), SORTED]).digest
    assert (
        one.digest
        != shape_of_pipeline(
            [{"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": "1"}}, *top(1)[1:]]
        ).digest
    )
    assert shape_name(one) == "filter_sort_top_k"


def test_the_holes_of_a_shape_are_parameters() -> None:
    shape = shape_of_pipeline(top(1))

    assert shape.schema()["properties"] == {"stops": {"type": "number"}, "k": {"type": "number"}}
    assert shape.fill({"stops": 2, "k": 3})[0]["condition"] == {"field": "stops", "op": "<=", "value": 2}
    assert shape.fill({"stops": 1, "k": 1}) == top(1)


@pytest.mark.parametrize("arguments", [{}, {"stops": 1}, {"stops": 1, "k": 2, "x": 3}])
def test_a_shape_is_filled_by_exactly_its_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        shape_of_pipeline(top(1)).fill(arguments)


def test_two_holes_of_one_name_are_two_parameters() -> None:
    twice = [{"step": "top_k", "k": 5}, {"step": "top_k", "k": 2}]

    assert [hole.name for hole in shape_of_pipeline(twice).holes] == ["k", "k_2"]
    assert shape_of_pipeline(twice).fill({"k": 5, "k_2": 2}) == twice


def test_a_tool_is_made_of_two_runs_of_the_same_tenant() -> None:
    async def scenario() -> None:
        tools = stored()
        await tools.used("", "r-1", top(1))
        await tools.used("", "r-1", top(2))
        await tools.used("acme", "r-2", top(2))
        assert await promoted(tools) == {}

        await tools.used("", "r-2", top(3))
        assert await promoted(tools) == {"filter_sort_top_k": "accepted"}
        assert await promoted(tools, "acme") == {}

    asyncio.run(scenario())


def test_another_process_counts_on_and_sees_the_same_tools() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        await stored(store).used("", "r-1", top(1))
        await stored(store).used("", "r-1", top(1))
        await stored(store).used("", "r-2", top(1))
        await stored(store).used("", "r-3", top(1))

        assert await promoted(stored(store)) == {"filter_sort_top_k": "accepted"}

    asyncio.run(scenario())


def test_promotion_may_ask_or_be_off() -> None:
    async def scenario() -> None:
        asking, off = stored(promotion="ask"), stored(promote=0)
        for tools in (asking, off):
            for run in ("r-1", "r-2", "r-3"):
                await tools.used("", run, top(1))

        assert await promoted(asking) == {"filter_sort_top_k": "proposed"}
        assert await asking.offered("") == []
        assert await promoted(off) == {}
        await asking.accept("", "filter_sort_top_k", by="ann")
        assert [tool.name for tool in await asking.offered("")] == ["filter_sort_top_k"]

    asyncio.run(scenario())


def test_a_discarded_tool_does_not_come_back_by_itself_and_a_renamed_one_keeps_its_shape() -> None:
    async def scenario() -> None:
        tools = stored(promote=1)
        await tools.used("", "r-1", top(1))
        await tools.rename("", "filter_sort_top_k", "cheapest")
        await tools.used("", "r-2", top(1))
        assert await promoted(tools) == {"cheapest": "accepted"}

        await tools.discard("", "cheapest")
        await tools.used("", "r-3", top(1))
        assert await promoted(tools) == {"cheapest": "discarded"}
        assert await tools.offered("") == []

    asyncio.run(scenario())


def test_what_cannot_be_changed_is_refused() -> None:
    async def scenario() -> None:
        tools = stored(promote=1)
        await tools.used("", "r-1", top(1))
        await tools.used("", "r-1", [SORTED])
        with pytest.raises(NotFound, match="no stored tool"):
            await tools.accept("", "sort_of")
        with pytest.raises(NameTaken):
            await tools.rename("", "sort", "filter_sort_top_k")
        with pytest.raises(UsageError):
            await tools.rename("", "sort", "not a name")

    asyncio.run(scenario())


def test_two_writers_at_once_make_one_tool() -> None:
    async def scenario() -> None:
        store = MemoryStore()
        one, other = stored(store, promote=1), stored(store, promote=1)
        await asyncio.gather(one.used("", "r-1", top(1)), other.used("", "r-2", top(2)))

        assert await promoted(one) == await promoted(other) == {"filter_sort_top_k": "accepted"}

    asyncio.run(scenario())


@pytest.mark.parametrize("table", [{"promote": -1}, {"promote": "2"}, {"promotion": "never"}, {"other": 1}, 5])
def test_settings_that_make_no_sense_are_refused(table: Any) -> None:
    with pytest.raises(UsageError):
        read_tool_settings(table)
