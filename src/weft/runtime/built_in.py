"""Work that no author registers: HTTP requests of graph nodes, and the kinds of nodes that packages add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.core.graph.starting import HTTP, TYPE
from weft.runtime.insist import insist
from weft.steps.base import StepBody
from weft.steps.http.client import HttpClient
from weft.steps.http.node import HttpNode
from weft.steps.node_types import NodeTypeBody, node_types

if TYPE_CHECKING:
    from weft.runtime.engine import Engine


class BuiltIn:
    """The bodies, made when they are first needed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bodies: dict[str, StepBody] = {}
        self._client: HttpClient | None = None

    def step(self, name: str) -> StepBody | None:
        """What performs this, if it is built in."""
        found = self._bodies.get(name)
        if found is None:
            found = self._make(name)
            if found is not None:
                self._bodies[name] = found
        return found

    def _make(self, name: str) -> StepBody | None:
        if name == HTTP:
            self._client = self._client or HttpClient()
            return HttpNode(self._client, self._engine.clock, self._keep)
        node_type = node_types().get(name.removeprefix(TYPE)) if name.startswith(TYPE) else None
        return NodeTypeBody(node_type) if node_type is not None else None

    async def _keep(self, content: bytes) -> str:
        digest = await insist(self._engine, lambda: self._engine.store.blobs.put(content))
        return f"cas://sha256:{digest}"

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
