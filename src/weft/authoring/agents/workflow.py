"""The agent loop as a workflow. A run of an agent is a run of the workflow with the agent's name.

Agents in documents have no workflow of their own: their runs are runs of ``weft.agent``, with the spec in their input.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol, cast

import msgspec

from weft.agents.conversation import HeldBlob
from weft.agents.models.aliases import ModelAliases
from weft.agents.spec import AgentSpec, decode_spec, encode_spec
from weft.agents.tools.spec import ToolSpec
from weft.authoring.agents.agent import VERSION, WORKFLOW, Agent, AgentInput, read_input
from weft.authoring.agents.conversations import (
    StoredConversation,
    conversations_here,
    service_here,
    take_over_conversation,
)
from weft.authoring.agents.covers import check_prices
from weft.authoring.agents.model_calls import ModelAsker
from weft.authoring.agents.offered import known_tools, only_allowed, sources_in, with_reading, with_rules
from weft.authoring.agents.operations import is_recorded, loop_scope, recorded_value
from weft.authoring.agents.performers import ToolPerformer
from weft.authoring.agents.permission import RunPolicy
from weft.authoring.agents.reply import Reply
from weft.authoring.agents.tool_calls import ToolCalls
from weft.authoring.agents.turn_model import TurnModel
from weft.authoring.agents.turn_state import TurnState, first_messages, system_message
from weft.authoring.agents.turns import AgentLoop
from weft.authoring.context import Context
from weft.authoring.runnable import Runnable, RunnableGroup
from weft.authoring.steps import Step
from weft.authoring.workflows import Workflow, WorkflowProgram
from weft.core.ids import tenant_prefix
from weft.core.run.children import AGENTS_MAX, agent_too_deep
from weft.errors import BadValue, UnknownWorkflow
from weft.runtime.run.driver import CodeDriver
from weft.steps.codec import Codec
from weft.steps.signature import Signature

TOOLS = "tools"
"""The step that asks MCP servers for their tools."""
KEPT_ROUNDS = 2
"""How many rounds the state of a run keeps, so that a long conversation costs no more to load than a short one."""


class DeclaredAliases(Protocol):
    """The models that a program declares."""

    @property
    def aliases(self) -> ModelAliases:
        """All models that can be called."""
        ...


class AgentGroup(RunnableGroup, Protocol):
    """The steps, workflows and models of the app that runs an agent."""

    models: DeclaredAliases

    def find_step(self, name: str) -> Step[Any, Any] | None: ...

    def newest(self, name: str) -> Runnable[Any] | None: ...

    def step_names(self) -> list[str]: ...

    def runnable_names(self) -> list[str]: ...


class AgentProgram(WorkflowProgram):
    """The program of an agent's runs."""

    def __init__(self, workflow: Workflow[Any, Any], context: Context) -> None:
        super().__init__(workflow, context)
        self.defaults = _no_defaults  # type: ignore[assignment]  # the input is complete
        self._agent_context = context

    def check(self, given: Mapping[str, Any] | bytes) -> bytes:
        """Return the input of a new run as JSON. Raises BadValue."""
        if isinstance(given, bytes):
            read_input(given)
            return given
        return super().check(given)

    def texts(self) -> None:
        """Return None: a model names the calls."""

    def begin(self, driver: CodeDriver, given: bytes, defaults: bytes) -> Coroutine[Any, Any, Any]:
        """Begin the loop with its recorded input."""
        group = self._workflow.group.root()
        return run_agent(self._agent_context, cast("AgentGroup", group), self._read(given))

    def _read(self, given: bytes) -> AgentInput:
        """Read the input of a run. A goal gives the arguments of the agent by name."""
        named = msgspec.json.decode(given)
        if isinstance(self._workflow, Agent) and isinstance(named, dict) and named.get("agent") != self._workflow.name:
            return read_input(self._workflow.given(named))
        return read_input(given)


def agent_program(group: RunnableGroup, context: Context) -> AgentProgram:
    """Return the program of ``weft.agent``, for agents that documents describe: their runs bring their own spec."""

    async def perform(_: Context) -> Reply[Any]:
        """Never called: ``AgentProgram.begin`` runs the loop."""
        raise AssertionError

    signature = Signature([], [], Codec.of(Reply[Any]), takes_context=True)
    workflow: Workflow[Any, Any] = Workflow(group, WORKFLOW, perform, signature, version=VERSION, timeout_ms=0)
    return AgentProgram(workflow, context)


