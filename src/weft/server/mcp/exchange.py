"""One request of an MCP client: who makes it, and the way back to the client."""

from __future__ import annotations

from typing import Any

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from weft.core.ids import RunId
from weft.core.run.questions import STARTED_BY
from weft.errors import NotAllowed, NotFound, WeftError
from weft.ports.store import RunRow
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused, problem_of
from weft.server.request import ApiCall

ANSWER_SECONDS = 300.0
"""How long a person may take to answer a form that was sent to the client."""
Context = ServerRequestContext[Any, Any]


class McpExchange:
    """One request of an MCP client."""

    def __init__(self, call: ApiCall, context: Context) -> None:
        self.call = call
        self._context = context
        self.is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        """Whether a question is returned to the client, which calls again with the answer."""

    @property
    def caller(self) -> str:
        """Return the name of the caller: that of its key."""
        return self.call.identity.subject

    def require(self, scope: AccessScope) -> None:
        """Refuse a caller without a scope. Raises NotAllowed."""
        if not self.call.identity.may(scope):
            raise NotAllowed(f"This needs the scope {scope}.", hint="Use a key with this scope.")

    def about(self, run: str, **given: Any) -> ApiCall:
        """Return a call of the API about a run, with a body or a query, by the same caller."""
        return msgspec.structs.replace(self.call, parameters={**self.call.parameters, "id": run}, **given)

    async def own_run(self, run: str) -> RunRow:
        """Return a run that this caller started. Raises NotFound: also for a run of somebody else."""
        row = await self.call.service.row(RunId(run))
        if row.attributes.get(STARTED_BY) != self.caller:
            raise NotFound(f"You have started no run {run[:100]!r}.", hint="Only your own runs can be seen here.")
        return row

    async def report(self, progress: float, message: str) -> None:
        """Tell the client how far the run is, if it wants to know."""
        await self._context.session.report_progress(progress, message=message)

    # --- questions ------------------------------------------------------------------------------------------------

    @property
    def can_ask(self) -> bool:
        """Return whether the client can show a form to a person."""
        capabilities = self._context.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return False
        # A client that names no kind of elicitation means forms.
        has_form = capabilities.elicitation.form is not None or capabilities.elicitation.url is None
        return has_form and (self.is_modern or self._context.session.can_send_request)

    async def ask(self, form: ElicitRequestFormParams) -> ElicitResult:
        """Show a form and wait for the answer. Only for clients that do not get the form as a result."""
        try:
            return await self._context.session.send_request(
                ElicitRequest(params=form),
                ElicitResult,
                request_read_timeout_seconds=ANSWER_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=self._context.request_id),
            )
        except MCPError:
            return ElicitResult(action="cancel")

    @property
    def wants_progress(self) -> bool:
        """Return whether the client listens to progress."""
        return bool(self._context.meta and self._context.meta.get("progress_token") is not None)


class ToolRequest:
    """A call of a tool, with what it brings from the calls before it."""

    def __init__(self, exchange: McpExchange, params: CallToolRequestParams) -> None:
        self.exchange = exchange
        self.arguments: dict[str, Any] = dict(params.arguments or {})
        self.answers = params.input_responses or {}
        self.state = params.request_state


def make_tool_result(value: Any, *, is_error: bool = False) -> CallToolResult:
    """Return a value as the result of a tool: as data, and as text for clients that read only that."""
    raw = msgspec.json.encode(value)
    return CallToolResult(
        content=[TextContent(type="text", text=raw.decode())],
        structured_content=msgspec.json.decode(raw),
        is_error=is_error,
    )


def refusal_as_tool_result(error: WeftError | RequestRefused, tenant: str) -> CallToolResult:
    """Return an error as the result of a tool, so that the model can read it and do something else."""
    if isinstance(error, WeftError):
        problem = problem_of(error, tenant)
        text, hint = problem.detail, problem.hint
    else:
        text, hint = error.detail, error.hint
    return CallToolResult(content=[TextContent(type="text", text=f"{text} {hint}".strip())], is_error=True)
