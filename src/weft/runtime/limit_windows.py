"""The windows of time from which a call spends: the limits of the policy in units of budgets, each tenant its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from weft.agents.policy.verdicts import Asked
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.ledger import BudgetWindow, window_scope
from weft.core.run.state import State
from weft.ports.clock import Clock
from weft.runtime.held_models import MODEL_QUEUE
from weft.runtime.policy import CurrentPolicy, asked_in, node_at
from weft.runtime.task_policy import BUILT_IN
from weft.steps.task import MODEL


class LimitWindows:
    """Finds the windows of calls, by the policy as it stands."""

    def __init__(self, policy: CurrentPolicy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock

    def of(self, state: State, effect: PerformTask | None) -> Sequence[BudgetWindow]:
        """Return the windows that a call of a run spends from. None stands for a call that is over."""
        rules = self._policy.rules
        if rules is None or not self._policy.limits_spending:
            return ()
        from weft.agents.policy.windows import window_at  # noqa: PLC0415 - only for programs with a policy

        asked, now = _asked_for(state, effect), self._clock.now_ms()
        found: dict[str, BudgetWindow] = {}
        for rule in rules.limits_of(asked):
            limits = rule.spending
            if not limits:
                continue
            window = window_at(rule.per, now)
            scope = window_scope(asked.tenant, rule.per, _window_name(rule.key), window.begins_at)
            known = found[scope].limits if scope in found else {}
            smallest = {unit: min(limit, known.get(unit, limit)) for unit, limit in limits.items()}
            found[scope] = BudgetWindow(scope, {**known, **smallest}, window.ends_at)
        return list(found.values())


def _asked_for(state: State, effect: PerformTask | None) -> Asked:
    """Return who makes a call. The arguments are those of the step or tool; those of a model call are not shown."""
    known = asked_in(state, action="step", name="")
    if effect is None:
        return known
    if effect.step == MODEL:
        name = effect.policy.queue.removeprefix(MODEL_QUEUE)
        return msgspec.structs.replace(known, action="model", name=name, agent=effect.policy.agent)
    return msgspec.structs.replace(
        known,
        name=effect.step,
        agent=effect.policy.agent,
        node=known.node or node_at(effect.location),
        args=_call_arguments(effect),
    )


def _call_arguments(effect: PerformTask) -> Mapping[str, Any]:
    """Return the arguments of a call, as far as they are in the log. A condition about others counts as met."""
    raw = bytes(effect.input)
    if values.is_ref(raw):
        return {}
    found = msgspec.json.decode(raw)
    if isinstance(found, dict) and effect.step.startswith(BUILT_IN):
        found = found.get("arguments")
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=1_024)
def _window_name(key: str) -> str:
    """Return a short name for what a rule counts."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]
