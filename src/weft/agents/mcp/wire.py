"""One connection to an MCP server, owned by one task. Whoever calls a tool waits on a future, with a deadline.

The package ends its callers by cancelling them when a server dies. Here only the owner and its helpers can be cancelled
in that way, and whoever waits gets an error that says whether the server may have acted on the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx2
import msgspec
from mcp.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitResult,
    ErrorData,
    Implementation,
    InputRequiredResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
)
from pydantic import TypeAdapter, ValidationError

from weft.agents.mcp.child_process import child_process
from weft.agents.mcp.definitions import LISTED_MAX, McpDefinition, check_listed, read_definition
from weft.agents.mcp.failures import ToolFailed, ToolUnavailable
from weft.agents.mcp.guarded_http import STAND_IN_CODE, UNSENT, GuardedTransport
from weft.core.durations import format_ms

log = logging.getLogger("weft.mcp")

CONNECT_SECONDS = 30.0
CLOSE_SECONDS = 10.0
PAGES_MAX = 50
T = TypeVar("T")
Ask = Callable[[ClientSession], Awaitable[T]]
_UNREADABLE = "Failed to parse "
"""How the package begins its own error about an answer that it cannot read."""
_RESULT: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)


class McpAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, with secrets revealed. Either ``command`` or ``url`` is set."""

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}


