"""Patch a fork before it goes on: let it follow another version, or give facts to a goal run that has begun.

The patch is judged like any other, on the log that the fork has so far, and refused for the same reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.goal.edits import steps_begun
from weft.core.machine import Machine
from weft.core.run.env import PastEvent
from weft.errors import PatchRefused, UsageError
from weft.ports.store import RunRow, StoredEvent
from weft.runtime.decision_inputs import DecisionInputs
from weft.runtime.fork_order import ForkOrder
from weft.runtime.patches import PREPARE, PatchService
from weft.runtime.service import RunService

FACT_KNOWN = "patch.fact_known"
NOW = "now"
"""The version of a goal run to which it can go: the steps that are registered now."""


def _graph_patch(order: ForkOrder, _: Any) -> dict[str, Any]:
    return {"to": order.to} if order.to else {}


def _goal_patch(order: ForkOrder, machine: Any) -> dict[str, Any]:
    if order.to and order.to != NOW:
        raise UsageError(
            f"A goal run has no version {order.to!r}.",
            hint=f"--to {NOW} plans it again with the steps that are registered now.",
            code="fork.bad_edit",
        )
    patch: dict[str, Any] = {"catalogue": "now"} if order.to else {}
    if order.given and steps_begun(machine.state):
        patch["given"] = dict(order.given)
    return patch


PATCHES: Mapping[str, Callable[[ForkOrder, Any], dict[str, Any]]] = {"graph": _graph_patch, "goal": _goal_patch}
"""By style: the patch that an order of a fork asks for. A code run gets another version by an edit."""


def patch_of(order: ForkOrder, row: RunRow, machine: Machine) -> dict[str, Any]:
    """Return the patch that an order of a fork asks for; empty if it asks for none. Raises UsageError."""
    make = PATCHES.get(row.style)
    return {} if make is None else make(order, machine)


async def decide_fork_patch(
    service: RunService, row: RunRow, machine: Machine, log: Sequence[StoredEvent], command: c.PatchRun
) -> Sequence[e.AnyEvent]:
    """Return the event that patches a fork with this log. ``row`` names the original, and the fork's id and version.

    Raises PatchRefused, BadPatch, NotFound, Refused.
    """
    prepared = await PREPARE[row.style][0](PatchService(service), row, bytes(command.patch))
    ready = msgspec.structs.replace(command, base=prepared.base, version=prepared.version, prepared=prepared.prepared)
    past = [PastEvent(one.at, e.decode(one.body)) for one in log]
    now = max(service.clock.now_ms(), machine.state.at)
    read, limit = partial(service.reader.read_versions, row), service.patch_limits.patches
    inputs = DecisionInputs(service.store.blobs, now, past, read, patches_max=limit)
    try:
        decided = await inputs.decided(lambda env: machine.decide(ready, env))
    except PatchRefused as refused:
        raise _cannot_fork(machine, refused) from None
    await inputs.write()
    found = await service.store.definitions.get(row.workflow, ready.version)
    if found is not None and service.local is not None:
        service.local.catalogue.learn(found)  # so that this host goes on with the fork at once
    return decided


def _cannot_fork(machine: Any, refused: PatchRefused) -> PatchRefused:
    """Return the refusal of a patch as one of the fork: it names the original, and an earlier point that would do."""
    state, first = machine.state, refused.findings[0]
    original = state.forked_from.run if state.forked_from is not None else state.run_id
    more = len(refused.findings) - 1
    rest = f" ({more} more)" if more else ""
    hint = _where_to_fork(state, original, first.place) if first.code == FACT_KNOWN else refused.hint
    return PatchRefused(
        f"{original} cannot be forked at this point with these changes: {first.message.rstrip('.')}{rest}.",
        hint=hint,
        code=refused.code,
        plan=refused.plan,
        findings=refused.findings,
    )


def _where_to_fork(state: Any, original: str, fact: str) -> str:
    """Say where to fork a run so that a fact can have another value."""
    provider = state.facts[fact][0].provider
    if provider:
        return f"Set the result of its step: weft fork {original} --before {provider} --set {provider}=JSON"
    return f"Fork the run from its beginning: weft fork {original} --given {fact}=VALUE"


def patch_command(patch: Mapping[str, Any], order: ForkOrder, by: str) -> c.PatchRun:
    """Return the command for a patch, which is to be prepared."""
    raw = Raw(values.encode(patch, what="the patch has"))
    return c.PatchRun(patch=raw, by=by, reason=order.reason, asks=False)
