"""Tell MCP clients when runs change that they subscribed to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, ResourceUpdated, event_to_notification
from mcp_types import (
    INVALID_REQUEST,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from weft.errors import NotFound
from weft.ports.store import RunRow
from weft.server.mcp.exchange import Context, McpExchange
from weft.server.mcp.resources import parse_resource_uri

SUBSCRIBED_MAX = 64
PAUSE_SECONDS = 0.25
"""Between two notifications about the same run."""


async def listen(
    exchange: McpExchange, context: Context, params: SubscriptionsListenRequestParams
) -> SubscriptionsListenResult:
    """Tell the client about changes of the caller's runs until it goes away or the server stops."""
    if context.request_id is None:
        raise MCPError(INVALID_REQUEST, "A subscription needs a request id.")
    exchange.call.hosting()
    followed = await _own_runs(exchange, params.notifications.resource_subscriptions or ())
    meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
    honored = SubscriptionFilter(resource_subscriptions=list(followed) or None)
    acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
    await context.session.send_notification(
        SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=context.request_id
    )

    async def follow(uri: str, row: RunRow) -> None:
        with exchange.call.services.feed.follow(row.uid) as changed:
            while True:
                await changed.wait()
                changed.clear()
                if exchange.call.services.closing.is_set():
                    return
                notification = event_to_notification(ResourceUpdated(uri), meta)
                await context.session.send_notification(notification, related_request_id=context.request_id)
                await asyncio.sleep(PAUSE_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        for uri, row in followed.items():
            tasks.create_task(follow(uri, row))
        tasks.create_task(exchange.call.services.closing.wait())
    return SubscriptionsListenResult(_meta=meta)


async def _own_runs(exchange: McpExchange, uris: Sequence[str]) -> dict[str, RunRow]:
    """Return the runs of the caller that these addresses name. Others are left out."""
    found: dict[str, RunRow] = {}
    for uri in uris[:SUBSCRIBED_MAX]:
        with contextlib.suppress(NotFound):
            address = parse_resource_uri(uri)
            if address.kind != "workflow":
                found[uri] = await exchange.own_run(address.id)
    return found