class McpWire:
    """One connection. It is made once; a connection that has ended is replaced by a new object."""

    def __init__(self, address: McpAddress) -> None:
        self._address = address
        self._stop = asyncio.Event()
        self._why = ""
        """Why the connection ended by itself; empty while it is open."""
        self._mark = ""
        self._waiting: set[asyncio.Future[Any]] = set()
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[ClientSession] = loop.create_future()
        self.changed = True
        """Whether the server has said that its tools have changed, or was not asked for them yet."""
        self.tools: dict[str, McpDefinition] = {}
        self.listing = asyncio.Lock()
        """Held by whoever asks the server for its tools, so that others wait for the answer."""
        self._owner = loop.create_task(self._hold_connection(), name=f"weft mcp {address.name}")

    @property
    def is_open(self) -> bool:
        """Return whether the connection can be used."""
        return not self._owner.done() and not self._why and not self._stop.is_set()

    # --- the owner ------------------------------------------------------------------------------------------------

    async def _hold_connection(self) -> None:
        try:
            async with self._client() as client:
                if not self._ready.done():
                    self._ready.set_result(client.session)
                await self._stop.wait()
        except asyncio.CancelledError:
            self._end("the connection was cancelled")
        except BaseException as error:  # noqa: BLE001 - the package raises groups of anything
            self._end(_first_line(error))
        finally:
            self._end("the connection was closed")

    @contextlib.asynccontextmanager
    async def _client(self) -> Any:
        address = self._address
        async with contextlib.AsyncExitStack() as stack:
            if address.command:
                command = (address.command, address.env, address.cwd)
                transport: Any = child_process(address.name, *command, self._end)
            else:
                guarded = GuardedTransport(address.name, address.url)
                self._mark = guarded.mark
                http = httpx2.AsyncClient(transport=guarded, headers=dict(address.headers), timeout=None)
                await stack.enter_async_context(http)
                transport = streamable_http_client(address.url, http_client=http, terminate_on_close=False)
            yield await stack.enter_async_context(
                Client(
                    transport,
                    cache=None,
                    client_info=Implementation(name="weft", version="1"),
                    elicitation_callback=_decline,
                    message_handler=self._on_message,
                )
            )

    async def _on_message(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.changed = True

    def _end(self, why: str) -> None:
        """Note that the connection ended, and tell everybody who waits."""
        if self._why:
            return
        self._why = why
        self._stop.set()
        if not self._ready.done():
            self._ready.set_exception(self._lost_error(in_doubt=False))
            self._ready.exception()  # whoever waits for it gets it; nobody has to
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(self._lost_error(in_doubt=True))

    def _lost_error(self, *, in_doubt: bool) -> ToolUnavailable:
        return ToolUnavailable(f"The MCP server {self._address.name} is gone: {self._why}.", in_doubt=in_doubt)

    async def close(self) -> None:
        """Close the connection. Calls in progress fail."""
        self._stop.set()
        if not self._ready.done():
            self._owner.cancel()
        done, _ = await asyncio.wait([self._owner], timeout=CLOSE_SECONDS)
        if not done:
            self._owner.cancel()
            await asyncio.wait([self._owner], timeout=CLOSE_SECONDS)

    # --- callers --------------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Wait until the connection is there. Raises ToolUnavailable."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.shield(self._ready)
        except TimeoutError:
            self._stop.set()
            self._owner.cancel()
            name = self._address.name
            raise ToolUnavailable(f"The MCP server {name} did not answer within {CONNECT_SECONDS:g} s.") from None

    async def ask(self, what: str, ask: Ask[T], seconds: float) -> T:
        """Send a request and wait for its answer. Raises ToolUnavailable, ToolFailed."""
        session = await self._session()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        helper = loop.create_task(_answer(ask, session, future), name=f"weft mcp {self._address.name} {what}")
        self._waiting.add(future)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            limit = format_ms(round(seconds * 1000))
            raise ToolUnavailable(
                f"{what} of the MCP server {self._address.name} took longer than {limit}.", in_doubt=True
            ) from None
        except MCPError as error:
            raise self._failure(what, error) from error
        except ValidationError as error:
            name = self._address.name
            text = f"{what} of the MCP server {name} got an answer that is not MCP."
            raise ToolFailed(text, is_unreadable=True) from error
        finally:
            self._waiting.discard(future)
            helper.cancel()

    async def _session(self) -> ClientSession:
        if self._why:
            raise self._lost_error(in_doubt=False)
        await self.connect()
        return self._ready.result()

    def _failure(self, what: str, error: MCPError) -> ToolUnavailable | ToolFailed:
        name, data = self._address.name, error.error.data
        text = str(error.error.message)[:500].rstrip(".")
        if error.error.code == STAND_IN_CODE and isinstance(data, dict) and data.get("mark") == self._mark:
            if not data.get("outcome"):
                return ToolFailed(f"{what} of the MCP server {name} failed: {text}.")
            in_doubt = data["outcome"] != UNSENT
            return ToolUnavailable(f"The MCP server {name} did not answer: {text}.", in_doubt=in_doubt)
        if error.error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            return ToolUnavailable(f"The MCP server {name} did not answer: {text}.", in_doubt=True)
        if error.error.code == PARSE_ERROR and text.startswith(_UNREADABLE):
            text = f"{what} of the MCP server {name} got an answer that cannot be read."
            return ToolFailed(text, is_unreadable=True)
        return ToolFailed(f"{what} of the MCP server {name} was refused: {text}.")

    # --- requests -------------------------------------------------------------------------------------------------

    async def list_tools(self, seconds: float) -> dict[str, McpDefinition]:
        """Ask the server for its tools. Raises ToolUnavailable, ToolFailed, LimitExceeded."""
        self.changed = False
        found: list[McpDefinition] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))
            page = await self.ask("tools/list", _sending(request, ListToolsResult), seconds)
            found += [read_definition(tool.model_dump(by_alias=True, mode="json")) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(found) > LISTED_MAX:
                break
        check_listed(self._address.name, found)
        self.tools = {one.name: one for one in found}
        return self.tools

    async def call_tool(self, params: CallToolRequestParams, seconds: float) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises ToolUnavailable, ToolFailed."""
        found = await self.ask(params.name, _sending(CallToolRequest(params=params), _RESULT), seconds)
        assert isinstance(found, CallToolResult | InputRequiredResult)
        return found


def _sending(request: Any, result: Any) -> Ask[Any]:
    return lambda session: session.send_request(request, result)


async def _answer(ask: Ask[T], session: ClientSession, future: asyncio.Future[T]) -> None:
    """Put the answer of a request into a future. A cancel by the package is a lost connection."""
    try:
        found = await ask(session)
    except asyncio.CancelledError:
        if not future.done():
            future.set_exception(ToolUnavailable("The connection to the MCP server was lost.", in_doubt=True))
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the package raises is the answer
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(found)


async def _decline(context: Any, params: Any) -> ElicitResult | ErrorData:  # noqa: ARG001 - as the package calls it
    """Answer a server that asks in the middle of a call, as older protocols do. Nobody can be asked there."""
    return ElicitResult(action="cancel")


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = str(error).partition("\n")[0][:300].rstrip(".")
    return text or type(error).__name__
