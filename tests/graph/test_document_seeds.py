"""The JSON examples of the seeds load as they stand there, and so do the graphs that they only draw."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.graph import seeds
from tests.graph.documents import Document, compiled, edge
from weft.core.graph.model import AskWork, GraphModel, StepWork
from weft.documents.text import read_text
from weft.graphs.load import DocumentContext, load_graph

AROUND = DocumentContext(
    types={"migration": None},
    python=True,
    resolve={
        "cas://sha256:schema123": b'{"type": "object"}',
        "cas://sha256:retry_schema": b'{"type": "object"}',
        **{f"sha256:cfg00{number}": b"{}" for number in range(1, 5)},
        "cas://sha256:payment_config": b"{}",
        "cas://sha256:python_evaluator": b"def evaluate(output, context):\n    return output.get('revenue', 0) > 1\n",
    }.get,
)


def names_in(value: Any) -> list[str]:
    """The nodes that an example leads to, waits for or looks at."""
    keys = ("dependents", "dependencies", "next_nodes", "default", "break_path", "timeout_path", "available_next_nodes")
    found: list[str] = []
    if isinstance(value, dict):
        for key, part in value.items():
            found += part if key in keys else [part] if key == "node" else names_in(part)
    elif isinstance(value, list):
        for part in value:
            found += names_in(part)
    return found


def beside(example: Document, *more: str) -> GraphModel:
    """The example in a document in which everything it names exists."""
    own = example.get("id", example.get("node_id"))
    others = [name for name in dict.fromkeys([*names_in(example), *more]) if name != own]
    stubs = [{"id": name, "type": "task"} for name in others]
    return load_graph({"nodes": [example, *stubs]}, AROUND).graph


@pytest.mark.parametrize("name", [name for name in seeds.NODES if name != "agent"])
def test_every_example_of_a_node_loads_unchanged(name: str) -> None:
    graph = beside(read_text(seeds.NODES[name]).data, "enrich_data")

    assert len(graph.nodes) >= 1


@pytest.mark.parametrize("name", seeds.CONDITIONS)
def test_every_example_of_a_condition_loads_unchanged(name: str) -> None:
    example = read_text(seeds.CONDITIONS[name]).data
    others = [*names_in(example), "enrich_data", "forecast"]
    document = {
        "nodes": [
            {"id": "a", "type": "task"},
            {"id": "b", "type": "task"},
            *({"id": n, "type": "task"} for n in others),
        ],
        "transitions": [{"from": "a", "to": "b", **example}],
    }

    graph = load_graph(document, AROUND).graph

    assert edge(graph, "a", "b").when is not None


def test_the_loop_until_a_schema_fits() -> None:
    repeat = beside({"id": "a", "type": "task", **read_text(seeds.LOOP_SCHEMA).data}).nodes["a"].repeat

    assert repeat is not None
    assert (repeat.at_most, repeat.fails) == (3, True)
    assert list(repeat.condition.source) == ["not_schema"]


def test_the_api_call_is_tried_until_it_succeeds() -> None:
    graph = beside(read_text(seeds.LOOP).data)
    node = graph.nodes["call_external_api"]

    assert node.repeat is not None
    assert (node.repeat.condition.source, node.repeat.at_most) == ("output.status != 200", 5)
    assert [graph.edges[name].to for name in node.repeat.exhausted] == ["error_dlq"]
    assert [[graph.edges[name].to for name in tier] for tier in node.tiers] == [["process_response"]]
    assert node.join == "plain"


def test_the_branch_by_score_takes_the_first_rule_that_matches() -> None:
    graph = beside(read_text(seeds.BRANCH).data)
    node = graph.nodes["score_customer"]

    assert [[graph.edges[name].to for name in tier] for tier in node.tiers] == [
        ["enterprise_sales", "send_gift"],
        ["standard_sales"],
        ["nurture_campaign"],
        ["manual_review"],
    ]
    assert graph.nodes["enrich_data"].remembered


def test_the_payment_retry_loops_first_and_branches_at_its_normal_exit() -> None:
    graph = beside(read_text(seeds.PAYMENT).data)
    node = graph.nodes["call_payment_api"]

    assert node.repeat is not None
    assert list(node.repeat.condition.source) == ["all"]
    assert node.repeat.condition.nodes == ["calculate_total"]
    assert [[graph.edges[name].to for name in tier] for tier in node.tiers] == [
        ["send_premium_confirmation", "update_crm"],
        ["send_standard_confirmation"],
        ["manual_review"],
    ]
    # The branch replaces the break path, so nothing leads there; and it is no entry either.
    assert graph.nodes["confirm_payment"].incoming == []
    assert [graph.edges[name].to for name in graph.start] == ["call_payment_api", "calculate_total"]


def test_the_human_node_waits_two_days_and_then_takes_silence_for_a_yes() -> None:
    work = beside(read_text(seeds.HUMAN).data).nodes["manager_approval"].work

    assert isinstance(work, AskWork)
    assert (work.of, work.timeout_ms, work.on_timeout) == (["sales-manager@company.com"], 48 * 3_600_000, "approve")


def test_the_compensator_is_an_undo() -> None:
    node = beside(read_text(seeds.COMPENSATOR).data).nodes["charge_customer"]

    assert node.work == StepWork("stripe.charge")
    assert node.undo is not None
    assert (node.undo.step, node.undo.timeout_ms, node.undo.retry.attempts) == ("stripe.refund", 60_000, 3)


def drawn(arrows: str, **more: Document) -> Document:
    """`A -> B, C -> D`: the graphs that the seeds draw; a node that several lead to waits for all."""
    stages = [[name.strip() for name in stage.split(",")] for stage in arrows.split("->")]
    found: dict[str, Document] = {name: {"id": name, "type": "task"} for stage in stages for name in stage}
    for before, after in pairwise(stages):
        for name in before:
            found[name]["dependents"] = after
        for name in after:
            found[name] |= {"dependencies": before, "wait_for_all": len(before) > 1}
    return {"nodes": [{**node, **more.get(name, {})} for name, node in found.items()]}


@pytest.mark.parametrize(
    ("arrows", "join", "waits_for"),
    [
        ("A -> B -> C", "C", ["B"]),
        ("A -> B, C -> D", "D", ["B", "C"]),
        ("fetch_user, fetch_orders -> merge_data -> send_email", "merge_data", ["fetch_user", "fetch_orders"]),
        ("A, B, C -> E", "E", ["A", "B", "C"]),
        (
            "start -> fetch_weather, fetch_traffic, fetch_news -> combine -> display",
            "combine",
            ["fetch_weather", "fetch_traffic", "fetch_news"],
        ),
    ],
)
def test_the_drawn_graphs_compile(arrows: str, join: str, waits_for: list[str]) -> None:
    graph = compiled(drawn(arrows))

    assert [graph.edges[name].source for name in graph.nodes[join].incoming] == waits_for
    assert graph.nodes[join].join == ("edges" if len(waits_for) > 1 else "plain")
