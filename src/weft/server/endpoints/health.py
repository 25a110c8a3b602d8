"""Health, readiness and metrics of this process."""

from __future__ import annotations

import asyncio

from weft.errors import WeftError
from weft.server import views
from weft.server.request import ApiCall, Reply

ANSWER_SECONDS = 2.0
"""If a heartbeat in the store takes longer, the process is not ready."""


async def alive(call: ApiCall) -> Reply:
    """Return 200 if the process answers and its host has not failed."""
    failure = call.services.engine_failure()
    if failure is not None:
        return Reply(views.Health("failed", f"{type(failure).__name__}: {failure}"), 503)
    return Reply(views.Health("alive"))


async def ready(call: ApiCall) -> Reply:
    """Return 200 if runs can be started: the host runs, the store answers, and the server does not stop."""
    if call.services.closing.is_set():
        return Reply(views.Health("stopping"), 503)
    try:
        local = call.services.local()
        trouble = local.committer.trouble()
        if trouble is not None:
            raise trouble
        async with asyncio.timeout(ANSWER_SECONDS):
            await local.store.hosts.beat(local.id)
    except TimeoutError:
        return Reply(views.Health("not ready", "The store does not answer."), 503)
    except WeftError as error:
        return Reply(views.Health("not ready", error.message), 503)
    return Reply(views.Health("ready"))


async def metrics(call: ApiCall) -> Reply:
    """Return all metrics for Prometheus."""
    local = call.services.local()
    age = await call.services.admission.backlog_seconds(local)
    return Reply(await call.services.telemetry.page(local, age))
