"""Start runs. An accepted start is durable, and repeating it finds the same run."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

from weft.core.ids import GOAL
from weft.core.run.questions import STARTED_BY
from weft.errors import BadValue, IdTaken, KeyReused
from weft.runtime.orders import StartOrder
from weft.server import views
from weft.server.request import ApiCall, Reply
from weft.server.router import API

RESERVED = "weft."
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Ids that need no quoting in a URL."""


async def start(call: ApiCall) -> Reply:
    """Start a run, or find the run of the same start."""
    new = call.body_as(views.StartBody)
    workflow = _wanted(new)
    service, services = call.hosting(), call.services
    await services.admission.admit()
    by_key = call.key if new.id is None else None
    with services.admission as burst_delay_ms:
        order = StartOrder(
            workflow=workflow,
            input=new.input,
            goals=new.goals,
            version=new.version,
            id=new.id if by_key is None else _id_of(call, by_key),
            existing=new.existing if by_key is None else "attach",
            attributes=_attributes(call, new),
            delay_ms=round(new.delay * 1000) or burst_delay_ms,
        )
        try:
            started = await service.start(order)
        except IdTaken as error:
            if by_key is None:
                raise
            raise KeyReused(f'The key "{by_key}" was used for another start.', hint=error.message) from None
    if burst_delay_ms and not new.delay and started.created:
        services.admission.begin_later(started.uid)
    name = started.id if _PLAIN.fullmatch(started.id) else quote(started.id, safe="")
    where = f"{call.root}{API}/runs/{name}"
    return Reply(views.StartedView(started.id, started.created), 201 if started.created else 200, {"location": where})


def _wanted(new: views.StartBody) -> str:
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


def _attributes(call: ApiCall, new: views.StartBody) -> dict[str, Any]:
    """Return the attributes that the caller gave, and who the caller is. Raises BadValue."""
    for name in new.attributes:
        if name.startswith(RESERVED):
            raise BadValue(f"The attribute {name[:60]!r} is not for callers to set.", code="value.bad_name")
    known = {} if call.identity.groups is None else {STARTED_BY: call.identity.subject}
    return {**new.attributes, **known}


def _id_of(call: ApiCall, key: str) -> str:
    """Return the id of a run that is started with an idempotency key: the same key finds the same run."""
    return f"key-{hashlib.blake2b(f'{call.identity.tenant}/{key}'.encode(), digest_size=16).hexdigest()}"
