"""The bodies of steps that no author registers: requests, scripts, model calls, node types that packages add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from weft.core.effects import PerformTask
from weft.core.goal.definitions import COMPENSATE, HttpWay, PipelineWay, ScriptWay, StepDef, StepWay, definition_digest
from weft.core.graph.node_start import HTTP, PIPELINE, SCRIPT, TYPE
from weft.core.machine import Machine
from weft.ports.clock import Clock
from weft.ports.store import Store
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.held_models import MODEL_QUEUE, HeldModels
from weft.runtime.programs import undone_step
from weft.runtime.tool_settings import ToolStores
from weft.runtime.values import ValueStore
from weft.steps.catalogued import CataloguedStep, why_planned
from weft.steps.definition import DEFINED, DefinedStep
from weft.steps.node_types import NodeTypeBody, node_types
from weft.steps.task import MCP, MODEL, TOOL, StepBody

if TYPE_CHECKING:
    from weft.agents.models.meter import ModelMeter
    from weft.agents.models.ports import ModelPorts
    from weft.agents.models.step import ModelStep
    from weft.agents.toolbox.bodies import Toolbox
    from weft.steps.http.client import HttpClient
    from weft.steps.pipelines.run import PipelineRunner


def task_name(effect: PerformTask) -> str:
    """Return the name under which the shared queue has a task: its step, and which model if it asks one."""
    if effect.step != MODEL:
        return effect.step
    return f"{MODEL}/{effect.policy.queue.removeprefix(MODEL_QUEUE)}"


class BuiltIn:
    """The built-in bodies, created when they are first needed."""

    def __init__(
        self, catalogue: HostCatalogue, clock: Clock, values: ValueStore, store: Store, tools: ToolStores
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._values = values
        self._memos = store.memos
        self._pins = store.tool_pins
        self._tools = tools
        self.held = HeldModels(store.memos, clock, catalogue.model_names)
        """The models whose providers asked to wait."""
        self._models: ModelPorts | None = None
        self.meter: ModelMeter | None = None
        """Counts the calls of models; None before the first one."""
        self._bodies: dict[str, StepBody] = {}
        self._client: HttpClient | None = None

    def body_of(
        self, machine: Machine, effect: PerformTask, own: StepBody | None, planned: StepDef | None
    ) -> StepBody | None:
        """Return the body that performs a task, if there is one here.

        ``own`` is the registered step with its name. ``planned`` is the step of a plan that it performs.
        """
        if planned is not None and not isinstance(planned.way, StepWay):
            return self.work(planned)
        if effect.step == MODEL and task_name(effect) not in self.shared_steps():
            return None
        if planned is not None and own is not None:
            return own
        undone = undone_step(machine, effect.task)
        compensation = self.compensation(undone) if undone is not None else None
        if compensation is not None:
            return compensation
        return own or self.step(effect.step) or self.catalogued(effect.step)

    def has_fallback(self, effect: PerformTask) -> bool:
        """Return whether another model is asked at once if the model of this task is held."""
        found = self._catalogue.models().find(effect.policy.queue.removeprefix(MODEL_QUEUE))
        return found is not None and bool(found.fallback)

    def shared_steps(self) -> list[str]:
        """Return the names under which the shared queue has built-in steps of this host: one for each model."""
        return [f"{MODEL}/{name}" for name in self._catalogue.model_names()]

    def step(self, name: str) -> StepBody | None:
        """Return the body with this name, if it is built in."""
        body = self._bodies.get(name)
        if body is None:
            body = self._make_body(name)
            if body is not None:
                self._bodies[name] = body
        return body

    def _make_body(self, name: str) -> StepBody | None:
        if name == HTTP:
            from weft.steps.http.node import HttpNode  # noqa: PLC0415 - only programs with requests import the client
            from weft.steps.http.webhooks import webhooks_here  # noqa: PLC0415

            return HttpNode(self.client, self._clock, self._keep_blob, webhooks=webhooks_here())
        if name == SCRIPT:
            from weft.steps.script import ScriptNode  # noqa: PLC0415 - only programs with scripts import it

            return ScriptNode(name)
        if name == MODEL:
            return self._model_step()
        if name == PIPELINE:
            from weft.steps.pipelines.bodies import PipelineNode  # noqa: PLC0415 - only programs with pipelines

            return PipelineNode(name, self.pipelines)
        if name.startswith(TOOL):
            return self._make_toolbox().body(name)
        if name == MCP:
            from weft.agents.mcp.step import McpStep  # noqa: PLC0415 - only programs with MCP servers import it

            return McpStep(self._catalogue.mcp_servers, self._pins, self._values.put)
        if name == DEFINED:
            return DefinedStep(self.work)
        node_type = node_types().get(name.removeprefix(TYPE)) if name.startswith(TYPE) else None
        return NodeTypeBody(node_type) if node_type is not None else None

    def _model_step(self) -> ModelStep:
        from weft.agents.conversation import Conversations  # noqa: PLC0415 - only programs with models import them
        from weft.agents.models.cache import AnswerCache  # noqa: PLC0415
        from weft.agents.models.meter import ModelMeter  # noqa: PLC0415
        from weft.agents.models.ports import ModelPorts  # noqa: PLC0415
        from weft.agents.models.step import ModelStep  # noqa: PLC0415
        from weft.agents.models.watch import ModelWatch  # noqa: PLC0415

        values = self._values
        self._models = ModelPorts(self._catalogue.models(), self._clock, values.blob)
        cache = AnswerCache(self._memos, self._clock, values.keep, values.load)
        conversations = Conversations(values.put, values.blob)
        self.meter = ModelMeter()
        watch = ModelWatch(self._clock, self.held, self.meter)
        return ModelStep(self._models, conversations, cache, get=values.blob, watch=watch)

    def _make_toolbox(self) -> Toolbox:
        from weft.runtime.toolbox import make_toolbox  # noqa: PLC0415 - only programs with agents import it

        return make_toolbox(self.pipelines, self._values, self._tools, lambda: self.client)

    def catalogued(self, name: str) -> StepBody | None:
        """Return the body of a request or script in the catalogue, or of its undo, as the catalogue is now."""
        find = self._catalogue.planned_step
        definition, make = find(name), self.work
        if definition is None and name.endswith(COMPENSATE):
            definition, make = find(name.removesuffix(COMPENSATE)), self.compensation
        if definition is None or why_planned(definition):
            return None
        body = make(definition)
        return CataloguedStep(definition, body) if body is not None else None

    def compensation(self, definition: StepDef) -> StepBody | None:
        """Return the body that undoes a request."""
        way = definition.way
        if not isinstance(way, HttpWay) or not way.compensate:
            return None
        from weft.steps.http.compensation import Compensation  # noqa: PLC0415
        from weft.steps.http.step import HttpCall  # noqa: PLC0415

        call = HttpCall(url=way.compensate, headers=way.headers)
        if definition.policy.timeout_ms and way.answer == "now":
            call = msgspec.structs.replace(call, timeout_ms=definition.policy.timeout_ms)
        return Compensation(definition.id, call, self.client, self._clock)

    def work(self, definition: StepDef) -> StepBody | None:
        """Return the body of a goal's step that is a request or a script."""
        key = f"{definition.id}:{definition_digest(definition)}"
        body = self._bodies.get(key)
        if body is None and isinstance(definition.way, HttpWay):
            body = self._make_request_step(definition, definition.way)
        elif body is None and isinstance(definition.way, ScriptWay):
            from weft.steps.script import ScriptStep  # noqa: PLC0415

            body = ScriptStep(definition)
        elif body is None and isinstance(definition.way, PipelineWay):
            from weft.steps.pipelines.bodies import PipelineDefined  # noqa: PLC0415

            body = PipelineDefined(definition, self.pipelines)
        if body is not None:
            self._bodies[key] = body
        return body

    def _make_request_step(self, definition: StepDef, way: HttpWay) -> StepBody:
        from weft.steps.http.step import HttpCall, HttpStep  # noqa: PLC0415
        from weft.steps.http.webhooks import webhooks_here  # noqa: PLC0415

        call = HttpCall(
            url=way.url,
            method=way.method,
            answer=way.answer,
            body=way.body,
            webhook=way.webhook,
            headers=way.headers,
            health=way.health,
        )
        if definition.policy.timeout_ms and way.answer == "now":
            call = msgspec.structs.replace(call, timeout_ms=definition.policy.timeout_ms)
        return HttpStep(definition.id, call, self.client, self._clock, webhooks=webhooks_here())

    @property
    def client(self) -> HttpClient:
        """Return the HTTP client that all requests of this host share."""
        if self._client is None:
            from weft.steps.http.client import HttpClient  # noqa: PLC0415

            self._client = HttpClient()
        return self._client

    @property
    def pipelines(self) -> PipelineRunner:
        """Return what performs pipelines on this host."""
        from weft.steps.pipelines.run import PipelineRunner  # noqa: PLC0415

        return PipelineRunner(lambda: self.client, self._clock)

    async def _keep_blob(self, content: bytes) -> str:
        digest = await self._values.put(content)
        return f"cas://sha256:{digest}"

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        if self._models is not None:
            await self._models.close()
        for server in self._catalogue.mcp_servers().values():
            await server.close()
