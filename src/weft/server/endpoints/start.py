"""Start runs. An accepted start is durable, and repeating it finds the same run."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

from weft.core.budget_text import read_budget
from weft.core.ids import GOAL
from weft.core.run.questions import STARTED_BY, STARTED_ROLES
from weft.core.run_rules import read_run_rules
from weft.core.trace_context import parse_traceparent
from weft.errors import BadValue, IdTaken, KeyReused
from weft.runtime.orders import StartOrder
from weft.runtime.start_support import StartResult
from weft.server import views
from weft.server.request import ApiCall, ApiReply
from weft.server.router import API

RESERVED = "weft."
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Ids that need no quoting in a URL."""


async def start(call: ApiCall) -> ApiReply:
    """Start a run, or find the run of the same start."""
    new = call.body_as(views.StartBody)
    started = await start_as(call, new, "" if call.identity.groups is None else call.identity.subject)
    name = started.id if _PLAIN.fullmatch(started.id) else quote(started.id, safe="")
    where = f"{call.root}{API}/runs/{name}"
    return ApiReply(
        views.StartedView(started.id, started.created), 201 if started.created else 200, {"location": where}
    )


async def start_as(call: ApiCall, new: views.StartBody, by: str) -> StartResult:
    """Start a run in the name of somebody, or find the run of the same start. An empty name is not recorded."""
    workflow = _name_of_start(new)
    service, services = call.hosting(), call.services
    await services.admission.admit()
    by_key = call.key if new.id is None else None
    with services.admission as burst_delay_ms:
        order = StartOrder(
            workflow=workflow,
            input=new.input,
            words=new.words,
            goals=new.goals,
            version=new.version,
            id=new.id if by_key is None else _id_of(call, by_key),
            existing=new.existing if by_key is None else "attach",
            attributes=_attributes(new, by, call.roles),
            delay_ms=round(new.delay * 1000),
            burst_ms=burst_delay_ms,
            trace=_trace(call),
            priority=new.priority,
            budget=read_budget(new.budget) if new.budget is not None else None,
            rules=read_run_rules(new.run_policies) if new.run_policies is not None else None,
        )
        try:
            started = await service.start(order)
        except IdTaken as error:
            if by_key is None:
                raise
            raise KeyReused(f'The key "{by_key}" was used for another start.', hint=error.message) from None
    if burst_delay_ms and not new.delay and started.created and not started.by_rule:
        services.admission.begin_later(started.uid)
    return started


def _trace(call: ApiCall) -> str:
    """Return the trace context of the caller. One that is not valid is ignored, as the standard says."""
    given = call.headers.get("traceparent", "")
    return given if given and parse_traceparent(given) is not None else ""


def _name_of_start(new: views.StartBody) -> str:
    """Return the name of what is started. Raises BadValue unless it is a workflow or goals."""
    if (new.workflow is None) is not bool(new.goals):
        raise BadValue(
            "A start names a workflow, or goals.",
            hint='{"workflow": "order", "input": {…}}, or {"goals": ["price"], "input": {…}}',
            code="value.wrong_type",
        )
    if new.goals and new.version is not None:
        raise BadValue("Goals have no version: a run holds its plan.", hint="Leave it out.", code="value.wrong_type")
    return new.workflow or GOAL


def _attributes(new: views.StartBody, by: str, roles: list[str]) -> dict[str, Any]:
    """Return the attributes that the caller gave, and who the caller is. Raises BadValue."""
    for name in new.attributes:
        if name.startswith(RESERVED):
            raise BadValue(f"The attribute {name[:60]!r} is not for callers to set.", code="value.bad_name")
    found = {**new.attributes, STARTED_BY: by} if by else dict(new.attributes)
    return {**found, STARTED_ROLES: roles} if roles else found


def _id_of(call: ApiCall, key: str) -> str:
    """Return the id of a run that is started with an idempotency key: the same key finds the same run."""
    return f"key-{hashlib.blake2b(f'{call.identity.tenant}/{key}'.encode(), digest_size=16).hexdigest()}"
