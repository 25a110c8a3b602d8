"""No document, however strange, crashes the loader: it is a graph, or everything that is wrong with it."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.documents import is_accepted, is_accepted_or_explained, refused
from tests.scale import MARKS, scaled
from weft.graphs.fold import DOCUMENT, NODE
from weft.graphs.load import load_graph
from weft.graphs.routes import ENTRY, LOOP, REPEAT, RULE, TRANSITION

pytestmark = MARKS

NAMES = ["a", "b", "c", "d", "e"]
TEXTS = [
    *NAMES,
    "all",
    "any",
    "edges",
    "task",
    "human",
    "agent",
    "output.x",
    "${output.x}",
    "${input.xs}",
    "state.x",
    "branch.x",
    "*",
    "append",
    "5s",
    "90%",
    "cancel",
    "end",
    "first_match",
    "conditional",
    "agent_driven",
    "!",
    "${",
    "nodes.a.output",
]
WORDS = sorted(
    {*NODE, *ENTRY, *LOOP, *REPEAT, *RULE, *TRANSITION, "at_least", "m_of_n", "how", "into", "from", "rules"}
)

scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from(TEXTS), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)
node = st.dictionaries(st.sampled_from(sorted(NODE)), values, max_size=5)
documents = st.fixed_dictionaries(
    {"nodes": st.dictionaries(st.sampled_from(NAMES), node, max_size=5) | st.lists(node, max_size=4)},
    optional={key: values for key in DOCUMENT if key != "nodes"},
)


@given(documents)
@settings(max_examples=scaled(40, 150))
def test_any_document_is_a_graph_or_refused(document: dict[str, Any]) -> None:
    assert is_accepted_or_explained(document)


@given(values)
@settings(max_examples=scaled(50, 200))
def test_any_value_is_a_graph_or_refused(value: Any) -> None:
    assert is_accepted_or_explained({"nodes": value})


@given(st.text(alphabet=st.sampled_from("ab:-{}[]\"'!&*|>%@`#,?\n\t nodes"), max_size=80))
@settings(max_examples=scaled(120, 500))
def test_any_text_is_a_graph_or_refused(text: str) -> None:
    for document in (text, f"nodes:\n  a:\n    pass: true\n    with: {text}\n"):
        assert is_accepted_or_explained(document)


def sensible_document(seed: int) -> dict[str, Any]:
    """Nodes with sensible parts at random: many of these compile."""
    draw = random.Random(seed)
    names = [f"n{index}" for index in range(draw.randint(1, 10))]
    found: dict[str, Any] = {}
    for index, name in enumerate(names):
        part: dict[str, Any] = {"step": "s"}
        later = names[index + 1 :]
        if later and draw.random() < 0.85:
            targets = draw.sample(later, min(len(later), draw.randint(1, 3)))
            way: dict[str, Any] = {"to": targets if draw.random() < 0.5 else targets[0]}
            way |= draw.choice([{}, {}, {"for_each": "${input.xs}", "width": 2}, {"copies": 2}])
            choice = {"when": "output.ok", "to": draw.choice(later)}
            part["next"] = draw.choice([[way], [choice, way], [choice]])
        if draw.random() < 0.4:
            part["join"] = draw.choice(["all", "any", "edges", {"at_least": 2}, {"at_least": "50%"}])
        if draw.random() < 0.2:
            part["repeat"] = {"while": "output.again", "at_most": 3, "back_to": draw.choice(names[: index + 1])}
            if later and draw.random() < 0.5:
                part["repeat"]["exhausted"] = draw.choice(later)
        if later and draw.random() < 0.2:
            part["catch"] = draw.choice(later)
        if draw.random() < 0.2:
            part["save"] = {draw.choice(["state.x", "branch.x", "state.y"]): "${output}"}
        found[name] = part
    return {"nodes": found}


def test_random_graphs_compile_the_same_every_time_or_are_refused_the_same() -> None:
    accepted = 0
    for seed in range(scaled(100, 700)):
        document = sensible_document(seed)
        if is_accepted(document):
            accepted += 1
            assert load_graph(document).hash == load_graph(document).hash
        else:
            assert refused(document) == refused(document)
    assert accepted > scaled(8, 120)