async def run_agent(ctx: Context, group: AgentGroup, given: AgentInput) -> Reply[Any]:
    """Run an agent from its recorded input."""
    aliases = group.models.aliases
    agent = group.newest(given.agent)
    declared = agent if isinstance(agent, Agent) else None
    more = await _tools_of_servers(ctx, declared if given.spec is None else None)
    fresh = None
    if not is_recorded("spec"):
        _check_given(given)
        _check_depth(given.agent)
        RunPolicy(service_here(), given.agent).check_budget()
        fresh = encode_spec(given.spec or _spec_of(group, given, more))
    recorded = await recorded_value("spec", "spec", fresh)
    spec = decode_spec(recorded.raw)
    if fresh is not None:
        check_prices(spec.agent, spec.models, aliases, loop_scope().driver.machine.state.currency)
    spec_ref = f"cas://sha256:{recorded.digest}"
    held = HeldBlob(at=spec_ref, size=len(recorded.raw))
    policy = RunPolicy(service_here(), spec.agent)
    tools = ToolCalls(ctx, spec, given.inputs, ToolPerformer(group, spec.agent, held), policy)
    codec = Codec.of(declared.declaration.output) if declared is not None and given.spec is None else None
    loop = AgentLoop(ctx, spec, TurnModel(ctx, spec, spec_ref, ModelAsker(aliases, spec.models, policy)), tools, codec)
    state = await _first_state(ctx, spec, given)
    return await ctx.loop("turn", loop.turn, state=state, keep=KEPT_ROUNDS)


def _check_given(given: AgentInput) -> None:
    """Raise BadValue if a run that nobody below a graph has started says itself what it may do.

    A start from elsewhere is not checked before: a client or a schedule need not know which workflows are agents.
    """
    state = loop_scope().driver.machine.state
    if (given.spec is not None or given.allowed_tools is not None) and state.parent is None and not state.forked_from:
        raise BadValue(
            f"The input of a start of the agent {given.agent[:60]} has a spec or allowed_tools.",
            hint="Only graphs give these to the agents of their nodes. Start it with its prompt.",
            code="value.wrong_type",
        )


def _check_depth(agent: str) -> None:
    """Raise LimitExceeded if too many agents have called each other.

    A run that another host started may get here: that host does not know which workflows are agents here.
    """
    parent = loop_scope().driver.machine.state.parent
    if parent is not None and parent.agents >= AGENTS_MAX:
        raise agent_too_deep(agent)


async def _first_state(ctx: Context, spec: AgentSpec, given: AgentInput) -> TurnState:
    first = first_messages(spec.system, given.prompt)
    if not given.history:
        return TurnState(add=first, turns=spec.turns, is_tainted=given.is_tainted)
    found, history = conversations_here(), given.history

    async def read_history() -> StoredConversation:
        return await take_over_conversation(found(), history, system_message(spec.system))

    before = await ctx.step("history", read_history)
    is_tainted = given.is_tainted or before.is_tainted
    return TurnState(add=first[-1:], head=before.head, chars=before.chars, turns=spec.turns, is_tainted=is_tainted)


def _spec_of(group: AgentGroup, given: AgentInput, more: list[ToolSpec]) -> AgentSpec:
    """Return the spec of a run that begins now. ``more``: the tools of MCP servers."""
    aliases, declared = group.models.aliases, _agent_named(group, given.agent).declaration
    tools = with_reading(only_allowed([*known_tools(declared.tools, group), *more], given.allowed_tools))
    return declared.spec(
        aliases.chain(declared.model), tools, aliases.get(declared.model).supports, given.allowed_tools
    )


async def _tools_of_servers(ctx: Context, declared: Agent[Any] | None) -> list[ToolSpec]:
    """Return the tools of MCP servers, as they were when the run began."""
    sources = sources_in(declared.declaration.tools) if declared is not None else []
    if not sources and not is_recorded(TOOLS):
        return []
    service = service_here()

    tenant = tenant_prefix(ctx.run_id)

    async def find_tools() -> list[ToolSpec]:
        return [
            with_rules(spec, rules)
            for source, rules in sources
            for spec in await source.offered_tools(service().store, tenant)
        ]

    return await ctx.step(TOOLS, find_tools)


def _agent_named(group: AgentGroup, name: str) -> Agent[Any]:
    found = group.newest(name)
    if isinstance(found, Agent):
        return found
    raise UnknownWorkflow(f'There is no agent "{name}" here.', hint="Import the file that declares it.")


def _no_defaults(_: bytes | None) -> bytes:
    return b""
