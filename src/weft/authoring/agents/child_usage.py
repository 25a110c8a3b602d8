"""What the runs below a run of an agent used: other agents, and workflows with agents in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import msgspec

from weft.agents.models.step import read_answer
from weft.authoring.agents.reply import Usage
from weft.authoring.agents.usage import with_answer
from weft.core import events as e
from weft.core import values
from weft.core.ids import RunUid
from weft.errors import BadValue
from weft.ports.run_query import RunQuery
from weft.ports.store import RunRow
from weft.runtime.service import RunService
from weft.steps.task import MODEL

RUNS_MAX = 1_000
"""How many runs below are looked at."""


async def with_runs_below(service: RunService, uid: RunUid, own: Usage) -> Usage:
    """Return what a run used, with all that the runs below it used, whether they failed or not."""
    found = own
    async for row in _runs_below(service, uid):
        found = await _with_run(service, row, found)
    return found


async def _runs_below(service: RunService, uid: RunUid) -> AsyncIterator[RunRow]:
    todo, seen = [uid], 0
    while todo:
        parent, after = todo.pop(0), None
        while seen < RUNS_MAX:
            page = await service.search(RunQuery(parent=parent, after=after, internal=True))
            for row in page.rows:
                seen += 1
                todo.append(row.uid)
                yield row
            after = page.cursor
            if after is None:
                break


async def _with_run(service: RunService, row: RunRow, usage: Usage) -> Usage:
    """Add what the calls of one run used, as its log has it."""
    scheduled: dict[int, e.TaskScheduled] = {}
    tools = 0
    async for stored in service.reader.events(row):
        event = e.decode(stored.body)
        if isinstance(event, e.TaskScheduled):
            scheduled[stored.seq] = event
            tools += event.cover.amounts.tools if event.cover is not None else 0
        elif isinstance(event, e.TaskSucceeded) and _is_model(scheduled, event):
            raw = await _load_value(service, bytes(event.output))
            with suppress(BadValue):  # an answer that people have set used nothing
                usage = with_answer(usage, read_answer(raw))
    return msgspec.structs.replace(usage, tools=usage.tools + tools)


def _is_model(scheduled: Mapping[int, e.TaskScheduled], event: e.TaskSucceeded) -> bool:
    task = scheduled.get(event.task)
    return task is not None and task.step == MODEL


async def _load_value(service: RunService, raw: bytes) -> bytes:
    return await service.values.blob(values.parse_ref(raw).digest) if values.is_ref(raw) else raw
