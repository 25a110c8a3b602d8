"""Register an agent, with everything checked that can be checked before a run."""

from __future__ import annotations

from typing import Any

from weft.agents.mcp.servers import McpServer
from weft.authoring.agents.agent import Agent
from weft.authoring.agents.declaration import AgentDeclaration, check_declaration, check_tools
from weft.authoring.agents.offered import known_tools, sources_in
from weft.authoring.agents.workflow import AgentProgram
from weft.authoring.registrations import Registrations


def add_agent(registered: Registrations, declared: AgentDeclaration) -> Agent[Any]:
    """Register an agent. Models that it names may be declared later.

    Raises BadValue, UsageError (``tool.unknown``), NameTaken, LimitExceeded.
    """
    checked = check_declaration(declared)
    check_tools(checked.name, known_tools(checked.tools, registered))
    for source, _ in sources_in(checked.tools):
        if isinstance(source, McpServer):
            registered.models.servers.add(source)
    agent: Agent[Any] = Agent(registered, checked, AgentProgram)
    registered.adopt_workflow(agent)
    return agent
