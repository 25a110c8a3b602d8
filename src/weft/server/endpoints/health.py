"""Report the health, readiness and metrics of this process."""

from __future__ import annotations

import msgspec

from weft.errors import WeftError
from weft.server import views
from weft.server.installation import store_trouble
from weft.server.request import ApiCall, ApiReply


async def alive(call: ApiCall) -> ApiReply:
    """Return 200 if the process answers and its host has not failed."""
    failure = call.services.engine_failure()
    if failure is not None:
        return ApiReply(views.Health("failed", f"{type(failure).__name__}: {failure}"), 503)
    return ApiReply(views.Health("alive"))


async def ready(call: ApiCall) -> ApiReply:
    """Return 200 if runs can be started: the host runs, the store answers, and the server is not stopping."""
    if call.services.closing.is_set():
        return ApiReply(views.Readiness("stopping"), 503)
    try:
        trouble = await store_trouble(call.services.hosting())
    except WeftError as error:
        trouble = error.message
    if trouble:
        return ApiReply(views.Readiness("not ready", trouble), 503)
    return ApiReply(views.Readiness("ready", redis=_redis(call)))


def _redis(call: ApiCall) -> views.RedisHealth | None:
    """Return what this host says about its Redis server. Without one that works, it is still ready."""
    report = call.services.hosting().status.redis
    return None if report is None else msgspec.convert(msgspec.to_builtins(report()), views.RedisHealth)


async def metrics(call: ApiCall) -> ApiReply:
    """Return all metrics for Prometheus."""
    runs = call.services.hosting()
    age = await call.services.admission.backlog_seconds()
    return ApiReply(await call.services.telemetry.render(runs, age))
