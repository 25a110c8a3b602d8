"""Reuse results of cached goal steps: look up a result before work is dispatched, store results after the commit.

The key is made from the inputs and those parts of the step's definition that affect its result. Only a success whose
event is durable is stored, with its run and time. If the cache fails, the work is simply done again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.goal.definitions import StepDef, inner_name, work_digest
from weft.core.goal.plan import GoalPlan
from weft.core.ids import Millis, RunUid, tenant_prefix
from weft.errors import Corrupt, NotFound, StoreError
from weft.ports.clock import Clock
from weft.ports.memos import Memo, Memos
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft, PendingCommand
from weft.runtime.values import ValueStore

log = logging.getLogger("weft")

_SUCCEEDED, _FAILED = b'"kind":"task_succeeded"', b'"kind":"step_failed"'
Dispatch = Callable[[Actor, PerformTask], None]
_canonical = msgspec.json.Encoder(order="sorted").encode


def memo_key(definition: StepDef, inputs: bytes) -> str:
    """Return the key for this definition and these inputs (as JSON)."""
    return f"{work_digest(definition)}:{values.digest(_canonical(msgspec.json.decode(inputs)))}"


class _Expected(msgspec.Struct, frozen=True):
    """Dispatched work whose success is to be stored."""

    key: str
    step: str
    ttl_ms: int


class MemoLookup:
    """Finds earlier results of cached steps, and stores new ones."""

    def __init__(
        self,
        memos: Memos,
        values: ValueStore,
        clock: Clock,
        background: BackgroundTasks,
        is_current: Callable[[Actor], bool],
    ) -> None:
        self._memos = memos
        self._values = values
        self._clock = clock
        self._background = background
        self._is_current = is_current
        self.expected: dict[RunUid, dict[int, _Expected]] = {}
        """Tasks in flight whose results are stored, by their run."""
        self._looked_up: dict[RunUid, set[tuple[int, int, int]]] = {}

    def start_lookup(self, actor: Actor, effect: PerformTask, definition: StepDef, dispatch: Dispatch) -> bool:
        """Look up an earlier result of a task, if its step is cached. Returns whether the task waits for the lookup.

        A task without an earlier result is dispatched after the lookup.
        """
        if definition.cache is None:
            return False
        looked_up = self._looked_up.setdefault(actor.uid, set())
        place = (effect.task, effect.attempt, effect.delivery)
        if place in looked_up:
            return False
        looked_up.add(place)
        self._background.spawn(self._look_up(actor, effect, definition, dispatch), actor)
        return True

    async def _look_up(self, actor: Actor, effect: PerformTask, definition: StepDef, dispatch: Dispatch) -> None:
        command = None
        try:
            # Results are not shared between tenants.
            key = tenant_prefix(actor.id) + memo_key(definition, await self._values.load(bytes(effect.input)))
            assert definition.cache is not None
            expected = _Expected(key, definition.id, definition.cache.ttl_ms)
            self.expected.setdefault(actor.uid, {})[effect.task] = expected
            memo = await self._memos.get(key, now=self._clock.now_ms())
            command = await self._recall_command(effect, memo) if memo is not None else None
        except (StoreError, NotFound) as error:
            log.debug("weft: %s is performed because its cache cannot be read (%s)", definition.id, error)
        if not self._is_current(actor) or not actor.is_open(effect):
            return
        if command is not None:
            self.expected.get(actor.uid, {}).pop(effect.task, None)
            actor.post(PendingCommand(command))
        else:
            dispatch(actor, effect)

    async def _recall_command(self, effect: PerformTask, memo: Memo) -> c.RecallWork:
        """Make the command that uses a memo. A large result is put again, so that its blob is not swept meanwhile."""
        output = await self._values.keep(await self._values.load(memo.output))
        return c.RecallWork(
            task=effect.task,
            attempt=effect.attempt,
            delivery=effect.delivery,
            output=msgspec.Raw(output),
            run_id=memo.run,
            at=memo.at,
        )

    def on_committed(self, actor: Actor, draft: Draft) -> None:
        """Store the successes in a commit that has just become durable."""
        expected = self.expected.get(actor.uid)
        if not expected:
            return
        successes: list[tuple[Millis, e.TaskSucceeded]] = []
        failed: set[str] = set()
        for stored in draft.events:
            if _SUCCEEDED in stored.body or _FAILED in stored.body:
                match e.decode(stored.body):
                    case e.TaskSucceeded() as event:
                        successes.append((stored.at, event))
                    case e.StepFailedEvent(step=step):
                        failed.add(step)
        for at, event in successes:
            known = expected.pop(event.task, None)
            if known is None or known.step in failed:  # the result does not match the step's declaration
                continue
            until = Millis(at + known.ttl_ms) if known.ttl_ms else None
            memo = Memo(key=known.key, output=bytes(event.output), run=actor.id, at=at, until=until)
            self._background.spawn(self._store_memo(memo), may_fail=True)

    async def _store_memo(self, memo: Memo) -> None:
        try:
            await self._memos.put(memo)
        except StoreError as error:
            log.debug("weft: could not store a result for reuse (%s)", error)

    def forget(self, uid: RunUid) -> None:
        """Forget a run that leaves memory."""
        self.expected.pop(uid, None)
        self._looked_up.pop(uid, None)


async def find_reusable(plan: GoalPlan, given: Mapping[str, Any], memos: Memos, *, now: Millis) -> dict[str, Memo]:
    """Return the steps of a plan that would be answered from the cache, as far as the given facts determine it."""
    found: dict[str, Memo] = {}
    for step, definition in plan.steps.items():
        inputs = _step_inputs(plan, definition, given) if definition.cache is not None else None
        if inputs is None:
            continue
        try:
            memo = await memos.get(memo_key(definition, values.encode(inputs)), now=now)
        except Corrupt:
            continue
        if memo is not None:
            found[step] = memo
    return found


def _step_inputs(plan: GoalPlan, definition: StepDef, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the inputs of a step; None if they depend on results of other steps, or are collected or mapped."""
    inputs: dict[str, Any] = {}
    for fact, need in definition.needs.items():
        name = inner_name(fact, need)
        use = plan.facts.get(fact)
        if need.each or need.collect != "first" or need.meta or need.mapping is not None:
            return None
        if need.role == "const":
            inputs[name] = need.value
        elif fact in given:
            inputs[name] = given[fact]
        elif need.role == "required" or (use is not None and use.providers):
            return None
        elif need.default is not msgspec.UNSET:
            inputs[name] = need.default
    return inputs
