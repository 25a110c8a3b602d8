"""The versions that a run has followed: who brought it there and why, and what each of them changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from weft.core import events as e
from weft.core import values
from weft.core.ids import RunId
from weft.documents.json_diff import ChangedValue, changed_values
from weft.ports.store import RunRow, StoredEvent
from weft.runtime.programs import is_graph, read_graph
from weft.runtime.service import RunService

Definition = dict[str, Any]
"""What a run follows, as data: the document of a graph, or the goals, steps and given facts of a plan."""


class RunVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version that a run has followed. Rev 0 is the one it began with."""

    rev: int
    version: str
    at: datetime
    seq: int = 0
    by: str = ""
    reason: str = ""
    approved_by: list[str] = []
    undoes: int = 0
    retried: str = ""
    """The place from which the run was retried. Then it follows the same version as before."""
    digest: str = ""
    patch: Any = None
    diff: list[ChangedValue] = []
    """What differs from the version before, at most 100 values. Code is not stored, so its versions have no diff."""


async def list_run_versions(service: RunService, run_id: str) -> list[RunVersion]:
    """Return the versions that a run has followed, oldest first."""
    row = await service.row(RunId(run_id))
    found: list[RunVersion] = []
    before: Definition = {}
    async for stored in service.reader.events(row):
        event = e.decode(stored.body)
        if isinstance(event, e.GoalPlanned):
            before = _definition_of_plan(bytes(event.plan), {})
        elif isinstance(event, e.RunStarted):
            found.append(RunVersion(rev=0, version=event.version, at=_event_time(stored), seq=stored.seq))
            before = await _version_document(service, row, event.version)
        elif isinstance(event, e.RunPatched):
            after = await _definition_after_patch(service, row, event, before)
            found.append(_run_version(event, stored, changed_values(before, after)))
            before = after
    return found


async def _definition_after_patch(
    service: RunService, row: RunRow, event: e.RunPatched, before: Definition
) -> Definition:
    """Return what a run follows after a patch."""
    if event.goal is not None:
        given = {name: _fact_value(bytes(raw)) for name, raw in event.goal.given.items()}
        return _definition_of_plan(bytes(event.goal.plan), {**before.get("given", {}), **given})
    return await _version_document(service, row, event.version) if event.version != event.base else before


async def _version_document(service: RunService, row: RunRow, version: str) -> Definition:
    """Return the document of a version; nothing if there is none."""
    stored = await service.store.definitions.get(row.workflow, version)
    return read_graph(stored).source if stored is not None and is_graph(stored) else {}


def _definition_of_plan(plan: bytes, given: Mapping[str, Any]) -> Definition:
    read = msgspec.json.decode(values.inline_json(plan) or b"{}")
    return {"goals": read.get("goals", []), "steps": read.get("steps", {}), "given": given}


def _fact_value(raw: bytes) -> Any:
    inline = values.inline_json(raw)
    return msgspec.json.decode(inline) if inline is not None else "(a large value)"


def _run_version(event: e.RunPatched, stored: StoredEvent, diff: list[ChangedValue]) -> RunVersion:
    return RunVersion(
        rev=event.rev,
        version=event.version,
        at=_event_time(stored),
        seq=stored.seq,
        by=event.by,
        reason=event.reason,
        approved_by=event.approved_by,
        undoes=event.undoes,
        retried=event.retried,
        digest=event.digest,
        patch=msgspec.json.decode(event.patch) if event.patch else None,
        diff=diff,
    )


def _event_time(stored: StoredEvent) -> datetime:
    return datetime.fromtimestamp(stored.at / 1000, UTC)
