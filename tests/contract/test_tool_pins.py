"""Pinned tools: what was accepted first stays until somebody accepts something else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.ports.store import Store
from weft.ports.tool_pins import ToolPin


def pin(tool: str = "search", **fields: Any) -> ToolPin:
    values: dict[str, Any] = {"server": "github", "accepted": f'{{"name": "{tool}é"}}', "at": Millis(1_000)}
    return ToolPin(tool=tool, **(values | fields))


def changed(of: ToolPin, seen: str) -> ToolPin:
    return msgspec.structs.replace(of, accepted="", seen=seen)


def test_the_first_tools_of_a_server_are_pinned_and_listed_by_name(store: Store, peer: Store) -> None:
    assert go(store.tool_pins.begin([pin("search"), pin("create")]))
    assert go(store.tool_pins.begin([pin("ask", server="wiki")]))

    assert list(go(peer.tool_pins.list("github"))) == [pin("create"), pin("search")]
    assert list(go(peer.tool_pins.list())) == [pin("create"), pin("search"), pin("ask", server="wiki")]
    assert list(go(peer.tool_pins.list("other"))) == []


def test_a_server_begins_once(store: Store) -> None:
    go(store.tool_pins.begin([pin("search")]))

    assert not go(store.tool_pins.begin([pin("search", accepted="{}"), pin("create")]))
    assert list(go(store.tool_pins.list())) == [pin("search")]


def test_of_two_hosts_that_see_a_server_first_one_pins_its_tools(store: Store) -> None:
    async def both() -> list[bool]:
        begun = (store.tool_pins.begin([pin(name), pin("both", accepted=name)]) for name in ("one", "two"))
        return list(await asyncio.gather(*begun))

    assert sorted(go(both())) == [False, True]
    assert len(go(store.tool_pins.list())) == 2


def test_what_a_server_has_now_is_noted_beside_what_was_accepted(store: Store) -> None:
    go(store.tool_pins.begin([pin("search")]))

    go(store.tool_pins.note(changed(pin("search"), "other")))
    go(store.tool_pins.note(changed(pin("search"), "another")))

    assert list(go(store.tool_pins.list())) == [pin("search", seen="another")]
    go(store.tool_pins.note(changed(pin("search"), "")))
    assert list(go(store.tool_pins.list())) == [pin("search")]


def test_a_new_tool_is_noted_and_not_accepted(store: Store) -> None:
    go(store.tool_pins.begin([pin("search")]))

    go(store.tool_pins.note(changed(pin("new"), "{}")))

    assert list(go(store.tool_pins.list())) == [pin("new", accepted="", seen="{}"), pin("search")]


def test_accepting_takes_what_was_seen_and_nothing_else(store: Store) -> None:
    go(store.tool_pins.begin([pin("search")]))
    go(store.tool_pins.note(changed(pin("search"), "new")))
    decision = pin("search", accepted="", seen="new", by="ann", at=Millis(2_000))

    assert not go(store.tool_pins.accept(msgspec.structs.replace(decision, seen="older")))
    assert not go(store.tool_pins.accept(msgspec.structs.replace(decision, seen="")))
    assert not go(store.tool_pins.accept(msgspec.structs.replace(decision, tool="none")))
    assert go(store.tool_pins.accept(decision))
    assert not go(store.tool_pins.accept(decision))
    assert list(go(store.tool_pins.list())) == [pin("search", accepted="new", by="ann", at=Millis(2_000))]
