"""The steps that a host can perform and the programs that it can run, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from weft.core.events import Policy, ScheduleSpec, Style, UndoPlan
from weft.core.goal.definitions import StepDef
from weft.core.goal.plan import GoalPlan
from weft.core.ids import Millis
from weft.core.start_rules import StartRule
from weft.ports.definitions import Definition
from weft.runtime.hooks import HookTable
from weft.runtime.key_limits import DeclaredLimit
from weft.runtime.programs import AnyProgram, GraphProgram
from weft.runtime.start_rules import DeclaredRule
from weft.steps.step_arguments import StepArguments
from weft.steps.task import StepBody

if TYPE_CHECKING:
    from weft.agents.mcp.servers import McpServer
    from weft.agents.models.aliases import ModelAliases
    from weft.agents.policy.policy_rules import PolicyRules
    from weft.graphs.load import DocumentContext
    from weft.runtime.catalogue_log import Learning


class Callee(msgspec.Struct, frozen=True):
    """The program that the name of a workflow refers to on a host."""

    version: str
    style: Style
    timeout_ms: int = 0
    rule: DeclaredRule | None = None
    """The rule that it declares about its starts."""


class HostCatalogue(Protocol):
    """The steps and programs of a host. Read at every dispatch, so that later registrations are found too."""

    def step(self, name: str) -> StepBody | None: ...

    def models(self) -> ModelAliases:
        """Return the language models that this host can ask."""
        ...

    def model_names(self) -> Sequence[str]:
        """Return the names of these models. Costs nothing if there are none."""
        ...

    def mcp_servers(self) -> Mapping[str, McpServer]:
        """Return the MCP servers whose tools this host can call, by name."""
        ...

    def step_policy(self, step: str) -> Policy | None: ...

    def step_undo(self, step: str) -> UndoPlan | None: ...

    def step_parameters(self, step: str) -> list[str] | None: ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan:
        """Plan how to reach these goals. Raises UnknownStep."""
        ...

    def callee(self, workflow: str) -> tuple[str, Style] | None:
        """Return the version of a workflow that would be started now, and its style."""
        ...

    def is_agent(self, workflow: str) -> bool:
        """Return whether the runs of a workflow are runs of an agent."""
        ...

    def step_arguments(self, step: str) -> StepArguments | None:
        """Return what a step takes that is a function."""
        ...

    def steps(self) -> Sequence[str]:
        """Return the names of all steps that this host can perform."""
        ...

    def queues(self) -> Sequence[str] | None:
        """Return the queues that this host serves; None for all queues."""
        ...

    def limits(self) -> Mapping[str, DeclaredLimit]:
        """Return the limits of steps and workflows per key, by the name of the limit. Later registrations are added."""
        ...

    def program(self, workflow: str, version: str) -> AnyProgram | None: ...

    def programs(self) -> Sequence[tuple[str, str]]:
        """Return the (workflow, version) pairs that this host may claim. Empty version: runs started by name."""
        ...

    def resolve(self, workflow: str, version: str) -> Callee | None:
        """Return the program with this name and version (empty for the newest)."""
        ...

    def startable(self) -> Sequence[str]:
        """Return the names of the workflows that can be started, sorted."""
        ...

    def start_rule(self, workflow: str, version: str) -> DeclaredRule | None:
        """Return the rule about starts that a version of a workflow declares."""
        ...

    def start_rules(self) -> Mapping[str, StartRule]:
        """Return the rules of the newest versions of workflows, by name."""
        ...

    def schedules(self) -> Mapping[str, ScheduleSpec]:
        """Return the schedules that the code of this host declares, by name."""
        ...

    def hooks(self) -> HookTable:
        """Return the hooks that are told of events of runs here."""
        ...

    def policy(self) -> PolicyRules | None:
        """Return the policy of the program; None if it has none. Raises BadPolicy, NotFound."""
        ...

    def definitions(self, now: Millis) -> Sequence[Definition]:
        """Return the definitions that the store should have, for the workflows that are data.

        The same object is returned until there are others.
        """
        ...

    def document_context(self) -> DocumentContext:
        """Return what graph documents may use on this host: node types and blobs."""
        ...

    def learn(self, definition: Definition, read: GraphProgram | None = None) -> None:
        """Add a version that was hosted before, so that runs that began with it can continue here.

        ``read``: the graph in it, if it was read already.
        """
        ...

    def learn_other(self, definition: Definition) -> bool:
        """Add a graph from the store that no program here names, such as a frozen plan, if this host has its steps."""
        ...

    def planned(self) -> Sequence[StepDef]:
        """Return the steps that goals are planned with."""
        ...

    def own_steps(self) -> Sequence[StepDef]:
        """Return those of these steps that do not come from the store."""
        ...

    def planned_step(self, name: str) -> StepDef | None:
        """Return one of the steps that goals are planned with."""
        ...

    def learning(self, steps: Mapping[str, StepDef]) -> Learning:
        """Prepare to plan with exactly these steps from the store, besides the host's own."""
        ...
