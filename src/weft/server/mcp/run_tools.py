"""The tools of the MCP server: offered workflows, the runs that a caller started, and questions of other runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any

import msgspec
from mcp_types import CallToolResult, InputRequiredResult, Tool, ToolAnnotations
from msgspec import Meta

from weft.core.run.questions import STARTED_BY
from weft.errors import BadValue, IdTaken, NotAllowed
from weft.observe.explain import explain
from weft.observe.questions import OpenQuestion, open_questions_of, runs_that_ask
from weft.server import views
from weft.server.approvals.approval import approval_view
from weft.server.endpoints import approvals, run_control
from weft.server.endpoints.runs import parse_place
from weft.server.endpoints.start import start_as
from weft.server.identity import AccessScope
from weft.server.mcp.exchange import McpExchange, ToolRequest, make_tool_result
from weft.server.mcp.offer import RUN_ID, OfferedWorkflow
from weft.server.mcp.run_wait import WAIT_SECONDS_MAX, RunWait, WaitState, questions_of_tree, shown_questions

QUESTIONS_MAX = 50
Perform = Callable[[ToolRequest], Awaitable[CallToolResult | InputRequiredResult]]


class ServedTool(msgspec.Struct, frozen=True):
    """A tool with the scope that it needs, and what performs it."""

    tool: Tool
    scope: AccessScope
    perform: Perform


# --- arguments ---------------------------------------------------------------------------------------------------


class NamedRun(views.Form, frozen=True, kw_only=True):
    """The run that a tool is about."""

    run_id: views.Id


class AwaitedRun(NamedRun, frozen=True, kw_only=True):
    wait: Annotated[float, Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0.0
    """How many seconds to wait for the result."""


class CancelledRun(NamedRun, frozen=True, kw_only=True):
    reason: views.Text = ""


class SentMessage(NamedRun, frozen=True, kw_only=True):
    name: views.Name
    body: Any = None


class QuestionDecision(views.Form, frozen=True, kw_only=True):
    """An answer to a question of another caller's run."""

    id: views.Id
    """The id of the question, as ``questions`` returns it."""
    approved: bool
    reason: views.Text = ""
    form: Any = None
    digest: views.Text = ""
    """The digest of the question that was read. The answer is refused if the question has changed."""


def read_tool_arguments(arguments: Mapping[str, Any], of: type[Any]) -> Any:
    """Read the arguments of a tool. Raises BadValue."""
    try:
        return msgspec.convert(dict(arguments), of)
    except msgspec.ValidationError as error:
        raise BadValue(f"The arguments are not valid: {error}.", code="value.wrong_type") from None


# --- workflows ---------------------------------------------------------------------------------------------------


async def start_workflow(offered: OfferedWorkflow, request: ToolRequest) -> CallToolResult | InputRequiredResult:
    """Start a run of a workflow and wait for it, or go on waiting with the answers of a person."""
    exchange = request.exchange
    if request.state is not None:
        return await _go_on(request)
    given = dict(request.arguments)
    run_id = given.pop(RUN_ID, None)
    body = msgspec.convert({"workflow": offered.workflow, "input": given, "id": run_id}, views.StartBody)
    started = await start_as(exchange.call, body, exchange.caller)
    row = await exchange.call.service.row(started.id)
    if row.attributes.get(STARTED_BY) != exchange.caller:
        raise IdTaken(f"Somebody else has started a run {started.id[:100]!r}.", hint="Use another run_id.")
    return await RunWait(exchange, row, WaitState(started.id)).wait(WAIT_SECONDS_MAX)


async def _go_on(request: ToolRequest) -> CallToolResult | InputRequiredResult:
    """Take the answers of a person, and wait on. Raises NotFound unless the run is the caller's."""
    try:
        state = msgspec.json.decode(request.state or "", type=WaitState)
    except (msgspec.ValidationError, msgspec.DecodeError):
        raise BadValue("The request_state was not made by this server.", code="value.wrong_type") from None
    waiting = RunWait(request.exchange, await request.exchange.own_run(state.run), state)
    await waiting.take(dict(request.answers))
    return await waiting.wait(WAIT_SECONDS_MAX)


# --- runs --------------------------------------------------------------------------------------------------------


async def run_status(request: ToolRequest) -> CallToolResult:
    """Return how a run stands and what it waits for."""
    asked = read_tool_arguments(request.arguments, NamedRun)
    service = request.exchange.call.service
    row = await request.exchange.own_run(asked.run_id)
    explained = await explain(service, row)
    return make_tool_result(
        {
            "run_id": row.id,
            "workflow": row.workflow,
            "status": row.status,
            "summary": explained.summary,
            "steps_done": explained.steps_done,
            "waiting": [{"at": one.location, "for": one.what, "since": one.since} for one in explained.waiting],
            "questions": shown_questions(await questions_of_tree(service, row)),
        }
    )


async def run_result(request: ToolRequest) -> CallToolResult | InputRequiredResult:
    """Return the result of a run, after waiting for it if asked to."""
    if request.state is not None:
        return await _go_on(request)
    asked = read_tool_arguments(request.arguments, AwaitedRun)
    row = await request.exchange.own_run(asked.run_id)
    return await RunWait(request.exchange, row, WaitState(row.id)).wait(asked.wait)


