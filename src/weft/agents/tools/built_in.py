"""The tools that Weft has itself, offered by their names: ``tools=["execute_pipeline"]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from weft.agents.tools.spec import ToolSpec
from weft.core.findings import did_you_mean
from weft.errors import UsageError

BUILT_IN: Mapping[str, str] = {
    "execute_pipeline": "weft.agents.toolbox.definitions:pipeline_tools",
    "delegate_to_agent": "weft.agents.toolbox.definitions:delegate_tools",
    "openapi_action": "weft.agents.toolbox.definitions:openapi_tools",
    "patch_workflow": "weft.agents.toolbox.definitions:patch_tools",
    "read_result": "weft.agents.toolbox.definitions:read_tools",
    "search_tools": "weft.agents.toolbox.definitions:search_tools",
}
"""The function that makes the tools of a name, as ``module:function``. Only what a program offers is imported."""


def built_in_tools(name: str) -> Sequence[ToolSpec]:
    """Return the tools that come with a name. Raises UsageError (``tool.unknown``)."""
    place = BUILT_IN.get(name)
    if place is None:
        raise unknown_tool(name, list(BUILT_IN))
    module, _, function = place.partition(":")
    make: Callable[[], Sequence[ToolSpec]] = getattr(import_module(module), function)
    return make()


def unknown_tool(name: str, known: Sequence[str]) -> UsageError:
    """Make the error for a tool that nobody has."""
    near = did_you_mean(name, known)
    return UsageError(
        f'There is no tool "{name}".{f" {near}" if near else ""}',
        hint=f"There are {', '.join(known)}." if known else "Offer a step, a workflow, an agent or an MCP server.",
        code="tool.unknown",
    )
