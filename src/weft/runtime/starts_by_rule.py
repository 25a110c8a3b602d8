"""Start runs of workflows that have a rule about starts. The store judges each start in one transaction."""

from __future__ import annotations

import asyncio
import contextlib

from weft.core import commands as c
from weft.core import values
from weft.core.ids import Millis, RunId, RunUid, tenant_prefix
from weft.core.start_rules import slot_of
from weft.errors import IdTaken, Refused, RunOpen, UsageError
from weft.ports.boundary import boundary
from weft.ports.new_run import NewRun
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.runtime.start_rules import DeclaredRule, StartKey, start_key
from weft.runtime.start_support import StartingService, StartOptions, StartResult


class StartsByRule:
    """Starts runs by the rules of their workflows."""

    def __init__(self, service: StartingService) -> None:
        self._service = service
        self.answered_at = 0.0
        """When the store last answered, by the loop's clock."""

    def key(self, start: c.StartRun, declared: DeclaredRule, given: bytes, options: StartOptions) -> StartKey:
        """Return the key of a start. Raises BadValue, UsageError, LimitExceeded."""
        if options.delay_ms and declared.rule.kind != "singleton":
            raise UsageError(
                f"{start.workflow} was not started: its {declared.rule.kind} says when it begins.",
                hint="Leave out the delay.",
                code="start.delayed",
            )
        return start_key(declared, start.workflow, given, start.words)

    async def start(
        self, start: c.StartRun, declared: DeclaredRule, key: StartKey, options: StartOptions
    ) -> StartResult | StartOutcome:
        """Start a run, or find the one that takes the start.

        Returns ``ID_TAKEN`` if a run has the id, and ``RULE_CHANGED`` if the stored rule is another one now. Raises
        IdTaken for the id of another start, and RunOpen.
        """
        service = self._service
        order = self._ruled_start(start, declared, key, options)
        boundary("start.before")
        answer = await service.store.starts.start(order)
        boundary("start.after")
        self.answered_at = asyncio.get_running_loop().time()
        if answer.outcome in (StartOutcome.ID_TAKEN, StartOutcome.RULE_CHANGED):
            return answer.outcome
        _raise_if_refused(answer, order, key)
        if service.work is not None:
            service.work.wake()
            if order.new.wake_at is not None:
                service.work.on_created(order.new.wake_at)
        for replaced in answer.replaced:
            # It has the command as mail already. A run that has not begun is ended here, before its code runs.
            with contextlib.suppress(Refused):
                await service.tell(replaced, c.CancelRun(_replaced_reason(order.new)))
        return StartResult(answer.uid, answer.id, answer.outcome is StartOutcome.CREATED, by_rule=True)

    def _ruled_start(
        self, start: c.StartRun, declared: DeclaredRule, key: StartKey, options: StartOptions
    ) -> RuledStart:
        rule, now = declared.rule, self._service.clock.now_ms()
        wait_ms = options.delay_ms if rule.kind == "singleton" else rule.wait_of(key.inputs)
        new = NewRun(
            uid=RunUid(self._service.ids.new()),
            id=RunId(start.run_id),
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=now,
            attributes=start.attributes,
            start=c.encode(start),
            wake_at=Millis(now + wait_ms) if wait_ms else None,
            slot=slot_of(rule, start.workflow, key.text, tenant_prefix(start.run_id)),
            inputs=key.inputs,
            priority=start.priority,
        )
        return RuledStart(
            new=new,
            rule=rule,
            stored=declared.stored,
            chosen=options.chosen,
            digest=values.digest(bytes(start.input)),
            cancel=c.encode(c.CancelRun(_replaced_reason(new))),
        )


def _replaced_reason(new: NewRun) -> str:
    return f"replaced by {new.id}"


def _raise_if_refused(answer: StartAnswer, order: RuledStart, key: StartKey) -> None:
    """Raise the refusal of a start, if it was refused."""
    if answer.outcome is StartOutcome.ID_REUSED:
        raise IdTaken(
            f"{order.new.id} was the id of a start with another input, which {answer.id} took.",
            hint="Choose another id, or omit it.",
            run_id=order.new.id,
        )
    if answer.outcome is StartOutcome.OPEN:
        text = f" {key.text!r}" if key.text else ""
        raise RunOpen(
            f"{order.new.workflow} was not started: {answer.id} is open with the same key{text}.",
            hint=f"Wait until it has ended, or cancel it: weft cancel {answer.id}",
            run_id=answer.id,
        )
