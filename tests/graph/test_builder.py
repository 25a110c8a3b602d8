"""The builder writes the document that one would write by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest

import weft
from weft.authoring.graphs import Graph
from weft.errors import BadGraph, NotFound, UsageError
from weft.graphs.load import load_graph


@dataclass
class Score:
    points: int
    sure: bool


class Lead(TypedDict):
    company: str
    domains: list[str]


app = weft.App("memory://")


@app.step
async def score(company: str) -> Score:
    return Score(80, sure=True)


@app.step
async def sell(company: str) -> None: ...


@app.step
async def page(domain: str) -> int:
    return 1


@app.step
async def unsell(company: str) -> None: ...


@app.workflow
async def campaign(ctx: weft.Context, company: str) -> None: ...


def leads() -> Graph:
    graph = Graph("leads", input={"company": str, "domains": list[str]})
    company = {"company": "${input.company}"}
    scored = graph.node("score", score, args=company)
    selling = graph.node("sell", sell, args=company, timeout=timedelta(minutes=2), undo=unsell)
    nurturing = graph.node("nurture", campaign, args=company)
    reviewing = graph.node("review", "review", args=company)
    pages = graph.node("page", page, args={"domain": "${item}"})
    joined = graph.join("joined", wait="all", merge={"from": "output", "how": "append", "into": "state.pages"})
    graph.repeat(scored, while_="!output.sure", at_most=3, exhausted=reviewing)
    scored.to(selling, when="output.points >= 80")
    scored.to(pages, for_each="${input.domains}", width=4)
    pages.to(joined)
    joined.to(nurturing)
    scored.catch(reviewing, error="Blocked")
    return graph


BY_HAND: dict[str, Any] = {
    "weft": "graph/1",
    "name": "leads",
    "input": {"company": "string", "domains": "string[]"},
    "nodes": {
        "score": {
            "step": "score",
            "with": {"company": "${input.company}"},
            "repeat": {"while": "!output.sure", "at_most": 3, "exhausted": "review"},
            "next": [
                {"when": "output.points >= 80", "to": "sell"},
                {"to": "page", "for_each": "${input.domains}", "width": 4},
            ],
            "catch": [{"error": "Blocked", "to": "review"}],
        },
        "sell": {"step": "sell", "with": {"company": "${input.company}"}, "timeout": "2m", "undo": "unsell"},
        "nurture": {"workflow": "campaign", "with": {"company": "${input.company}"}},
        "review": {"step": "review", "with": {"company": "${input.company}"}},
        "page": {"step": "page", "with": {"domain": "${item}"}, "next": "joined"},
        "joined": {
            "join": "all",
            "merge": {"from": "output", "how": "append", "into": "state.pages"},
            "next": "nurture",
        },
    },
}


def test_a_built_graph_is_the_one_written_by_hand() -> None:
    built = leads()

    assert built.load().hash == load_graph(BY_HAND).hash
    assert load_graph(built.to_dict()).hash == built.load().hash


def test_the_document_is_a_copy() -> None:
    graph = leads()
    graph.to_dict()["nodes"].clear()

    assert len(graph.to_dict()["nodes"]) == 6


def test_several_targets_are_both_and_several_calls_are_a_choice() -> None:
    graph = Graph("g")
    a, b, c, d = (graph.node(name, "s") for name in "abcd")
    a.to(b, c, when="output.x")
    a.to(d)
    ir = graph.load().graph

    assert [[ir.edges[name].to for name in tier] for tier in ir.nodes["a"].tiers] == [["b", "c"], ["d"]]


def test_joins_wait_for_all_any_or_a_number_of_a_named_fan_out() -> None:
    graph = Graph("g")
    a = graph.node("a", "s")
    b, c = graph.node("b", "s"), graph.node("c", "s")
    j = graph.join("j", "close", wait=2, of=a)
    k = graph.join("k", wait="any")
    d = graph.node("d", "s")
    a.to(b, c)
    b.to(j)
    c.to(j)
    j.to(d, for_each="${input.xs}", as_="x")
    d.to(k)
    ir = graph.load().graph
    first, second = ir.nodes["j"].fan_in, ir.nodes["k"].fan_in

    assert first is not None
    assert second is not None
    assert (first.opener, first.need.count, second.opener, second.need.count) == ("a", 2, "j", 1)


@pytest.mark.parametrize("shape", [{"company": str, "domains": list[str]}, Lead])
def test_python_types_are_the_schema(shape: Any) -> None:
    graph = Graph("g", input=shape, state={"score": Score, "n": int})
    graph.node("a", "s", save={"state.n": "${output}"})
    ir = graph.load().graph

    assert ir.input is not None
    assert ir.input["properties"]["domains"] == {"type": "array", "items": {"type": "string"}}
    assert ir.state is not None
    assert set(ir.state["properties"]) == {"score", "n"}
    assert not ir.state.get("required")


def test_words_are_types_too_and_the_output_maps_names() -> None:
    graph = Graph("g", state={"total": "number"}, output={"sum": "${state.total}"})
    graph.node("a", "s", save={"state.total": "${output}"})
    ir = graph.load().graph

    assert ir.output is not None
    assert ir.output.source == {"sum": "${state.total}"}
    with pytest.raises(UsageError, match="is a string, but others are Python types"):
        Graph("g", input={"a": "string", "b": int})


def test_mistakes_are_told_like_those_of_a_file() -> None:
    graph = Graph("g")
    a, b = graph.node("a", "s"), graph.node("b", "s")
    a.to(b, when="output.x >")
    b.to(a)

    with pytest.raises(BadGraph) as caught:
        graph.load()

    assert str(caught.value).splitlines()[0] == "g has 2 problems:"
    assert [finding.code for finding in caught.value.context["findings"]] == [  # type: ignore[attr-defined]
        "expression.syntax",
        "graph.cycle_without_limit",
    ]


def test_names_are_used_once_and_nodes_stay_in_their_graph() -> None:
    one, other = Graph("one"), Graph("other")
    a = one.node("a", "s")
    one.repeat(a, while_="output.x", at_most=2)

    with pytest.raises(BadGraph, match='two nodes are called "a"'):
        one.node("a", "s")
    with pytest.raises(BadGraph, match="one loop"):
        one.repeat(a, while_="output.x", at_most=2)
    with pytest.raises(UsageError, match="is a node of one, not of other"):
        other.node("b", "s").to(a)
    with pytest.raises(UsageError, match="neither a step nor a workflow"):
        one.node("c", len)  # type: ignore[arg-type]


def test_a_graph_from_a_file_is_looked_for_here_and_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("name: flow\nnodes: {a: {step: s}}\n", "utf-8")

    graph = Graph.of("flow.yaml", beside=str(tmp_path / "program.py"))

    assert (graph.name, graph.to_dict()["nodes"]) == ("flow", {"a": {"step": "s"}})
    assert Graph.of(graph) is graph
    assert Graph.of({"name": "other", "nodes": {"a": {"step": "s"}}}).name == "other"
    with pytest.raises(NotFound):
        Graph.of("nowhere.yaml")
    with pytest.raises(UsageError, match="was read from a document"):
        graph.node("b", "s")


def test_the_builder_program_compiles() -> None:
    program = (Path(__file__).parents[2] / "examples" / "p09_graph_builder.py").read_text("utf-8")
    building = program.partition("leads = app.graph")[0].replace("weft.Graph", "Graph")
    names: dict[str, Any] = {"__name__": __name__, "Graph": Graph}

    exec(compile(building, "p09", "exec", dont_inherit=True), names)

    loaded = names["g"].load()
    assert loaded.warnings == []
    assert loaded.graph.nodes["score"].closed_by == "joined"
