"""Graph runs that users patch: nodes put between others, other timeouts, tokens that work again or go elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.sim.graph_steps import app
from tests.sim.graphs import GRAPHS
from tests.sim.workflows import Cast

INSTRUCTIONS = ("move", "restart")
PATCHED = (
    "chain", "rounds", "choice", "caught", "spread", "nested", "quorum", "late", "sleeper", "late_node", "family",
    "undone", "mending", "once",
)  # fmt: skip


def draw_patch(draw: random.Random, workflow: str, live: Sequence[str]) -> dict[str, Any]:
    """Return a patch that leads to the same result, unless it moves a token.

    ``live`` are the nodes with tokens. A token works again, or goes elsewhere, mostly from one of these.
    """
    nodes: dict[str, Any] = GRAPHS.kinds[workflow].workflow.loaded.source["nodes"]
    kind = draw.choice(["between", "between", "timeout", "restart", "move", "both"])
    patch: dict[str, Any] = {"ops": [], "reason": "it is better so"}
    if kind in ("between", "both"):
        name = draw.choice(sorted(name for name, node in nodes.items() if isinstance(node.get("next"), str)))
        # Named after its place: under one name, a second one would replace the first and lead past what lies between.
        new = f"behind_{name}"
        patch["ops"] = [
            {"op": "add", "path": f"/nodes/{new}", "value": {"pass": True, "next": nodes[name]["next"]}},
            {"op": "replace", "path": f"/nodes/{name}/next", "value": new},
        ]
    elif kind == "timeout":
        name = draw.choice(sorted(name for name, node in nodes.items() if "step" in node))
        patch["ops"] = [{"op": "add", "path": f"/nodes/{name}/timeout", "value": "50m"}]
    if kind in ("restart", "both"):
        patch["restart"] = [draw.choice(live or sorted(nodes))]
    elif kind == "move":
        patch["move"] = [{"node": draw.choice(live or sorted(nodes)), "to": draw.choice(sorted(nodes))}]
    return patch


PATCHED_GRAPHS = Cast(
    "graph-patches",
    app,
    [kind for kind in GRAPHS.kinds.values() if kind.workflow.name in PATCHED],
    lacks=GRAPHS.lacks,
    runs=(1, 3),
    draw_patch=draw_patch,
)
