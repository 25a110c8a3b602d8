"""A large value in the state is opened once, however many hops do not look at it; and again when it is another one."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw

from tests.graph.table import Program, Table
from weft.core import commands as c
from weft.core.graph.machine import GraphMachine
from weft.core.graph.tokens import GraphState
from weft.core.run.env import Env
from weft.core.values import blob_ref
from weft.graphs.load import load_graph
from weft.runtime.values import OpenedValues

LARGE = 40_000


class Shelf(Table):
    """A run whose large values lie in blobs; counts how often one is opened."""

    def __init__(self, nodes: dict[str, Any], given: Any) -> None:
        self.blobs: dict[str, bytes] = {}
        self.opened: list[str] = []
        self.recent = OpenedValues(10 * LARGE)
        graph = load_graph({"nodes": nodes, "output": {"n": "${state.n}", "size": "${size(state.big)}"}}).graph
        self.machine = GraphMachine(Program(graph), GraphState(uid="0" * 32))
        self.log, self.open, self.now = [], {}, 1_000
        raw = Raw(msgspec.json.encode(given))
        self.tell(c.StartRun(run_id="run", workflow="g", input=raw, style="graph"))

    def env(self) -> Env:
        return Env(now=self.now, check=lambda *_: None, blob=self._blob, keep=self._keep, recall=self.recent.recall)

    def _keep(self, raw: bytes) -> Raw:
        if len(raw) < LARGE:
            return Raw(raw)
        digest = sha256(raw).hexdigest()
        self.blobs[digest] = raw
        return Raw(blob_ref(digest, len(raw)))

    def _blob(self, digest: str) -> bytes | None:
        self.opened.append(digest)
        return self.blobs.get(digest)


def counting(count: int, **last: Any) -> dict[str, Any]:
    nodes: dict[str, Any] = {
        f"n{i}": {
            "pass": True,
            "save": {"state.n": "${state.n + 1}"},
            "next": [{"to": f"n{i + 1}", "when": "state.n > 0"}],
        }
        for i in range(count)
    }
    first = {"pass": True, "save": {"state.big": "${input.big}", "state.n": "${0}"}, "next": "n0"}
    return {"first": first, **nodes, f"n{count}": {"pass": True, **last}}


def result(shelf: Shelf) -> Any:
    assert shelf.state.status == "completed", shelf.state.failure
    return msgspec.json.decode(shelf.state.output)


def test_a_large_value_is_opened_once_for_all_hops() -> None:
    shelf = Shelf(counting(50), {"big": "x" * LARGE})

    assert result(shelf) == {"n": 50, "size": LARGE}
    assert len(shelf.opened) == 1


def test_a_value_that_was_written_anew_is_seen_by_the_next_hop() -> None:
    nodes = counting(5, save={"state.big": "${state.big + state.big}"}, next="after")
    shelf = Shelf({**nodes, "after": {"pass": True, "save": {"state.n": "${size(state.big)}"}}}, {"big": "x" * LARGE})

    assert result(shelf) == {"n": 2 * LARGE, "size": 2 * LARGE}
    assert len(shelf.opened) == 2
