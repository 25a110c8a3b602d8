"""Tools are found by words in their names, descriptions and parameters."""

from __future__ import annotations

from weft.agents.toolbox.search import found_tools
from weft.agents.tools.spec import ToolSpec

FLIGHTS = ToolSpec(name="find_flights", description="Find cheap flights.", effect="pure", kind="step", target="a")
ORDER = ToolSpec(
    name="get_order",
    description="Look an order up.",
    schema={"type": "object", "properties": {"id": {"type": "string", "description": "As in the invoice."}}},
    effect="pure",
    kind="step",
    target="b",
)


def names(query: str, limit: int = 10) -> list[str]:
    return [found["name"] for found in found_tools(query, [FLIGHTS, ORDER], limit)]


def test_words_that_begin_alike_are_found() -> None:
    assert names("flight") == names("FLIGHTSTATUS flight") == ["find_flights"]
    assert names("invoices") == ["get_order"]
    assert names("fin") == [], "a short word is no beginning"


def test_without_words_all_tools_are_found() -> None:
    assert names("?!") == ["find_flights", "get_order"]
    assert names("", limit=1) == ["find_flights"]


def test_only_the_first_words_of_pages_are_looked_for() -> None:
    pages = " ".join(f"word{number}" for number in range(10_000))
    many = [
        ToolSpec(name=f"t{number}", description=f"{pages[:1_000]} {number}", effect="pure", kind="step", target="t")
        for number in range(200)
    ]

    assert len(found_tools(pages, many, 50)) == 50
    assert names(f"order {pages} flights") == ["get_order"]
