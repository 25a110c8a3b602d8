"""Starts by rules in memory. Each method judges and then writes without suspending, so it is atomic."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from weft.core.ids import RunId, RunUid
from weft.ports.new_run import START_MAIL
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.stores.judge_starts import StartFacts, StartVerdict, UsedId, judge_start, start_answer
from weft.stores.memory.content import MemoryContent
from weft.stores.rows import added_input, cancel_mail


class MemoryStarts:
    """The rules of a memory store, and starts by them."""

    def __init__(self, content: MemoryContent) -> None:
        self._content = content

    async def rules(self) -> Mapping[str, bytes]:
        return dict(self._content.start_rules)

    async def rule(self, workflow: str) -> bytes | None:
        return self._content.start_rules.get(workflow)

    async def set_rules(self, changes: Mapping[str, bytes | None]) -> None:
        for workflow, body in changes.items():
            if body is None:
                self._content.start_rules.pop(workflow, None)
            else:
                self._content.start_rules[workflow] = body

    async def start(self, start: RuledStart) -> StartAnswer:
        content, new = self._content, start.new
        facts = StartFacts(
            open_runs=[run.row() for run in content.with_slot(new.slot)],
            is_taken=new.id in content.ids or new.uid in content.runs,
            stored=content.start_rules.get(new.workflow),
            used=self._find_used_id(new.id) if start.chosen else None,
        )
        verdict = judge_start(start, facts)
        self._carry_out(start, verdict)
        return start_answer(verdict)

    def _find_used_id(self, id: RunId) -> UsedId | None:
        uid, digest = self._content.start_ids.get(id, (None, ""))
        run = self._content.runs.get(uid) if uid is not None else None
        return UsedId(run.new.uid, run.id, digest) if run is not None else None

    async def with_slot(self, slot: str) -> Mapping[RunUid, RunId]:
        return {run.new.uid: run.id for run in self._content.with_slot(slot)}

    async def take_slot(self, uid: RunUid, slot: str) -> RunId | None:
        others = [run for run in self._content.with_slot(slot) if run.new.uid != uid]
        if others:
            return others[-1].id
        self._content.runs[uid].slot = slot
        return None

    def _carry_out(self, start: RuledStart, verdict: StartVerdict) -> None:
        content, new = self._content, start.new
        if verdict.outcome is StartOutcome.CREATED:
            content.add(new, new.id)
        if verdict.closes is not None:
            content.runs[verdict.closes.uid].wake_at = None
        for other in verdict.cancels:
            content.deliver(cancel_mail(start, other))
            if other.seq == 0 and other.owner is None:
                content.runs[other.uid].wake_at = None
        if verdict.keeps_id:
            content.start_ids[new.id] = (verdict.uid, start.digest)
        if verdict.wake_at is UNSET:
            return
        run = content.runs[verdict.uid]
        run.wake_at = verdict.wake_at
        if verdict.replaces_input and new.start is not None:
            run.inbox[START_MAIL] = msgspec.structs.replace(run.inbox[START_MAIL], body=new.start)
        if verdict.adds_input:
            content.deliver(added_input(start, verdict.uid))
            run.inputs += new.inputs
