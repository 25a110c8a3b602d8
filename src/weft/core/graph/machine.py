"""The machine of graph runs."""

from __future__ import annotations

import msgspec

from weft.core.commands import ReportTaskSucceeded
from weft.core.graph import plain
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import GraphModel
from weft.core.graph.style import GraphStyle
from weft.core.graph.tokens import GraphState
from weft.core.run.env import Env
from weft.core.run.kernel import Kernel
from weft.core.run.plain import Continuation

_decoder: msgspec.json.Decoder[GraphState] = msgspec.json.Decoder(GraphState)
_encode = msgspec.json.Encoder().encode


def restore_state(snapshot: bytes) -> GraphState:
    """Restore the state of a run from a snapshot with the same ``FOLD`` version."""
    return _decoder.decode(snapshot)


class GraphMachine(Kernel):
    """The machine of one graph run."""

    __slots__ = ()

    state: GraphState
    style: GraphStyle

    def __init__(self, program: HostedGraph, state: GraphState) -> None:
        super().__init__(state, GraphStyle(program, state))

    def take_success(self, report: ReportTaskSucceeded, env: Env) -> Continuation | None:
        return plain.take_success(self.style, report, env)

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        return _encode(self.state)

    @property
    def graph(self) -> GraphModel:
        """The graph that the run follows."""
        return self.style.graph
