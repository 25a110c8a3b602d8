"""Report the health, readiness and metrics of this process."""

from __future__ import annotations

import asyncio

from weft.errors import WeftError
from weft.server import views
from weft.server.request import ApiCall, Reply

ANSWER_SECONDS = 2.0
"""If a heartbeat takes the store longer than this, the process is not ready."""


async def alive(call: ApiCall) -> Reply:
    """Return 200 if the process answers and its host has not failed."""
    failure = call.services.engine_failure()
    if failure is not None:
        return Reply(views.Health("failed", f"{type(failure).__name__}: {failure}"), 503)
    return Reply(views.Health("alive"))


async def ready(call: ApiCall) -> Reply:
    """Return 200 if runs can be started: the host runs, the store answers, and the server is not stopping."""
    if call.services.closing.is_set():
        return Reply(views.Health("stopping"), 503)
    try:
        runs = call.services.hosting()
        trouble = runs.trouble()
        if trouble is not None:
            raise trouble
        if runs.local is not None:
            async with asyncio.timeout(ANSWER_SECONDS):
                await runs.store.hosts.beat(runs.local.host)
    except TimeoutError:
        return Reply(views.Health("not ready", "The store does not answer."), 503)
    except WeftError as error:
        return Reply(views.Health("not ready", error.message), 503)
    return Reply(views.Health("ready"))


async def metrics(call: ApiCall) -> Reply:
    """Return all metrics for Prometheus."""
    runs = call.services.hosting()
    age = await call.services.admission.backlog_seconds()
    return Reply(await call.services.telemetry.render(runs, age))
