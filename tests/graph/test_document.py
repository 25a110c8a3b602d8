"""Documents as people write them: YAML that means what it says, and messages that say where and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.graph.documents import codes, compiled, is_accepted_or_explained, nodes, refused
from weft.core.graph.model import AskWork, GoalWork, HttpWork, RetryRule, StepWork, TypeWork, WaitWork, WorkflowWork
from weft.documents.text import BYTES_MAX, VALUES_MAX
from weft.errors import BadGraph, NotFound
from weft.graphs.fold import NODE
from weft.graphs.load import DocumentContext, load_graph, parse_graph

LEADS = """\
weft: graph/1
name: leads
nodes:
  score:
    step: score_lead
    with:
      company: ${input.company}
      size: 12
      # A comment, an empty line

    next:
      - when: output.score >= 50
        to: sales
      - to: nuture
  sales: {step: call}
  nurture: {step: mail}
"""


def test_an_unknown_node_is_told_with_its_line_its_path_and_the_one_that_was_meant() -> None:
    with pytest.raises(BadGraph) as caught:
        parse_graph(LEADS, "leads.yaml")

    assert str(caught.value) == ('leads.yaml:14 nodes.score.next[1].to: no node "nuture". Did you mean "nurture"?')
    assert caught.value.code == "graph.unknown_node"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("when: !output.sure", 'when: "!output.sure"'),
        ("when: !has(output.x) && y", 'when: "!has(output.x) && y"'),
        ("while: ! output.sure", 'while: "! output.sure"'),
    ],
)
def test_a_condition_that_begins_with_a_bang_must_be_quoted(line: str, said: str) -> None:
    with pytest.raises(BadGraph) as caught:
        parse_graph(f"nodes:\n  a:\n    pass: true\n    next:\n      - {line}\n        to: b\n", "leads.yaml")

    assert str(caught.value) == f"leads.yaml:5: a condition that begins with ! must be quoted: {said}"
    assert caught.value.code == "graph.yaml"


def test_several_mistakes_are_told_at_once_each_on_its_line() -> None:
    text = LEADS.replace("step: score_lead", "stepp: score_lead").replace("output.score >= 50", "output.score >=")

    with pytest.raises(BadGraph) as caught:
        parse_graph(text, "leads.yaml")

    first, *lines = str(caught.value).splitlines()
    assert first == "leads.yaml has 4 problems:"
    assert [line.split(": ")[0].strip() for line in lines] == [
        "leads.yaml:5 nodes.score.stepp",
        "leads.yaml:4 nodes.score",
        "leads.yaml:12 nodes.score.next[0].when",
        "leads.yaml:14 nodes.score.next[1].to",
    ]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("True", "True"),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("90%", "90%"),
        ("9" * 400, "9" * 400),
        ("'12'", "12"),
        ("<<", "<<"),
        ("007", 7),
        ("+1", 1),
    ],
)
def test_plain_values_mean_what_json_would_mean(written: str, value: Any) -> None:
    loaded = parse_graph(f"nodes:\n  a:\n    step: s\n    with:\n      x: {written}\n")

    given = loaded.graph.nodes["a"].input
    assert given is not None
    assert given.source == {"x": value}


def test_keys_are_text_whatever_they_look_like() -> None:
    loaded = parse_graph("nodes:\n  on: {pass: true, next: '12'}\n  12: {pass: true, next: no}\n  no: {pass: true}\n")

    assert list(loaded.graph.nodes) == ["on", "12", "no"]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("nodes:\n  a: {pass: true}\n  a: {pass: true}\n", "duplicate_key", 3),
        ('{"nodes": {"a": {"pass": true},\n "a": {"pass": true}}}', "duplicate_key", 2),
        ("nodes:\n  a: !!python/object:os.system {}\n", "yaml", 2),
        ("nodes: [a\n", "yaml", 2),
        ("nodes:\n\t- a\n", "yaml", 2),
        ("", "yaml", 0),
        ("nodes: {}\n---\nnodes: {}\n", "yaml", 2),
        ("nodes:\n  ? [a]\n  : {}\n", "yaml", 2),
        ("nodes: *unknown\n", "yaml", 1),
        ("nodes: &n [*n]\n", "yaml", 1),
        ("nodes: \x07\n", "yaml", 0),
    ],
)
def test_text_that_is_no_document(text: str, code: str, line: int) -> None:
    (finding,) = refused(text)

    assert (finding.code, finding.line) == (f"graph.{code}", line)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(BadGraph, match="not UTF-8"):
        parse_graph(b"name: \xff\xfe", "leads.yaml")


def test_an_anchor_may_be_used_again() -> None:
    loaded = parse_graph("nodes:\n  a: &n {step: s, retry: 3}\n  b: *n\n")

    assert loaded.graph.nodes["b"].retry == RetryRule(attempts=3)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 1_000_000, "too_deep"),
        ("{a: " * 250_000, "too_deep"),
        ("- " * 500_000, "too_deep"),
        ('{"a":' * 200_000, "too_deep"),
        ("[{a: " * 300_000, "too_deep"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"b{i}: &b{i} [{','.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(9)),
            "too_big",
        ),
        ("[" + "0," * (VALUES_MAX + 5) + "0]", "too_big"),
        ("x" * 9_000_000, "too_big"),
        ("nodes: {" + ",".join(f"n{i}: {{pass: true}}" for i in range(10_001)) + "}", "too_many_nodes"),
        ('{"a": "' + '\\"' * 2_000_000, "yaml"),
        ("!" * 1_000_000, "yaml"),
    ],
    ids=["lists", "maps", "dashes", "json", "mixed", "laughs", "values", "size", "nodes", "quotes", "bangs"],
)
def test_bombs_are_refused_before_they_go_off(text: str, code: str) -> None:
    assert codes(text)[0] == code


def test_a_file_that_is_too_big_is_called_so_wherever_it_would_be_cut(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_text("é" * (BYTES_MAX * 4))
    with pytest.raises(BadGraph) as caught:
        load_graph(big)
    assert [finding.code for finding in caught.value.findings] == ["graph.too_big"]


def test_a_dict_that_is_too_deep_or_holds_itself_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    endless: dict[str, Any] = {}
    endless["nodes"] = endless

    assert codes(deep) == ["too_deep"]
    assert codes(endless) == ["too_deep"]
    assert codes({"nodes": {"a": {"pass": True, "with": {"x": {1, 2}}}}}) == ["not_json"]
    assert codes({"nodes": {"a": {"pass": True, "with": {"x": float("nan")}}}}) == ["not_json"]


def test_json_may_have_comments_and_keeps_its_lines() -> None:
    text = '{ // the graph\n  "nodes": {"a": {"step": "s", "with": {"u": "https://x"}, // here\n "next": "b"}}}'

    (finding,) = refused(text)

    assert str(finding) == 'leads.yaml:3 nodes.a.next: no node "b".'


def test_a_file_is_named_in_what_is_said_about_it(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text("nodes: {a: {step: s}}\n", "utf-8")

    assert load_graph(path).graph.name == "orders"
    with pytest.raises(NotFound, match=r"nowhere\.yaml cannot be read"):
        load_graph(tmp_path / "nowhere.yaml")


def test_the_source_stays_as_it_was_written() -> None:
    document = {
        "name": "x",
        "nodes": [{"id": "a", "type": "task", "step": "s", "dependents": ["b"]}, {"id": "b", "type": "task"}],
    }

    loaded = load_graph(document)

    assert loaded.source == document
    assert loaded.source is not document


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        (nodes(a={"steps": "s"}), "nodes.a.steps", '"steps" is not a field here. Did you mean "step"?'),
        (nodes(a={"next": [{"too": "b"}]}), "nodes.a.next[0].too", '"too" is not a field here. Did you mean "to"?'),
        (
            nodes(a={"retry": {"attempt": 3}}),
            "nodes.a.retry.attempt",
            '"attempt" is not a field here. Did you mean "attempts"?',
        ),
        ({"node": {}}, "node", '"node" is not a field here. Did you mean "nodes"?'),
        (nodes(a={"on_no_match": "stop"}), "nodes.a.on_no_match", '"stop" is not one of end, fail.'),
        (nodes(a={"type": "tsk"}), "nodes.a.type", 'there is no node type "tsk". Did you mean "task"?'),
        (
            nodes(a={"timeout": "1hour"}),
            "nodes.a.timeout",
            '"1hour" is not a duration. Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.',
        ),
        (nodes(a={"timeout": 0}), "nodes.a.timeout", "must be longer than 0, not 0."),
        (nodes(a={"pass": False}), "nodes.a.pass", "must be true, not false."),
        (nodes(a={"retry": 0}), "nodes.a.retry", "must be an integer of at least 1, not 0."),
        (nodes(a={"retry": True}), "nodes.a.retry", "must be an integer of at least 1, not true."),
        (
            nodes(a={"save": {"x": "${output}"}}),
            "nodes.a.save.x",
            '"x" cannot be written to. Write state.x or, inside a fan-out, branch.x.',
        ),
        (
            nodes(a={"next": ["b", "c"]}, b={}, c={}),
            "nodes.a.next[1]",
            "this entry is never tried, because entry 0 before it always matches. To go to both at once, write one entry: to: [a, b].",
        ),
        (
            nodes(a={"next": [{"to": "b", "for_each": "input.xs"}]}, b={}),
            "nodes.a.next[0].for_each",
            'must be one ${…} that gives a list, not "input.xs".',
        ),
        (
            nodes(a={"merge": {"how": "append", "into": "state.x"}}),
            "nodes.a.merge",
            "merge belongs to a fan-in. Write join: all, any or at_least.",
        ),
        (nodes(a={"repeat": {"while": "output.x"}}), "nodes.a.repeat", "at_most is missing."),
        (
            nodes(a={"repeat": {"while": None, "at_most": 3}}),
            "nodes.a.repeat.while",
            "must be a condition, not empty. Omit while to repeat at_most times.",
        ),
        (nodes(a={"on_failure": "route"}), "nodes.a.on_failure", "on_failure belongs to a workflow."),
        ({"nodes": {"a b": {"pass": True}}}, "nodes.a b", '"a b" cannot name a node. Use letters, digits, _ and -.'),
        (nodes(a={"next": [{"when": "output.x"}]}), "nodes.a.next[0]", "to is missing."),
        (nodes(a={"next": [3]}), "nodes.a.next[0]", "must be a node or a mapping with to, not 3."),
        (
            nodes(a={"next": [{"to": []}]}),
            "nodes.a.next[0].to",
            "names no node. Name a node. A pass node can end a path.",
        ),
        (
            nodes(a={"next": [{"to": ["b", "b"]}]}, b={}),
            "nodes.a.next[0].to",
            '"b" is listed twice. To run it several times, write copies: 2.',
        ),
        (
            nodes(a={"next": [{"to": "b", "width": 2}]}, b={}),
            "nodes.a.next[0].width",
            "width belongs to for_each and copies.",
        ),
        (nodes(a={"next": [{"to": "b", "as": "x"}]}, b={}), "nodes.a.next[0].as", "as belongs to for_each."),
        (
            nodes(a={"next": [{"to": "b", "copies": 2, "for_each": "${input.x}"}]}, b={}),
            "nodes.a.next[0].copies",
            "for_each and copies cannot be combined.",
        ),
        (
            nodes(a={"next": [{"to": "b", "copies": 10**6}]}, b={}),
            "nodes.a.next[0].copies",
            "must be at most 100,000, not 1000000.",
        ),
        (
            nodes(a={"next": [{"to": "b", "for_each": "${input.x}", "as": "a-b"}]}, b={}),
            "nodes.a.next[0].as",
            'must be a name: letters, digits and _, not "a-b".',
        ),
        (nodes(a={"branch": {"rules": 3}}), "nodes.a.branch.rules", "must be a list, not 3."),
        (
            nodes(a={"branch": {"rules": [{"next_nodes": ["b"]}]}}, b={}),
            "nodes.a.branch.rules[0]",
            "condition is missing.",
        ),
        (nodes(a={"catch": [{"error": "X"}]}), "nodes.a.catch[0]", "to is missing."),
        (
            nodes(a={"repeat": {"while": "output.x", "until": "output.x", "at_most": 2}}),
            "nodes.a.repeat.until",
            "a loop has while or until, not both.",
        ),
        (nodes(a={"join": "most"}), "nodes.a.join", 'must be all, any, edges or {at_least: 3}, not "most".'),
        (
            nodes(a={"join": {"at_least": "101%"}}),
            "nodes.a.join.at_least",
            'must be an integer of at least 1, or a percentage such as 90%, not "101%".',
        ),
        (nodes(a={"join": "all", "merge": {"how": "append"}}), "nodes.a.merge", "into is missing."),
        (
            nodes(a={"join": "all", "merge": {"how": "append", "into": "x"}}),
            "nodes.a.merge.into",
            '"x" cannot be written to. Write state.x.',
        ),
        (
            nodes(a={"join": "all", "merge": {"how": "append", "into": "state.x", "from": "input.x"}}),
            "nodes.a.merge.from",
            '"input.x" is not a path into a branch. Write output.x, branch.x or "*".',
        ),
        ({"transitions": [{"from": "b", "to": "a"}], **nodes(a={})}, "transitions[0].from", 'no node "b".'),
        (
            {"transitions": [{"to": "a"}], **nodes(a={})},
            "transitions[0]",
            "a transition needs from, the name of a node.",
        ),
        ({"start": "b", **nodes(a={})}, "start", 'no node "b".'),
        (
            {"name": "a/b", **nodes(a={})},
            "name",
            "'a/b' is not a valid name. Use 1 to 200 printable characters without / and #, and do not begin with ~, & or !.",
        ),
        ({"nodes": {}}, "nodes", "a graph needs at least one node."),
        ({"nodes": {"a": None}}, "nodes.a", "must be a mapping, not empty."),
        ({"nodes": {"a": {}}}, "nodes.a", "a has no work. Write step: …, or pass: true."),
        (
            {"nodes": {"a": {"step": "s", "wait": "5m"}}},
            "nodes.a",
            "a node has only one kind of work, not step and wait.",
        ),
        ({"nodes": [{"step": "s"}]}, "nodes[0]", "a node in a list needs an id."),
        ({"nodes": [{"id": "a", "step": "s"}, {"id": "a", "step": "s"}]}, "nodes.a", 'two nodes are called "a".'),
        ({"weft": "graph/2", "nodes": {"a": {"pass": True}}}, "weft", 'must be graph/1, not "graph/2".'),
        (
            {"input": {"x": "strin"}, "nodes": {"a": {"pass": True}}},
            "input.x",
            'there is no type "strin". Did you mean "string"?',
        ),
        (
            {"limits": {"hop": 3}, "nodes": {"a": {"pass": True}}},
            "limits.hop",
            '"hop" is not a field here. Did you mean "hops"?',
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands_and_how_to_repair_it(document: Any, path: str, said: str) -> None:
    found = [finding for finding in refused(document) if finding.path == path]

    assert said in [f"{finding.message} {finding.suggestion}".strip() for finding in found]


def test_a_field_that_a_list_or_mapping_should_be_never_crashes() -> None:
    strange: list[Any] = [None, True, 3, 1.5, "", "x", [], {}, [None], {"a": None}, [[]], {"to": None}]
    for field in NODE:
        for value in strange:
            document = {"nodes": {"a": {"pass": True, field: value}, "x": {"pass": True}}}
            assert is_accepted_or_explained(document)


def test_what_a_node_can_do() -> None:
    graph = compiled(
        {
            "nodes": {
                "a": {"step": "charge"},
                "b": {"http": {"url": "https://x/${input.id}", "method": "POST", "body": {"n": "${state.n}"}}},
                "c": {
                    "workflow": {"name": "parcel", "version": "2", "inherit_artifacts": False},
                    "on_failure": "route",
                },
                "d": {"goal": ["paid", "shipped"]},
                "e": {"wait": "5m"},
                "f": {
                    "ask": {
                        "title": "Ship ${input.id}?",
                        "form": {"score": "number"},
                        "of": "role:sales",
                        "about": {"x": "${state}"},
                        "quorum": 2,
                        "timeout": "2d",
                        "on_timeout": {"escalate": "role:boss"},
                    }
                },
            }
        }
    )
    a, b, c, d, e, f = (graph.nodes[name].work for name in "abcdef")

    assert a == StepWork("charge")
    assert isinstance(b, HttpWork)
    assert b.request.names == ["input", "state"]
    assert c == WorkflowWork("parcel", "2")
    assert graph.nodes["c"].on_failure == "route"
    assert d == GoalWork(["paid", "shipped"])
    assert e == WaitWork(300_000)
    assert isinstance(f, AskWork)
    assert (f.of, f.quorum, f.timeout_ms, f.on_timeout, f.escalate) == (
        ["role:sales"],
        2,
        172_800_000,
        "escalate",
        ["role:boss"],
    )
    assert f.form == {
        "type": "object",
        "properties": {"score": {"type": "number"}},
        "additionalProperties": False,
        "required": ["score"],
    }
    assert f.title.names == ["input"]


def test_registered_node_types_are_used_by_their_name_and_their_configuration_is_checked() -> None:
    around = DocumentContext(types={"slack": {"type": "object", "required": ["channel"]}, "plain": None})
    named = load_graph({"nodes": {"a": {"slack": {"channel": "#x", "text": "${input.t}"}}}}, around).graph
    typed = load_graph(
        {"nodes": {"a": {"type": "slack", "config": {"channel": "#x", "text": "${input.t}"}}}}, around
    ).graph

    assert isinstance(named.nodes["a"].work, TypeWork)
    assert named.nodes["a"].work == typed.nodes["a"].work
    (finding,) = refused({"nodes": {"a": {"slack": {"text": "hi"}}}}, around)
    assert (finding.code, finding.path) == ("graph.bad_config", "nodes.a.slack")
    (finding,) = refused({"nodes": {"a": {"slak": {}}}}, around)[:1]
    assert finding.suggestion == 'Did you mean "slack"?'


def test_schemas_in_words_and_as_json_schema() -> None:
    graph = compiled(
        {
            "input": {
                "id": "string",
                "tags": "string[]",
                "grid": "integer[][]",
                "any": "any",
                "n": {"type": "integer", "default": 3},
            },
            "state": {"total": "number", "address": {"street": "string"}, "list": {"type": "string[]", "maxItems": 3}},
            "output_schema": {"type": "object", "properties": {"x": {"type": "number"}}},
            "output": {"x": "${state.total}"},
            **nodes(a={}),
        }
    )

    assert graph.input == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "any": {},
            "n": {"type": "integer", "default": 3},
        },
        "additionalProperties": False,
        "required": ["id", "tags", "grid", "any"],
    }
    assert graph.state is not None
    assert "required" not in graph.state
    assert graph.state["properties"]["address"]["properties"] == {"street": {"type": "string"}}
    assert graph.state["properties"]["list"] == {"type": "array", "items": {"type": "string"}, "maxItems": 3}
    assert graph.result == {"type": "object", "properties": {"x": {"type": "number"}}}


def test_an_output_of_types_gives_the_fields_of_the_state_and_checks_them() -> None:
    graph = compiled({"state": {"total": "number"}, "output": {"total": "number"}, **nodes(a={})})

    assert graph.output is not None
    assert graph.output.source == {"total": "${state.total}"}
    assert graph.result is not None
    assert graph.result["properties"] == {"total": {"type": "number"}}


def test_policies_are_read_and_what_is_not_said_is_left_to_the_step() -> None:
    graph = compiled(
        {
            "limits": {"time": "14d", "hops": 200, "tokens": 50, "fan_out": 10},
            **nodes(
                a={
                    "step": "s",
                    "retry": {"attempts": 5, "backoff": "linear", "delay": "1s", "max_delay": "1m"},
                    "timeout": "30s",
                    "queue": "gpu",
                    "limits": {"time": "1h"},
                    "undo": {"step": "u", "with": {"x": "${output.id}"}, "retry": 2, "timeout": 5},
                },
                b={"step": "s"},
            ),
        }
    )
    a, b = graph.nodes["a"], graph.nodes["b"]

    assert a.retry == RetryRule(5, "linear", 1_000, 60_000)
    assert (a.timeout_ms, a.queue, a.limits.time_ms) == (30_000, "gpu", 3_600_000)
    assert a.undo is not None
    assert (a.undo.step, a.undo.retry, a.undo.timeout_ms) == ("u", RetryRule(attempts=2), 5_000)
    assert b.retry == RetryRule()
    assert (b.timeout_ms, b.queue, b.undo) == (0, "", None)
    assert (graph.limits.time_ms, graph.limits.hops, graph.limits.tokens, graph.limits.fan_out) == (
        1_209_600_000,
        200,
        50,
        10,
    )


def test_blobs_that_conditions_refer_to_are_put_into_the_graph() -> None:
    reference = "cas://sha256:" + "0" * 64
    document = nodes(a={"next": [{"when": {"schema": reference}, "to": "b"}]}, b={})

    graph = load_graph(document, DocumentContext(resolve={reference: b'{"type": "object"}'}.get)).graph

    when = graph.edges["a>b"].when
    assert when is not None
    assert when.source == {"schema": {"type": "object"}}
    (finding,) = refused(document)
    assert finding.path == "nodes.a.next[0].when.schema"


def test_one_problem_is_told_with_the_name_of_the_graph_or_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(BadGraph, match=r'^second: nodes\.x\.pas: "pas" is not a field here\.'):
        load_graph({"name": "second", "nodes": {"x": {"pass": True, "pas": 1}}})
    (tmp_path / "second.yaml").write_text("name: second\nnodes:\n  x: {pass: true, pas: 1}\n")
    with pytest.raises(BadGraph, match=r"^second\.yaml:3 nodes\.x\.pas"):
        load_graph(tmp_path / "second.yaml")
