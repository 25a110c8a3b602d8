"""Which appends must be in the durable store before they count, although they have only events.

That is so if somebody outside waits for the answer, or may act on it: what they have seen is never taken back. And if
work begins or ends that must not be repeated. Rules: docs/internals/hot-path.md#rule-5.
"""

from __future__ import annotations

from typing import Protocol

from weft.core.effects import PerformTask
from weft.core.graph.node_start import HTTP
from weft.core.ids import RunUid
from weft.core.machine import Machine
from weft.core.values import is_ref
from weft.errors import StoreError
from weft.ports.hot import HotRuns
from weft.runtime.programs import planned_step
from weft.runtime.run.draft import Draft, Reply
from weft.runtime.run.ports import RunPorts

_LATER = b'"later"'


class CommittedRun(Protocol):
    """A run that is about to commit a draft, or to answer one that has nothing to commit."""

    uid: RunUid
    machine: Machine
    ports: RunPorts

    def answer_commands(self, draft: Draft) -> None: ...


def answer_in_time(run: CommittedRun, draft: Draft) -> None:
    """Answer a draft that has nothing to commit, once all that it was decided on is in the durable store."""
    hot = run.ports.hot
    if hot is None or not hot.has_tail(run.uid) or not any(_waiting_replies(draft)):
        run.answer_commands(draft)
    else:
        run.ports.background.spawn(_answer_when_drained(run, draft, hot))


async def _answer_when_drained(run: CommittedRun, draft: Draft, hot: HotRuns) -> None:
    try:
        await hot.flush(run.uid)
    except StoreError as error:
        for reply in _waiting_replies(draft):
            reply(error)
    else:
        run.answer_commands(draft)


def _waiting_replies(draft: Draft) -> list[Reply]:
    posted = [*draft.posted, *(one for one, _ in draft.refused)]
    return [one.reply for one in posted if one.reply is not None]


def must_be_through(run: CommittedRun, draft: Draft) -> bool:
    """Return whether a draft has an answer for somebody outside, or is about work that must not be repeated."""
    if draft.create is not None or draft.status is not None:
        return True  # it has more than events
    for posted in draft.posted:
        if posted.reply is not None:
            return True
        flight = posted.flight
        if flight is not None and flight.effect.policy.effect == "irreversible":
            return True
    for effect in draft.effects:
        if type(effect) is PerformTask and (effect.policy.effect == "irreversible" or _must_be_durable(run, effect)):
            return True
    return bool(draft.refused) and any(posted.reply is not None for posted, _ in draft.refused)


def _must_be_durable(run: CommittedRun, effect: PerformTask) -> bool:
    """Return whether a task can be undone, or is answered from outside the process."""
    task = run.machine.state.tasks.get(effect.task)
    if task is not None and task.undo is not None:
        return True
    if effect.step == HTTP:
        given = bytes(effect.input)
        return _LATER in given or is_ref(given)
    planned = planned_step(run.machine, effect.task) or run.ports.planned_step(effect.step)
    return planned is not None and planned.is_async
