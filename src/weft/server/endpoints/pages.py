"""Return the OpenAPI document."""

from __future__ import annotations

from msgspec import Raw

from weft.server.request import ApiCall, ApiReply


async def openapi(call: ApiCall) -> ApiReply:
    """Return the OpenAPI document."""
    return ApiReply(Raw(call.services.openapi_document()))
