"""The picture of a graph and of a run of it: boxes, ways, where tokens are, and what joins and loops say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests import scale
from tests.graph.documents import compiled, nodes
from tests.graph.table import Table
from tests.observe.samples import example, golden_graphs, started
from weft.cli.drawing import render_text
from weft.core.graph.model import START, GraphModel
from weft.observe.pictures import Box, Picture, edges_taken, picture_of_graph, render_mermaid, render_svg
from weft.observe.pictures.labels import condition

GRAPHS = golden_graphs()
ORDER = {"order_id": "o-1", "total": 5_000, "lines": []}
RESERVED = {"reserve": {"*": {"output": {"id": "r-1"}}}, "charge": {"*": {"output": {"receipt_id": "x"}}}}


def of_run(graph: GraphModel, table: Table) -> Picture:
    return picture_of_graph(graph, table.state, edges_taken(table.log))


def box(picture: Picture, name: str) -> Box:
    return next(box for box in picture.boxes if box.id == name)


def marks(picture: Picture) -> dict[str, str]:
    return {box.id: box.mark for box in picture.boxes if box.id}


def ways(picture: Picture) -> list[tuple[str, str]]:
    return [(arrow.source, arrow.to) for arrow in picture.arrows if arrow.taken]


def labels(picture: Picture) -> dict[tuple[str, str], tuple[str, str]]:
    return {(arrow.source, arrow.to): (arrow.kind, arrow.label) for arrow in picture.arrows}


# --- the graph ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scale.sample(8, GRAPHS))
def test_every_node_is_a_box_and_every_edge_an_arrow(name: str) -> None:
    graph = GRAPHS[name]
    picture = picture_of_graph(graph)
    assert [box.id for box in picture.boxes] == [START, *graph.nodes]
    assert [(arrow.source, arrow.to) for arrow in picture.arrows] == [
        (edge.source, edge.to) for edge in graph.edges.values()
    ]
    assert not picture.live


def test_arrows_say_when_they_are_taken() -> None:
    assert labels(picture_of_graph(example("order-fulfilment"))) == {
        (START, "reserve"): ("main", ""),
        ("reserve", "approve"): ("main", "input.total > 100000"),
        ("reserve", "charge"): ("main", "otherwise"),
        ("reserve", "apologise"): ("error", "on OutOfStock"),
        ("approve", "charge"): ("main", "output.approved"),
        ("approve", "apologise"): ("main", "otherwise"),
        ("charge", "ship"): ("main", ""),
        ("charge", "email"): ("main", ""),
        ("ship", "finish"): ("main", ""),
        ("email", "finish"): ("main", ""),
    }


def test_fan_outs_and_loops_are_told() -> None:
    documents = labels(picture_of_graph(example("document-pipeline")))
    assert documents["list", "fetch"] == ("main", "for each url in input.urls, 16 at once")
    leads = labels(picture_of_graph(example("lead-scoring")))
    assert leads["score", "enrich"] == ("back", "while output.confidence < 0.8, at most 3")
    assert leads["score", "manual_review"] == ("timeout", "after 3 rounds")
    assert leads["score", "disqualify"] == ("main", "$.flags[*] contains competitor")


def test_boxes_say_what_they_do() -> None:
    does = {box.id: (box.subtitle, box.shape) for box in picture_of_graph(example("order-fulfilment")).boxes}
    assert does == {
        START: ("", "start"),
        "reserve": ("reserve_stock", "plain"),
        "approve": ("ask role:sales-manager", "plain"),
        "charge": ("charge_card", "plain"),
        "ship": ("workflow parcel", "plain"),
        "email": ("send_confirmation", "plain"),
        "finish": ("join all · close_order", "join"),
        "apologise": ("send_apology", "end"),
    }
    more = compiled(
        nodes(
            pause={"wait": "5m", "next": "choose"},
            choose={"pass": True, "next": [{"when": "output.a", "to": "call"}, {"to": "win"}]},
            call={"http": {"method": "GET", "url": "https://a.example/${input.id}"}, "next": "meet"},
            win={"goal": ["paid"], "next": "meet"},
            meet={"join": "edges", "step": "meet"},
        )
    )
    assert {box.id: (box.subtitle, box.shape) for box in picture_of_graph(more).boxes if box.id} == {
        "pause": ("wait 5m", "plain"),
        "choose": ("pass", "choice"),
        "call": ("GET https://a.example/${input.id}", "plain"),
        "win": ("goal paid", "plain"),
        "meet": ("join edges · step", "join"),
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a  >\n 1", "a > 1"),
        ({"all": ["a > 1", {"any": ["b", "c == 2"]}]}, "a > 1 and b or (c == 2)"),
        ({"not": "a"}, "not (a)"),
        ({"jsonpath": "$.x", "agg": "sum", "is": ">", "value": 3}, "sum $.x > 3"),
        ({"jsonpath": "$.x", "is": "exists"}, "$.x exists"),
        ({"schema": {"type": "object"}}, "matches its schema"),
        ({"not_schema": {}}, "does not match its schema"),
        ({"python": "def evaluate(): ..."}, "python condition holds"),
        ({"left": 1}, '{"left":1}'),
    ],
)
def test_conditions_are_said_in_words(source: Any, said: str) -> None:
    assert condition(source) == said


# --- a run -------------------------------------------------------------------------------------------------------


def test_a_run_shows_what_is_done_under_way_ahead_and_passed_by() -> None:
    graph = example("order-fulfilment")
    picture = of_run(graph, started(graph, ORDER, RESERVED, 2))
    assert marks(picture) == {
        "reserve": "done",
        "approve": "skipped",
        "charge": "done",
        "ship": "working",
        "email": "working",
        "finish": "idle",
        "apologise": "skipped",
    }
    assert ways(picture) == [
        (START, "reserve"), ("reserve", "charge"), ("charge", "ship"), ("charge", "email")
    ]  # fmt: skip
    assert box(picture, "finish").badges == ("0 of 2 branches",)
    assert picture.subtitle == "run · running"


def test_a_question_waits() -> None:
    graph = example("order-fulfilment")
    picture = of_run(graph, started(graph, {**ORDER, "total": 200_000}, RESERVED, 1))
    assert marks(picture)["approve"] == "waiting"
    assert marks(picture)["charge"] == "idle"


def test_a_caught_failure_is_marked_where_it_happened() -> None:
    graph = example("order-fulfilment")
    steps = {"reserve": {"*": {"error": "OutOfStock"}}}
    picture = of_run(graph, started(graph, ORDER, steps, 1))
    assert marks(picture)["reserve"] == "failed"
    assert box(picture, "reserve").badges == ("failure caught",)
    assert marks(picture)["apologise"] == "working"
    assert marks(picture)["finish"] == "skipped"


def test_a_failed_run_shows_where_it_failed_and_nothing_is_under_way() -> None:
    graph = example("order-fulfilment")
    steps = {**RESERVED, "charge": {"*": {"error": "CardDeclined"}}}
    picture = of_run(graph, started(graph, ORDER, steps, 2))
    assert picture.subtitle == "run · failed"
    assert marks(picture) == {
        "reserve": "done",
        "approve": "skipped",
        "charge": "failed",
        "ship": "skipped",
        "email": "skipped",
        "finish": "skipped",
        "apologise": "skipped",
    }


def test_branches_are_counted_where_they_are_and_where_they_meet() -> None:
    graph = example("document-pipeline")
    steps = {
        "fetch": {"*": {"output": {"body": "x"}}},
        "split": {"*": {"output": {"pages": [1, 2]}}},
        "read": {"*": {"output": {"text": "t"}}},
    }
    table = started(graph, {"batch": "b", "urls": [str(n) for n in range(20)]}, steps, 2)
    picture = of_run(graph, table)
    assert box(picture, "fetch") == Box(
        id="fetch",
        title="fetch",
        subtitle="GET ${url}",
        mark="working",
        times=2,
        badges=("14 working", "4 queued"),
        tip=box(picture, "fetch").tip,
        kind="http",
        group="fan_out list",
    )
    assert box(picture, "split").badges == ("2 working",)
    assert box(picture, "documents").badges == ("0 of 20 branches", "needs 18")
    picture = of_run(graph, started(graph, {"batch": "b", "urls": ["1", "2"]}, steps, 5))
    assert box(picture, "page_texts").badges == ("1 of 4 branches in 2 fan-outs",)
    assert box(picture, "page_texts").mark == "waiting"


def test_a_loop_says_its_round() -> None:
    graph = example("lead-scoring")
    steps = {"enrich": {"*": {"output": {}}}, "score": {"*": {"output": {"score": 1, "confidence": 0, "flags": []}}}}
    table = started(graph, {"company": "c", "email": "e"}, steps, 3)
    picture = of_run(graph, table)
    assert box(picture, "score").badges == ("round 2/3",)
    assert box(picture, "enrich").times == 2
    assert ("score", "enrich") in ways(picture)


def test_a_join_says_what_it_lacks() -> None:
    graph = compiled(
        nodes(
            a={"step": "a", "next": [{"to": ["b", "c"]}]},
            b={"step": "b", "next": "j"},
            c={"step": "c", "next": "j"},
            j={"step": "j", "join": "edges"},
        )
    )
    picture = of_run(graph, started(graph, {}, {}, 2))
    assert box(picture, "j").badges == ("waits for c",)
    assert box(picture, "j").mark == "waiting"


def test_a_run_that_is_over_has_nothing_ahead() -> None:
    graph = example("order-fulfilment")
    steps = {"reserve": {"*": {"error": "OutOfStock"}}}
    picture = of_run(graph, started(graph, ORDER, steps, 2))
    assert picture.subtitle == "run · completed"
    assert set(marks(picture).values()) == {"failed", "done", "skipped"}


def test_a_state_alone_shows_the_ways_of_live_tokens() -> None:
    graph = example("order-fulfilment")
    table = started(graph, ORDER, RESERVED, 2)
    assert ways(picture_of_graph(graph, table.state)) == [(START, "reserve"), ("charge", "ship"), ("charge", "email")]


@pytest.mark.parametrize("name", scale.sample(8, GRAPHS))
def test_every_moment_of_a_run_can_be_drawn(name: str) -> None:
    """Whatever is open, parked, queued or gone: each renderer draws it."""
    graph = GRAPHS[name]
    table = Table(graph, {"items": [1, 2], "x": 1})
    for _ in range(6):
        picture = of_run(graph, table)
        assert render_text(picture, width=100)
        assert render_svg(picture).endswith("</svg>\n")
        assert render_mermaid(picture).startswith("---")
        if not table.open:
            break
        number = min(table.open)
        table.answer(number, {table.place(number)[0]: {"*": {"output": {"items": [1, 2, 3], "x": 1}}}}, Counter())
