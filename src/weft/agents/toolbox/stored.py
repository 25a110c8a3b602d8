"""Tools that were made of pipelines: what is stored of them, and who keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from weft.agents.toolbox.definitions import STORED
from weft.agents.toolbox.shapes import PipelineShape, shape_text
from weft.agents.tools.spec import ToolSpec, make_tool
from weft.core.ids import Millis

ToolStatus = Literal["proposed", "accepted", "discarded"]


class StoredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that was made of pipelines of one shape."""

    name: str
    status: ToolStatus
    shape: PipelineShape
    runs: tuple[str, ...] = ()
    """The runs in which pipelines of this shape succeeded first."""
    at: Millis
    """When it was made."""

    def spec(self) -> ToolSpec:
        """Return the tool as an agent sees it."""
        return make_tool(
            ToolSpec(
                name=self.name,
                description=shape_text(self.shape),
                schema=_with_data(self.shape),
                effect="idempotent",
                kind="pipeline",
                target=STORED,
                given={"name": self.name},
            )
        )


def _with_data(shape: PipelineShape) -> dict[str, Any]:
    """Return the schema of a tool. Unless it fetches its data, it takes that of an earlier result."""
    schema = shape.schema()
    if shape.steps[0]["step"] == "http_request":
        return schema
    data = {"type": "string", "description": 'The result_ref of the data, or "last".'}
    return {**schema, "properties": {"input_ref": data, **schema["properties"]}}


class KeepsTools(Protocol):
    """Keeps the tools of tenants."""

    async def used(self, tenant: str, run_id: str, pipeline: Sequence[Any]) -> None:
        """Note that a pipeline succeeded in a run. In enough runs, its shape becomes a tool."""
        ...

    async def offered(self, tenant: str) -> Sequence[StoredTool]:
        """Return the tools that agents of a tenant may call."""
        ...