async def run_cancel(request: ToolRequest) -> CallToolResult:
    """Cancel a run."""
    asked = read_tool_arguments(request.arguments, CancelledRun)
    row = await request.exchange.own_run(asked.run_id)
    body = views.Cancel(reason=asked.reason, by=request.exchange.caller)
    accepted = await run_control.cancel(request.exchange.about(row.id, body=body))
    assert isinstance(accepted, views.Accepted)
    return make_tool_result({"run_id": accepted.id, "status": accepted.status})


async def run_send(request: ToolRequest) -> CallToolResult:
    """Send a message to a run."""
    asked = read_tool_arguments(request.arguments, SentMessage)
    row = await request.exchange.own_run(asked.run_id)
    body = views.NewMessage(name=asked.name, body=asked.body)
    accepted = await run_control.send(request.exchange.about(row.id, body=body))
    return make_tool_result({"run_id": accepted.id, "status": accepted.status})


# --- questions of other runs -------------------------------------------------------------------------------------


async def questions(request: ToolRequest) -> CallToolResult:
    """List the open questions that the caller may answer, except those of its own runs."""
    read_tool_arguments(request.arguments, views.Nothing)
    exchange = request.exchange
    service = exchange.call.service
    page = await runs_that_ask(service, limit=QUESTIONS_MAX)
    items = [item for row in page.rows for item in await open_questions_of(service, row) if not _is_own(exchange, item)]
    found = [await approval_view(service, item) for item in items if not _why_not(exchange, item)]
    return make_tool_result({"questions": found[:QUESTIONS_MAX]})


async def decide(request: ToolRequest) -> CallToolResult:
    """Answer a question of a run that somebody else started."""
    asked = read_tool_arguments(request.arguments, QuestionDecision)
    exchange = request.exchange
    row, _ = await parse_place(exchange.call.service, asked.id, "question")
    if row.attributes.get(STARTED_BY) == exchange.caller:
        raise NotAllowed(
            f"{exchange.caller} started {row.id}, so another key has to answer its questions.",
            hint="A person answers them in the inbox, or in the MCP client that waits for the run.",
            code="ask.not_yours",
        )
    body = views.Decision(
        approved=asked.approved, reason=asked.reason, form=asked.form, digest=asked.digest, by=exchange.caller
    )
    accepted = await approvals.decide(exchange.about(asked.id, body=body))
    return make_tool_result({"run_id": accepted.id, "status": accepted.status})


def _is_own(exchange: McpExchange, item: OpenQuestion) -> bool:
    return item.row.attributes.get(STARTED_BY) == exchange.caller


def _why_not(exchange: McpExchange, item: OpenQuestion) -> str:
    groups = exchange.call.identity.groups
    return item.why_not(exchange.caller, sorted(groups) if groups is not None else None)


# --- the table ---------------------------------------------------------------------------------------------------

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def _own_tool(name: str, description: str, arguments: type[views.Form], annotations: ToolAnnotations) -> Tool:
    schema = msgspec.json.schema(arguments)
    own = schema["$defs"].pop(arguments.__name__)
    definitions = {"$defs": schema["$defs"]} if schema["$defs"] else {}
    own = {key: value for key, value in own.items() if key not in ("title", "description")}
    return Tool(name=name, description=description, input_schema={**own, **definitions}, annotations=annotations)


RUN_TOOLS: tuple[ServedTool, ...] = (
    ServedTool(
        _own_tool("run_status", "Say how a run that you started stands, and what it waits for.", NamedRun, _READS),
        AccessScope.READ,
        run_status,
    ),
    ServedTool(
        _own_tool("run_result", "Return the result of a run that you started, after a wait.", AwaitedRun, _READS),
        AccessScope.READ,
        run_result,
    ),
    ServedTool(
        _own_tool("run_cancel", "Cancel a run that you started. What it did is undone.", CancelledRun, _ENDS),
        AccessScope.OPERATE,
        run_cancel,
    ),
    ServedTool(
        _own_tool("run_send", "Send a message to a run that you started and that waits for it.", SentMessage, _WRITES),
        AccessScope.START,
        run_send,
    ),
    ServedTool(
        _own_tool("questions", "List questions of other callers' runs that you may answer.", views.Nothing, _READS),
        AccessScope.DECIDE,
        questions,
    ),
    ServedTool(
        _own_tool("decide", "Answer a question of another caller's run.", QuestionDecision, _ENDS),
        AccessScope.DECIDE,
        decide,
    ),
)


def workflow_tool(offered: OfferedWorkflow) -> ServedTool:
    """Return the tool that starts a workflow."""
    tool = Tool(
        name=offered.tool,
        description=offered.description,
        input_schema=offered.input,
        output_schema=offered.output,
        annotations=ToolAnnotations(read_only_hint=False),
    )
    return ServedTool(tool, AccessScope.START, partial(start_workflow, offered))
