"""Pictures and runs to draw: graphs of the examples, drawn ones, and texts that mean something elsewhere."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.graph.table import Table
from weft.core.graph.model import GraphModel
from weft.errors import BadGraph
from weft.graphs.load import load_graph
from weft.observe.pictures import Arrow, ArrowKind, Box, Picture, picture_of_graph

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
GOLDEN = sorted((ROOT / "tests" / "golden" / "graphs").glob("*.json"))

DOWN: list[ArrowKind] = ["main", "main", "error", "timeout"]
UP: list[ArrowKind] = ["back", "back", "main"]
HOSTILE = [
    'a "quoted" name',
    "<script>alert(1)</script>",
    "]]> --> <!-- &amp; 'x'",
    "end",
    "x --> y; click x callback",
    "`markdown` #quot; %% :::done",
    "two\nlines\tand\x1b[31m red \x07\x00",
    "日本語の題名 é ́",
    "\u202eright to left",
    "\ud800 half a character \ufffe",
    "a back\\slash",
]


def example(name: str) -> GraphModel:
    return load_graph(ROOT / "examples" / f"{name}.yaml").graph


def golden_graphs() -> dict[str, GraphModel]:
    """The graph of every golden case that compiles."""
    found = {}
    for path in GOLDEN:
        try:
            found[path.stem] = load_graph(json.loads(path.read_text())["document"]).graph
        except BadGraph:
            continue
    return found


def started(graph: GraphModel, given: Any, steps: dict[str, Any], answers: int) -> Table:
    """A run after so many answers, the oldest open task first."""
    table = Table(graph, given)
    calls: Counter[str] = Counter()
    for _ in range(answers):
        table.answer(min(table.open), steps, calls)
    return table


def hostile() -> Picture:
    """Every text in it is one that some format could take for its own."""
    boxes = tuple(Box(text, text, text, badges=(text,), tip=text, mark="done", times=2) for text in HOSTILE)
    return Picture(HOSTILE[0], boxes, tuple(Arrow(a, b, a, tip=b) for a, b in pairwise(HOSTILE)), HOSTILE[1])


def drawn(seed: int) -> Picture:
    """A picture of up to 30 boxes with arrows down, back, to themselves and in circles nobody declared."""
    draw = random.Random(seed)
    count = draw.randrange(1, 31)
    names = [f"n{number}" for number in range(count)]
    boxes = tuple(
        Box(
            name,
            f"node {name}",
            draw.choice(["", "step do", "ask role:manager for this"]),
            draw.choice(["plain", "choice", "join", "end"]),
            draw.choice(["idle", "done", "working", "failed"]),
            draw.randrange(4),
            tuple(["3 of 10 branches", "needs 5"][: draw.randrange(3)]),
        )
        for name in names
    )
    labels = ["", "", "otherwise", "output.score >= 80 && state.profile.revenue > 100000"]
    arrows = []
    for number in range(1, count):
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            source = names[draw.randrange(max(0, number - 8), number)]
            kind = draw.choice(DOWN)
            arrows.append(Arrow(source, names[number], draw.choice(labels), kind, draw.random() < 0.3))
    for _ in range(draw.randrange(4)):
        first, second = sorted(draw.choices(range(count), k=2))
        kind = draw.choice(UP)
        arrows.append(Arrow(names[second], names[first], draw.choice(labels), kind))
    return Picture(f"drawn {seed}", boxes, tuple(arrows))


@cache
def many() -> dict[str, Picture]:
    """Pictures of all kinds."""
    found = {path.stem: picture_of_graph(example(path.stem)) for path in EXAMPLES}
    found |= {name: picture_of_graph(graph) for name, graph in golden_graphs().items()}
    return found | {f"drawn-{seed}": drawn(seed) for seed in range(16)}
