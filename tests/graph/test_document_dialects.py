"""Both dialects of the seeds fold into the one spelling: the same graph has the same hash, however it is written."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests import scale
from tests.graph.documents import Document, codes, compiled, edge, is_accepted, nodes, refused
from weft.core.graph.model import AgentChoice, AgentWork, AskWork, RetryRule, StepWork, WorkflowWork
from weft.documents.text import read_text
from weft.graphs.load import DocumentContext, load_graph

pytestmark = scale.MARKS

CEL = {"type": "cel", "expression": "output.n > 1"}


def task(name: str, **fields: Any) -> Document:
    return {"id": name, "type": "task", "step": name, **fields}


PAIRS: dict[str, dict[str, Document]] = read_text(Path(__file__).with_name("dialects.yaml").read_text("utf-8")).data


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_graph_in_either_dialect_is_the_same_graph(name: str) -> None:
    seeds, ours = load_graph(PAIRS[name]["seeds"]), load_graph(PAIRS[name]["ours"])

    assert seeds.graph == ours.graph
    assert seeds.hash == ours.hash


CONDITIONS = [
    (CEL, "output.n > 1"),
    ({"type": "schema_validation", "schema": {"type": "object"}}, {"schema": {"type": "object"}}),
    ({"type": "schema_validation", "schema": {"type": "object"}, "invert": True}, {"not_schema": {"type": "object"}}),
    ({"type": "jsonpath", "query": "$.a", "operator": ">", "value": 3}, {"jsonpath": "$.a", "is": ">", "value": 3}),
    (
        {
            "type": "composite",
            "operator": "AND",
            "conditions": [CEL, {"type": "composite", "operator": "NOT", "conditions": [CEL]}],
        },
        {"all": ["output.n > 1", {"not": "output.n > 1"}]},
    ),
    ({"type": "composite", "operator": "OR", "conditions": [CEL]}, {"any": ["output.n > 1"]}),
    (
        {"type": "python_sandbox", "code": "def evaluate(output, context):\n    return True"},
        {"python": "def evaluate(output, context):\n    return True"},
    ),
]


@pytest.mark.parametrize(("seeds", "ours"), CONDITIONS)
def test_conditions_fold_wherever_one_stands(seeds: Any, ours: Any) -> None:
    def document(condition: Any) -> Document:
        repeat = {"while": condition, "at_most": 2}
        return nodes(a={"repeat": repeat, "next": [{"when": condition, "to": "b"}, {"to": "c"}]}, b={}, c={})

    around = DocumentContext(python=True)
    assert load_graph(document(seeds), around).hash == load_graph(document(ours), around).hash


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (nodes(a={"with": {}, "input_mapping": {}}), "nodes.a.input_mapping"),
        (nodes(a={"save": {}, "output_mapping": {}}), "nodes.a.output_mapping"),
        (nodes(a={"step": "s", "undo": "u", "compensator": {"action": "u"}}), "nodes.a.compensator"),
        (
            nodes(a={"next": [{"to": "b", "for_each": "${input.x}", "foreach": {"collection": "input.x"}}]}, b={}),
            "nodes.a.next[0].foreach",
        ),
        (
            nodes(a={"next": [{"to": "b", "when": "output.x", "condition": "output.x"}]}, b={}),
            "nodes.a.next[0].condition",
        ),
        (nodes(a={"next": "b", "branch": {"default": ["b"]}}, b={}), "nodes.a.branch"),
        (nodes(a={"next": "b", "dependents": ["b"]}, b={}), "nodes.a.dependents"),
        ({**nodes(a={"next": "b"}, b={}), "transitions": [{"from": "a", "to": "b"}]}, "nodes.a"),
        (nodes(a={"next": [{"to": ["b", "c"]}]}, b={}, c={}, d={"dependencies": ["a"]}), "nodes.d.dependencies[0]"),
        (
            nodes(
                a={
                    "repeat": {"while": "output.x", "at_most": 2},
                    "loop": {"condition": "output.x", "max_iterations": 2},
                }
            ),
            "nodes.a.loop",
        ),
        (nodes(a={"next": [{"to": "b", "copies": 2}]}, b={"join": "all", "fan_in": "all"}), "nodes.b.fan_in"),
        (
            nodes(a={"next": [{"to": "b", "copies": 2}]}, b={"join": "all", "wait_for_all": True}),
            "nodes.b.wait_for_all",
        ),
        ({"nodes": [{"id": "a", "node_id": "a", "step": "s"}]}, "nodes.a.node_id"),
        ({"transitions": [], "edges": [], **nodes(a={})}, "edges"),
        ({"nodes": {"a": {"type": "slack", "config": {}, "config_ref": "cas://x"}}}, "nodes.a.config_ref"),
    ],
)
def test_two_spellings_of_one_thing_are_an_error(document: Document, path: str) -> None:
    found = refused(document, DocumentContext(types={"slack": None}))

    assert [(finding.code, finding.path) for finding in found] == [("graph.two_spellings", path)]


def test_wait_for_all_beside_a_fan_in_is_redundant_or_wrong() -> None:
    split = {"a": {"pass": True, "next": [{"to": "b", "copies": 2}]}}

    assert compiled({"nodes": {**split, "b": {"fan_in": "all", "wait_for_all": True}}}).nodes["b"].join == "fan_in"
    assert codes({"nodes": {**split, "b": {"fan_in": "any", "wait_for_all": True}}}) == ["two_joins"]
    assert codes({"nodes": {**split, "b": {"fan_in": {"m_of_n": 2}, "wait_for_all": True}}}) == ["two_joins"]


def test_a_task_performs_its_action_or_the_step_called_like_the_node() -> None:
    document = {
        "nodes": [
            {"id": "charge_customer", "type": "task", "config": {"action": "stripe.charge"}},
            {
                "id": "mail",
                "type": "task",
                "config": {"action": "email", "to": "ops@example.com"},
                "input_mapping": {"n": "output.n"},
            },
            {"id": "merge_data", "type": "task"},
            {
                "id": "validate",
                "type": "task",
                "config_ref": {"type_url": "svc.validate/Config@1", "cas_ref": "sha256:cfg001"},
            },
        ]
    }
    graph = compiled(document)

    assert [node.work for node in graph.nodes.values()] == [
        StepWork("stripe.charge"),
        StepWork("email"),
        StepWork("merge_data"),
        StepWork("validate", "sha256:cfg001"),
    ]
    given = graph.nodes["mail"].input
    assert given is not None
    assert given.source == {"to": "ops@example.com", "n": "${output.n}"}


def test_a_human_leads_on_after_a_yes_and_elsewhere_after_a_no() -> None:
    graph = compiled(
        {
            "nodes": [
                {
                    "id": "approve",
                    "type": "human",
                    "dependents": ["ship"],
                    "rejection_path": ["apologise"],
                    "human_config": {
                        "timeout_hours": 48,
                        "approvers": ["boss@example.com"],
                        "escalation_policy": "auto_approve_after_timeout",
                    },
                },
                task("ship"),
                task("apologise"),
            ]
        }
    )
    work = graph.nodes["approve"].work
    yes, no = edge(graph, "approve", "ship"), edge(graph, "approve", "apologise")

    assert isinstance(work, AskWork)
    assert (work.of, work.timeout_ms, work.on_timeout) == (["boss@example.com"], 172_800_000, "approve")
    assert yes.when is not None
    assert (yes.when.source, yes.tier, no.when, no.tier) == ("output.approved", 0, None, 1)


def test_an_agent_that_chooses_from_a_list_is_read() -> None:
    agent = {
        "id": "q",
        "type": "agent",
        "agent_config": {"model": "m"},
        "branch": {"type": "agent_driven", "available_next_nodes": ["x", "y"], "default": ["z"]},
    }
    work = load_graph({"nodes": [agent, task("x"), task("y"), task("z")]}).graph.nodes["q"].work

    assert isinstance(work, AgentWork)
    assert work.choose == AgentChoice(["x", "y"], 2, ["z"])
    without = {"nodes": [task("q", branch={"type": "agent_driven", "available_next_nodes": ["x"]}), task("x")]}
    assert codes(without) == ["no_agent"]


def test_the_retry_of_the_seeds_counts_attempts_and_milliseconds() -> None:
    graph = compiled({"nodes": [task("a", retry={"max_attempts": 3, "backoff_ms": 250})]})

    assert graph.nodes["a"].retry == RetryRule(attempts=3, delay_ms=250)


def test_a_sub_workflow_can_only_inherit_nothing() -> None:
    graph = compiled(nodes(a={"workflow": "p"}, b={"workflow": "p", "inherit_artifacts": False}))

    assert [node.work for node in graph.nodes.values()] == [WorkflowWork("p"), WorkflowWork("p")]
    for node in ({"workflow": "p", "inherit_artifacts": True}, {"workflow": {"name": "p", "inherit_artifacts": True}}):
        (found,) = refused(nodes(a=node))
        assert "inherit_artifacts" in str(found)


def random_pair(seed: int) -> tuple[Document, Document]:
    """One graph in both dialects: transitions sorted as `next` would have them."""
    draw = random.Random(seed)
    count = draw.randint(2, 9)
    listed: list[Document] = []
    transitions: list[Document] = []
    ours: Document = {}
    for index in range(count):
        name = f"n{index}"
        old = task(name)
        new: Document = {"step": name}
        later = [f"n{other}" for other in range(index + 1, count)]
        entries = []
        for tier in range(draw.choice([0, 1, 1, 2, 3]) if later else 0):
            targets = draw.sample(later, min(len(later), draw.randint(1, 2)))
            shape: Document = {}
            if draw.random() < 0.6:
                shape["condition"] = {"type": "cel", "expression": f"output.v > {tier}"}
            extra: Document = draw.choice(
                [{}, {}, {"spawn": 2}, {"foreach": {"collection": "input.xs", "item_var": "it"}}]
            )
            transitions += [{"from": name, "to": to, "priority": tier * 10, **shape, **extra} for to in targets]
            entry: Document = {"to": targets}
            if shape:
                entry["when"] = f"output.v > {tier}"
            if "spawn" in extra:
                entry["copies"] = 2
            if "foreach" in extra:
                entry |= {"for_each": "${input.xs}", "as": "it"}
            entries.append(entry)
        # Only the last entry may be without a condition; `next` refuses what is never tried.
        if any("when" not in entry for entry in entries[:-1]):
            old["fan_out"] = new["fan_out"] = "all"
        if entries:
            new["next"] = entries
        if draw.random() < 0.3:
            old["wait_for_all"], new["join"] = True, "edges"
        if draw.random() < 0.3:
            old["loop"] = {"condition": "output.again", "max_iterations": 4, "timeout_path": []}
            new["repeat"] = {"while": "output.again", "at_most": 4, "exhausted": []}
        listed.append(old)
        ours[name] = new
    return {"name": "g", "nodes": listed, "transitions": transitions}, {"name": "g", "nodes": ours}


def test_random_graphs_are_the_same_in_both_dialects_or_refused_in_both() -> None:
    accepted = 0
    for seed in range(scale.scaled(60, 400)):
        seeds, ours = random_pair(seed)
        if is_accepted(seeds):
            accepted += 1
            assert load_graph(seeds).hash == load_graph(ours).hash, seed
        else:
            assert codes(seeds) == codes(ours), seed
    assert accepted > scale.scaled(15, 100)
